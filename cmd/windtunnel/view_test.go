package main

import (
	"testing"

	"windtunnel/lab/experiment"
	"windtunnel/lab/sample"
)

func TestAnAttemptIsOneShortLine(t *testing.T) {
	stream := sample.Metrics{sample.Throughput: 9.61e9, sample.SenderCPU: 54.4, sample.ReceiverCPU: 73}
	foreign := sample.Gate{Name: sample.ForeignCPU, Value: 46.2, Unit: "%", Culprit: "compile", Message: "a long sentence with advice"}
	first := experiment.Progress{Attempt: 1, Attempts: 3, Repeats: true}
	for want, c := range map[string]struct {
		s sample.Sample
		p experiment.Progress
	}{
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %": {sample.Sample{Metrics: stream}, experiment.Progress{Attempt: 1, Attempts: 3}},
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; rejected (foreign CPU 46 %, compile); retry 2 of 3": {
			sample.Sample{Metrics: stream, Gates: []sample.Gate{foreign}}, first},
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; rejected (foreign CPU 46 %, compile)": {
			sample.Sample{Metrics: stream, Gates: []sample.Gate{foreign}}, experiment.Progress{Attempt: 3, Attempts: 3}},
		"9.61 Gbit/s, sender CPU 54 %, receiver 73 %; flagged (foreign CPU 46 %, compile; unsteady rate 14 %)": {
			sample.Sample{Metrics: stream, Flags: []sample.Gate{foreign, {Name: sample.Unsteady, Value: 14, Unit: "%"}}}, experiment.Progress{}},
		"agent-lost: node b's agent has ended; retry 2 of 3": {
			sample.Sample{Failure: &sample.Failure{Kind: sample.AgentLost, Message: "node b's agent has ended"}}, first},
		"11,050 transactions/s, p50 76 µs": {
			sample.Sample{Metrics: sample.Metrics{sample.Transactions: 11050, sample.LatencyP50: 76000}}, experiment.Progress{}},
	} {
		if got := outcome(c.s, c.p); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
