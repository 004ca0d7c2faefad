package tool

import (
	"fmt"

	"windtunnel/lab/sample"
)

// netperfCPU is one of netperf's CPU figures: its selector, the metric, and its
// scale. The client is always on the sender's node.
type netperfCPU struct {
	key     string
	metric  sample.Metric
	scale   float64
	percent bool
}

var netperfCPUs = []netperfCPU{
	{"LOCAL_CPU_UTIL", sample.ToolSenderCPU, 1, true},
	{"REMOTE_CPU_UTIL", sample.ToolReceiverCPU, 1, true},
	{"LOCAL_SD", sample.ToolSenderCPUPerByte, 1e3 / 1024, false}, // µs/KB, whose KB are 1,024 bytes
	{"REMOTE_SD", sample.ToolReceiverCPUPerByte, 1e3 / 1024, false},
}

// toolCPU sets the CPU figures that netperf prints. Each process reads the CPU time of
// the whole machine. So with several processes the CPU figure is their mean. The
// service demands of several processes are omitted. Each of them divides the machine's
// CPU time by the bytes of one process. A process without -c or without figures prints
// −1.
//
// After a TCP_CRR netperf 2.7 divides by a wrong duration at the remote end. If the
// figure exceeds all CPUs, it is omitted with a warning.
func (r *netperfRun) toolCPU(ms sample.Metrics) (warnings []string, err error) {
	for _, c := range netperfCPUs {
		if !c.percent && (len(r.outputs) > 1 || !r.streams()) {
			continue
		}
		sum := 0.0
		complete := true
		for _, o := range r.outputs {
			if text, found := o.values[c.key]; !found || len(text) > 1 && text[0] == '-' {
				complete = false
				break
			}
			v, _, err := o.number(c.key)
			if err != nil {
				return nil, err
			}
			sum += v
		}
		if !complete {
			continue
		}
		v := sum / float64(len(r.outputs)) * c.scale
		const rounding = 1 // percent: /proc/stat counts in ticks
		if c.percent && v > 100+rounding {
			warnings = append(warnings, fmt.Sprintf("netperf's %s of %.0f %% exceeds all CPUs and is omitted: netperf divided by a wrong duration", c.key, v))
			continue
		}
		ms.Set(c.metric, v)
	}
	return warnings, nil
}

// streams reports whether the processes send streams. The service demand of streams is
// for each byte; the service demand of request/response is for each transaction.
func (r *netperfRun) streams() bool {
	switch r.tests[0].name {
	case "TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE":
		return true
	}
	return false
}
