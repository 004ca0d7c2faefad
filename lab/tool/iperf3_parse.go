package tool

import (
	"encoding/json"
	"math"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// iperf3Report is the JSON output (-J) of one end of iperf3. Fields that a version
// lacks are nil.
type iperf3Report struct {
	Error     string `json:"error"`
	Intervals []struct {
		Sum     *iperf3Sum `json:"sum"`
		Reverse *iperf3Sum `json:"sum_bidir_reverse"`
	} `json:"intervals"`
	End struct {
		Streams []struct {
			UDP *struct {
				OutOfOrder *float64 `json:"out_of_order"`
			} `json:"udp"`
		} `json:"streams"`
		Sent            *iperf3Sum `json:"sum_sent"`
		Received        *iperf3Sum `json:"sum_received"`
		SentReverse     *iperf3Sum `json:"sum_sent_bidir_reverse"`
		ReceivedReverse *iperf3Sum `json:"sum_received_bidir_reverse"`
	} `json:"end"`
	Server *iperf3Report `json:"server_output_json"`
}

// iperf3Sum is one sum over streams, of an interval or of the whole run.
type iperf3Sum struct {
	Start       *float64 `json:"start"`
	End         *float64 `json:"end"`
	Seconds     *float64 `json:"seconds"`
	Bytes       *float64 `json:"bytes"`
	Bits        *float64 `json:"bits_per_second"`
	Retransmits *float64 `json:"retransmits"`
	Packets     *float64 `json:"packets"`
	Lost        *float64 `json:"lost_packets"`
	Omitted     bool     `json:"omitted"`
	Sender      *bool    `json:"sender"` // this end sent it; absent in old versions
}

// Parse reads the client's JSON. If the JSON has the intervals of both ends, the
// figures are of the window. Otherwise they are of the whole run, with a warning.
func (t Iperf3) Parse(job Job, outputs map[string]Output) (Measurement, error) {
	out := outputs["client"]
	report, err := readIperf3(out.Stdout)
	switch {
	case err == nil && report.Error != "":
		return Measurement{}, reportedError(t.Name(), "%s", report.Error)
	case out.Exit != 0:
		return Measurement{}, exitError(t.Name(), "client", out)
	case err != nil:
		return Measurement{}, err
	}
	forward, reverse := iperf3Flows(report, job.Workload.Direction)
	m := Measurement{Metrics: sample.Metrics{}, Warnings: fragments(job)}
	total, whole, err := t.flow(job, forward, reverse, m.Metrics)
	if err != nil {
		return Measurement{}, err
	}
	if whole {
		m.To = wholeRun(job.Timing)
	}
	if whole && job.Timing.Warmup > 0 {
		m.Warnings = append(m.Warnings, "iperf3 did not print the intervals of both ends: figures are means over the whole run, warm-up included")
	}
	if job.Workload.Kind == suite.UDPStream {
		total.udp(job.Workload, m.Metrics)
		iperf3Reordered(report, m.Metrics)
	} else if total.retransmits != nil {
		m.Metrics.Set(sample.ToolRetransmits, math.Round(*total.retransmits))
	}
	return sound(t.Name(), m)
}

// flow sets the throughputs of the job's direction and returns the sums.
func (t Iperf3) flow(job Job, forward, reverse *iperf3Flow, ms sample.Metrics) (total iperf3Result, whole bool, err error) {
	flows := []*iperf3Flow{forward}
	switch job.Workload.Direction {
	case suite.Reverse:
		flows = []*iperf3Flow{reverse}
	case suite.Both:
		flows = []*iperf3Flow{forward, reverse}
	}
	results := make([]iperf3Result, len(flows))
	for i, f := range flows {
		if results[i], err = f.result(job.Timing); err != nil {
			return total, false, noResult(t.Name(), "%v", err)
		}
		total.add(results[i])
		whole = whole || results[i].whole
	}
	if len(results) == 2 {
		ms.Set(sample.ForwardThroughput, results[0].received)
		ms.Set(sample.ReverseThroughput, results[1].received)
	}
	ms.Set(sample.Throughput, total.received)
	ms.Set(sample.ReceiverThroughput, total.received)
	if total.sent != nil {
		ms.Set(sample.SenderThroughput, *total.sent)
	}
	return total, whole, nil
}

// readIperf3 decodes one JSON document of iperf3 and ignores text before it.
func readIperf3(text string) (*iperf3Report, error) {
	start := strings.IndexByte(text, '{')
	if start < 0 {
		return nil, noResult("iperf3", "the client printed no JSON: %q", lastWords(text))
	}
	var report iperf3Report
	if err := json.Unmarshal([]byte(text[start:]), &report); err != nil {
		return nil, noResult("iperf3", "the client's JSON is cut short or damaged: %v", err)
	}
	return &report, nil
}

// iperf3Reordered sets the number of late datagrams over the whole run, because the
// intervals have no such number.
func iperf3Reordered(report *iperf3Report, ms sample.Metrics) {
	sum, found := 0.0, false
	for _, s := range report.End.Streams {
		if s.UDP != nil && s.UDP.OutOfOrder != nil {
			sum, found = sum+*s.UDP.OutOfOrder, true
		}
	}
	if found {
		ms.Set(sample.Reordered, sum)
	}
}
