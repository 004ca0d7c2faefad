package tool

import (
	"fmt"
	"math"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Parse sums the figures of the netperf processes. netperf's CPU figures are separate
// from the lab's.
func (t Netperf) Parse(job Job, outputs map[string]Output) (Measurement, error) {
	run, err := t.read(job, outputs)
	if err != nil {
		return Measurement{}, err
	}
	m := Measurement{Metrics: sample.Metrics{}, Warnings: fragments(job)}
	switch w := job.Workload; {
	case w.Kind == suite.UDPStream:
		err = run.udpStream(m.Metrics)
	case w.Kind.Exchange():
		var warning string
		if warning, err = run.transactions(job.Timing, m.Metrics); warning != "" {
			m.Warnings = append(m.Warnings, warning)
		}
	default:
		err = run.tcpStream(job, m.Metrics)
	}
	if err == nil {
		var warnings []string
		warnings, err = run.toolCPU(m.Metrics)
		m.Warnings = append(m.Warnings, warnings...)
	}
	if err != nil {
		return Measurement{}, noResult(t.Name(), "%v", err)
	}
	_, whole := run.window(job.Timing)
	if whole || job.Workload.Kind == suite.UDPStream {
		m.To = wholeRun(job.Timing)
	}
	if whole && job.Timing.Warmup > 0 && job.Workload.Kind != suite.UDPStream {
		m.Warnings = append(m.Warnings, "netperf did not print interim results of the whole window: figures are means over the whole run, warm-up included")
	}
	return sound(t.Name(), m)
}

// netperfRun has the processes of one job, which ran at once.
type netperfRun struct {
	tests   []netperfTest
	outputs []*netperfOutput
}

func (t Netperf) read(job Job, outputs map[string]Output) (*netperfRun, error) {
	unit := "10^6bits/s"
	if job.Workload.Kind.Exchange() {
		unit = "Trans/s"
	}
	run := &netperfRun{tests: t.tests(job)}
	for _, test := range run.tests {
		out, err := outputOf(t.Name(), test.role, outputs)
		if err != nil {
			return nil, err
		}
		o, err := readNetperf(out.Stdout, unit)
		if err != nil {
			return nil, noResult(t.Name(), "%s: %v: %q", test.role, err, lastWords(out.Stdout+" "+out.Stderr))
		}
		run.outputs = append(run.outputs, o)
	}
	return run, nil
}

// window returns the start of the measured part, by the wall clock. It is the end of
// the warm-up after the last process began. whole is true if the output of a process
// covers too little of the measured part.
func (r *netperfRun) window(t suite.Timing) (from float64, whole bool) {
	for _, o := range r.outputs {
		from = max(from, o.begin)
	}
	from += t.Warmup.Seconds()
	for _, o := range r.outputs {
		if _, ok := o.interims.rate(from, from+t.Duration.Seconds()); !ok {
			return from, true
		}
	}
	return from, false
}

// rates returns the rate of each process: over the same period if all outputs cover
// it, else over each process's whole run.
func (r *netperfRun) rates(t suite.Timing) []float64 {
	rates := make([]float64, len(r.outputs))
	from, whole := r.window(t)
	for i, o := range r.outputs {
		rates[i] = o.rate
		if !whole {
			rates[i], _ = o.interims.rate(from, from+t.Duration.Seconds())
		}
	}
	return rates
}

// tcpStream sets throughputs. Interim results are from the client's end. TCP loses no
// data. So within a window the data of the other end differs at most by the size of
// the sockets' buffers.
func (r *netperfRun) tcpStream(job Job, ms sample.Metrics) error {
	var forward, reverse float64
	for i, rate := range r.rates(job.Timing) {
		if r.tests[i].reverse {
			reverse += rate
		} else {
			forward += rate
		}
	}
	ms.Set(sample.Throughput, forward+reverse)
	switch job.Workload.Direction {
	case suite.Both:
		if forward == 0 || reverse == 0 {
			return fmt.Errorf("one of the two directions carried no data")
		}
		ms.Set(sample.ForwardThroughput, forward)
		ms.Set(sample.ReverseThroughput, reverse)
	case suite.Reverse:
		ms.Set(sample.ReceiverThroughput, reverse)
	default:
		ms.Set(sample.SenderThroughput, forward)
	}
	return r.retransmits(ms)
}

// retransmits sums the retransmitted segments of both ends' sockets over the whole
// run. If the figure of one process is missing, the sum would be wrong and is omitted.
// netperf prints −1 if the kernel has no figure.
func (r *netperfRun) retransmits(ms sample.Metrics) error {
	sum := 0.0
	for _, o := range r.outputs {
		for _, key := range []string{"LOCAL_TRANSPORT_RETRANS", "REMOTE_TRANSPORT_RETRANS"} {
			if o.values[key] == "-1" {
				return nil
			}
			n, found, err := o.number(key)
			if err != nil || !found {
				return err
			}
			sum += n
		}
	}
	ms.Set(sample.ToolRetransmits, sum)
	return nil
}

// udpStream sets both ends' figures over the whole run: UDP has no slow start, and
// the receiver prints no interim results.
func (r *netperfRun) udpStream(ms sample.Metrics) error {
	var sent, received, out, in, perSecondOut, perSecondIn float64
	for _, o := range r.outputs {
		keys := []string{"LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT", "LOCAL_SEND_CALLS", "REMOTE_RECV_CALLS", "ELAPSED_TIME"}
		v := make([]float64, len(keys))
		for i, key := range keys {
			n, found, err := o.number(key)
			if err != nil {
				return err
			}
			if !found {
				return fmt.Errorf("the output lacks %s", key)
			}
			v[i] = n
		}
		sent, received = sent+v[0]*1e6, received+v[1]*1e6 // planned with -f m
		out, in = out+v[2], in+v[3]
		if v[4] > 0 {
			perSecondOut, perSecondIn = perSecondOut+v[2]/v[4], perSecondIn+v[3]/v[4]
		}
	}
	ms.Set(sample.Throughput, received)
	ms.Set(sample.ReceiverThroughput, received)
	ms.Set(sample.SenderThroughput, sent)
	ms.Set(sample.DatagramsSent, perSecondOut)
	ms.Set(sample.DatagramsReceived, perSecondIn)
	if out > 0 {
		ms.Set(sample.LossRatio, max(0, 1-in/out))
	}
	return nil
}

// transactions sets rates within the window and latencies over the whole run.
// Percentiles of several processes cannot be merged and are omitted.
func (r *netperfRun) transactions(t suite.Timing, ms sample.Metrics) (warning string, err error) {
	rates := r.rates(t)
	total := 0.0
	for _, rate := range rates {
		total += rate
	}
	ms.Set(sample.Transactions, total)
	if len(r.outputs) > 1 {
		return "netperf's processes do not print their distributions, so latency percentiles are omitted", r.mergedLatency(rates, ms)
	}
	for key, metric := range netperfLatencies {
		µs, found, err := r.outputs[0].number(key)
		if err != nil {
			return "", err
		}
		if found {
			ms.Set(metric, µs*1e3)
		}
	}
	return "", nil
}

// netperfLatencies maps selectors to metrics. All values except the mean are in whole
// microseconds.
var netperfLatencies = map[string]sample.Metric{
	"MIN_LATENCY":  sample.LatencyMin,
	"MEAN_LATENCY": sample.LatencyMean,
	"P50_LATENCY":  sample.LatencyP50,
	"P90_LATENCY":  sample.LatencyP90,
	"P99_LATENCY":  sample.LatencyP99,
	"MAX_LATENCY":  sample.LatencyMax,
}

// mergedLatency sets the extremes and the mean, weighted by transactions.
func (r *netperfRun) mergedLatency(rates []float64, ms sample.Metrics) error {
	least, most := math.Inf(1), 0.0
	weighted, weight := 0.0, 0.0
	for i, o := range r.outputs {
		low, found1, err1 := o.number("MIN_LATENCY")
		mean, found2, err2 := o.number("MEAN_LATENCY")
		high, found3, err3 := o.number("MAX_LATENCY")
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				return err
			}
		}
		if !found1 || !found2 || !found3 {
			return nil
		}
		least, most = min(least, low), max(most, high)
		weighted, weight = weighted+mean*rates[i], weight+rates[i]
	}
	if weight > 0 {
		ms.Set(sample.LatencyMin, least*1e3)
		ms.Set(sample.LatencyMean, weighted/weight*1e3)
		ms.Set(sample.LatencyMax, most*1e3)
	}
	return nil
}
