package tool

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/charmbracelet/x/ansi"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// sockperfLines finds sockperf's figures in its text, without colours.
var sockperfLines = struct {
	valid, mean, summary, counts, percentile, extreme, sent, handled *regexp.Regexp
}{
	valid:      regexp.MustCompile(`(?m)^sockperf: \[Valid Duration\] RunTime=(\S+) sec; SentMessages=(\S+); ReceivedMessages=(\S+)$`),
	mean:       regexp.MustCompile(`(?m)^sockperf: ====> avg-(latency|rtt)=(\S+) \(`),
	summary:    regexp.MustCompile(`(?m)^sockperf: Summary: (Latency|Round trip) is (\S+) usec$`),
	counts:     regexp.MustCompile(`(?m)^sockperf: # dropped messages = (\S+); # duplicated messages = (\S+); # out-of-order messages = (\S+)$`),
	percentile: regexp.MustCompile(`(?m)^sockperf: ---> percentile (\S+) += +(\S+)$`),
	extreme:    regexp.MustCompile(`(?m)^sockperf: ---> <(MIN|MAX)> observation = +(\S+)$`),
	sent:       regexp.MustCompile(`(?m)^sockperf: Total of (\S+) messages sent in (\S+) sec$`),
	handled:    regexp.MustCompile(`(?m)^sockperf: Total (\S+) messages received and handled$`),
}

// Parse reads the client's text. For streams it also reads the server's number of
// received messages.
func (t Sockperf) Parse(job Job, outputs map[string]Output) (Measurement, error) {
	client, err := outputOf(t.Name(), "client", outputs)
	if err != nil {
		return Measurement{}, err
	}
	m := Measurement{Metrics: sample.Metrics{}, Warnings: fragments(job)}
	var warnings []string
	if job.Workload.Kind.Exchange() {
		warnings, err = sockperfPingPong(ansi.Strip(client.Stdout), m.Metrics)
	} else {
		warnings, err = sockperfStream(job.Workload, ansi.Strip(client.Stdout), ansi.Strip(outputs["server"].Stdout), m.Metrics)
		warnings = append(warnings, shortRun(t.Name(), job)...)
		m.To = wholeRun(job.Timing)
	}
	if err != nil {
		return Measurement{}, noResult(t.Name(), "%v: %q", err, lastWords(client.Stdout+" "+client.Stderr))
	}
	m.Warnings = append(m.Warnings, warnings...)
	return sound(t.Name(), m)
}

// sockperfPercentiles maps sockperf's output to metrics.
var sockperfPercentiles = map[string]sample.Metric{
	"50.000": sample.LatencyP50,
	"90.000": sample.LatencyP90,
	"99.000": sample.LatencyP99,
	"99.900": sample.LatencyP999,
	"MIN":    sample.LatencyMin,
	"MAX":    sample.LatencyMax,
}

// sockperfPingPong parses round trips. Without --full-rtt sockperf prints half of each
// round trip, and the text says so. The values are then doubled.
func sockperfPingPong(text string, ms sample.Metrics) (warnings []string, err error) {
	valid := sockperfLines.valid.FindStringSubmatch(text)
	mean := sockperfLines.mean.FindStringSubmatch(text)
	if valid == nil || mean == nil || sockperfLines.summary.FindString(text) == "" {
		return nil, errors.New("the output has no summary of round trips")
	}
	scale := 1e3 // microseconds to nanoseconds
	if mean[1] == "latency" {
		scale *= 2
	}
	seconds, err1 := figure("the run time", valid[1])
	received, err2 := figure("the messages received", valid[3])
	average, err3 := figure("the mean", mean[2])
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	if seconds <= 0 || received <= 0 {
		return nil, errors.New("no message returned within the measured part of the run")
	}
	ms.Set(sample.Transactions, received/seconds)
	ms.Set(sample.LatencyMean, average*scale)
	found := sockperfLines.percentile.FindAllStringSubmatch(text, -1)
	found = append(found, sockperfLines.extreme.FindAllStringSubmatch(text, -1)...)
	for _, f := range found {
		metric, wanted := sockperfPercentiles[f[1]]
		if !wanted {
			continue
		}
		µs, err := figure("percentile "+f[1], f[2])
		if err != nil {
			return nil, err
		}
		ms.Set(metric, µs*scale)
	}
	return sockperfLosses(text)
}

// sockperfLosses returns a warning about lost, repeated or reordered messages.
func sockperfLosses(text string) ([]string, error) {
	counts := sockperfLines.counts.FindStringSubmatch(text)
	if counts == nil {
		return nil, nil
	}
	dropped, err1 := figure("dropped messages", counts[1])
	doubled, err2 := figure("duplicated messages", counts[2])
	late, err3 := figure("out-of-order messages", counts[3])
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	if dropped+doubled+late == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("sockperf counted %g messages dropped, %g duplicated and %g out of order", dropped, doubled, late)}, nil
}

// sockperfStream computes the throughput from the data that the server received and
// the client's sending time. If a server of a TCP stream printed no count, the
// client's count is used, because TCP loses no data.
func sockperfStream(w suite.Workload, client, server string, ms sample.Metrics) (warnings []string, err error) {
	f := sockperfLines.sent.FindStringSubmatch(client)
	if f == nil {
		return nil, errors.New("the client's output lacks the number of sent messages")
	}
	sent, err1 := figure("the messages sent", f[1])
	seconds, err2 := figure("the run time", f[2])
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if seconds <= 0 || sent <= 0 {
		return nil, errors.New("the client sent no message")
	}
	received := sent
	handled := sockperfLines.handled.FindStringSubmatch(server)
	switch {
	case handled != nil:
		if received, err = figure("the messages received", handled[1]); err != nil {
			return nil, err
		}
	case w.Kind.UDP():
		return nil, errors.New("the server's output lacks the number of received messages")
	default:
		warnings = append(warnings, "sockperf's server did not say what it received: throughput is what the client sent")
	}
	perMessage := float64(8*w.Buffer) / seconds
	ms.Set(sample.SenderThroughput, sent*perMessage)
	ms.Set(sample.Throughput, received*perMessage)
	if handled != nil {
		ms.Set(sample.ReceiverThroughput, received*perMessage)
	}
	if w.Kind.UDP() {
		setDatagrams(w, sent/seconds, received/seconds, ms)
	}
	return warnings, nil
}
