package sentences

import (
	"fmt"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// Outlined are the metrics that outline prints.
var Outlined = []sample.Metric{sample.Throughput, sample.Transactions, sample.LatencyP50, sample.SenderCPU, sample.ReceiverCPU}

// outline returns the main figures of one trial: "9.61 Gbit/s, sender CPU 54 %, receiver
// 73 %".
func outline(m sample.Metrics) string {
	text := units.FormatRate(m[sample.Throughput])
	if has(m, sample.Transactions) {
		text = units.FormatCount(m[sample.Transactions]) + " transactions/s"
		if has(m, sample.LatencyP50) {
			text += ", p50 " + units.FormatDuration(m[sample.LatencyP50])
		}
	}
	if has(m, sample.SenderCPU) && has(m, sample.ReceiverCPU) {
		text += ", " + BothCPUs(m[sample.SenderCPU], m[sample.ReceiverCPU])
	}
	return text
}

// Attempt returns the figures of a trial or its failure, and the reason if the figures do not
// count.
func Attempt(s *sample.Sample) string {
	if !s.OK() {
		return phrase.Printable(s.Failure.String())
	}
	text := outline(s.Metrics)
	if s.Profiled {
		text += ", profiled"
	}
	if len(s.Gates) > 0 {
		text += "; rejected (" + rejected.Brief(s.Gates) + ")"
	}
	if len(s.Flags) > 0 {
		text += "; flagged (" + rejected.Brief(s.Flags) + ")"
	}
	return text
}

// BothCPUs returns the CPU of both sides, in percent: "sender CPU 54 %, receiver 73 %".
func BothCPUs(sender, receiver float64) string {
	return fmt.Sprintf("sender CPU %.0f %%, receiver %.0f %%", sender, receiver)
}

func has(m sample.Metrics, name sample.Metric) bool {
	_, ok := m[name]
	return ok
}
