package tool

import (
	"fmt"
	"strconv"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Qperf drives qperf 0.4.11: bandwidth and latency of one TCP or UDP
// connection, sent by the client. It has no warm-up: figures are means over
// the whole run.
type Qperf struct{}

func (Qperf) Name() string { return "qperf" }

func (Qperf) Programs() []Program {
	return []Program{{Name: "qperf", Version: []string{"qperf", "--version"}}}
}

// oneSegment is a message that fits one TCP segment on any IPv6 link. Nagle's
// algorithm never holds back a request that fits one segment and awaits its
// answer, so that TCP_NODELAY then makes no difference.
const oneSegment = 1220

func (t Qperf) Supports(w suite.Workload) error {
	return firstRefusal(t, w, []refusal{
		{w.Kind == suite.TCPCRR, "uses one connection for all requests, so it does not measure connecting"},
		{w.Streams > 1, fmt.Sprintf("runs one connection, not %d: its server accepts one client at a time", w.Streams)},
		{!w.Kind.Exchange() && w.Direction != suite.Forward && w.Direction != "", fmt.Sprintf("sends from the client only over sockets (--flip is for RDMA); direction %s is not possible", w.Direction)},
		{w.Kind.Exchange() && w.Request != w.Response, fmt.Sprintf("sends responses of the request's size; request %d and response %d differ", w.Request, w.Response)},
		{w.Rate > 0, "cannot limit the rate"},
		{w.Sendfile, "has no sendfile"},
		{w.SendBuffer > 0, fmt.Sprintf("sets socket buffers of its server only; a send buffer of %d bytes cannot be set", w.SendBuffer)},
		{w.Kind.Exchange() && w.ReceiveBuffer > 0, "sets socket buffers of its server only, but in request/response both ends receive"},
		{w.NoDelay && w.Kind == suite.TCPStream, "cannot set TCP_NODELAY"},
		{w.NoDelay && w.Kind == suite.TCPRR && w.Request > oneSegment, fmt.Sprintf("cannot set TCP_NODELAY, which matters for messages above one segment (%d bytes)", oneSegment)},
	})
}

// qperfTests are the names of qperf's tests by kind of traffic.
var qperfTests = map[suite.Kind]string{
	suite.TCPStream: "tcp_bw",
	suite.UDPStream: "udp_bw",
	suite.TCPRR:     "tcp_lat",
	suite.UDPRR:     "udp_lat",
}

// Plan runs for warm-up, duration and cool-down together, in whole seconds: a fraction
// of a second makes qperf hang. -uu prints bytes and nanoseconds. -vvs and -vvt add
// the counters of each end. The test conf after the traffic describes the machines of
// both ends.
func (t Qperf) Plan(job Job) ([]Process, error) {
	w := job.Workload
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	size := w.Buffer
	if w.Kind.Exchange() {
		size = w.Request
	}
	argv := []string{"qperf", job.Receiver.String(), "-lp", decimal(job.Port), "-ip", decimal(job.Port + 1),
		"-t", decimal(wholeSeconds(job.Timing)), "-m", decimal(size)}
	if w.ReceiveBuffer > 0 {
		argv = append(argv, "-rsb", decimal(w.ReceiveBuffer))
	}
	argv = append(argv, "-uu", "-vvs", "-vvt", qperfTests[w.Kind], "conf")
	return []Process{
		serverProcess(job, "qperf", "-lp", decimal(job.Port)),
		clientProcess("client", argv...),
	}, nil
}

func (t Qperf) Parse(job Job, outputs map[string]Output) (Measurement, error) {
	out, err := outputOf(t.Name(), "client", outputs)
	if err != nil {
		return Measurement{}, err
	}
	test := qperfTests[job.Workload.Kind]
	values, err := readQperf(out.Stdout, test)
	if err != nil {
		return Measurement{}, noResult(t.Name(), "%v: %q", err, lastWords(out.Stdout+" "+out.Stderr))
	}
	m := Measurement{Metrics: sample.Metrics{}, Warnings: append(fragments(job), shortRun(t.Name(), job)...), To: wholeRun(job.Timing)}
	switch job.Workload.Kind {
	case suite.TCPRR, suite.UDPRR:
		err = values.roundTrips(m.Metrics)
	default:
		err = values.stream(m.Metrics, job.Workload.Kind == suite.UDPStream)
	}
	if err != nil {
		return Measurement{}, noResult(t.Name(), "%v: %q", err, lastWords(out.Stdout))
	}
	values.qperfCPU(out.Stdout, m.Metrics)
	return sound(t.Name(), m)
}

// qperfValues are the figures of one test: bytes, bytes per second,
// nanoseconds and counts.
type qperfValues map[string]float64

// qperfUnits converts qperf's output without -uu. Its prefixes are decimal.
var qperfUnits = map[string]float64{
	"bytes/sec": 1, "KB/sec": 1e3, "MB/sec": 1e6, "GB/sec": 1e9, "TB/sec": 1e12,
	"bits/sec": 1. / 8, "Kb/sec": 1e3 / 8, "Mb/sec": 1e6 / 8, "Gb/sec": 1e9 / 8, "Tb/sec": 1e12 / 8,
	"ns": 1, "us": 1e3, "ms": 1e6, "sec": 1e9,
	"bytes": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	"/sec": 1, "K/sec": 1e3, "M/sec": 1e6, "": 1,
	"% cpus": 1,
}

// readQperf parses the section of one test. It ignores figures with other units than
// qperfUnits has, such as cost.
func readQperf(text, test string) (qperfValues, error) {
	values, inside, found := qperfValues{}, false, false
	for _, line := range strings.Split(text, "\n") {
		if name, isTitle := strings.CutSuffix(strings.TrimSpace(line), ":"); isTitle && !strings.Contains(name, "=") {
			inside = name == test
			found = found || inside
			continue
		}
		key, rest, isFigure := strings.Cut(line, "=")
		if !inside || !isFigure {
			continue
		}
		number, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		scale, known := qperfUnits[strings.TrimSpace(unit)]
		if !known {
			continue
		}
		key = strings.TrimSpace(key)
		v, err := figure(key, number)
		if err != nil {
			return nil, err
		}
		values[key] = v * scale
	}
	if !found {
		return nil, fmt.Errorf("the output has no section %s", test)
	}
	return values, nil
}

// perSecond returns a count divided by the duration of the end that counted it.
func (v qperfValues) perSecond(count, nanoseconds string) (float64, bool) {
	n, found := v[count]
	ns := v[nanoseconds]
	return n / (ns / 1e9), found && ns > 0
}

// stream sets throughputs and, for UDP, datagrams; the receiver's bw is the
// throughput.
func (v qperfValues) stream(ms sample.Metrics, udp bool) error {
	received, found := v["bw"]
	if udp {
		received, found = v["recv_bw"]
	}
	if !found {
		return fmt.Errorf("the output lacks the receiver's bandwidth")
	}
	ms.Set(sample.Throughput, received*8)
	ms.Set(sample.ReceiverThroughput, received*8)
	if sent, found := v["send_bw"]; found {
		ms.Set(sample.SenderThroughput, sent*8)
	} else if sent, found := v.perSecond("send_bytes", "send_real_time"); found {
		ms.Set(sample.SenderThroughput, sent*8)
	}
	if !udp {
		return nil
	}
	if n, found := v.perSecond("send_msgs", "send_real_time"); found {
		ms.Set(sample.DatagramsSent, n)
	}
	if n, found := v.perSecond("recv_msgs", "recv_real_time"); found {
		ms.Set(sample.DatagramsReceived, n)
	}
	sent, found1 := v["send_msgs"]
	arrived, found2 := v["recv_msgs"]
	if found1 && found2 && sent > 0 {
		ms.Set(sample.LossRatio, max(0, 1-arrived/sent))
	}
	return nil
}

// roundTrips sets the mean latency and the transactions. qperf's latency is
// half a round trip and its msg_rate counts both directions.
func (v qperfValues) roundTrips(ms sample.Metrics) error {
	oneWay, found := v["latency"]
	if !found || oneWay <= 0 {
		return fmt.Errorf("the output lacks the latency")
	}
	ms.Set(sample.LatencyMean, 2*oneWay)
	if n, found := v.perSecond("loc_recv_msgs", "loc_real_time"); found {
		ms.Set(sample.Transactions, n)
	} else {
		ms.Set(sample.Transactions, 1e9/(2*oneWay))
	}
	return nil
}

// qperfCPU sets the CPU figures that qperf prints. cpus_used is in percent of one CPU,
// summed over the machine's CPUs. The section conf has the number of CPUs. If one of
// the two is missing, qperfCPU sets nothing.
func (v qperfValues) qperfCPU(text string, ms sample.Metrics) {
	for _, end := range []struct {
		metric sample.Metric
		used   []string // by kind of test
		cpu    string
	}{
		{sample.ToolSenderCPU, []string{"send_cpus_used", "loc_cpus_used"}, "loc_cpu"},
		{sample.ToolReceiverCPU, []string{"recv_cpus_used", "rem_cpus_used"}, "rem_cpu"},
	} {
		cores, found := qperfCores(text, end.cpu)
		if !found {
			continue
		}
		for _, key := range end.used {
			if used, found := v[key]; found {
				ms.Set(end.metric, used/cores)
			}
		}
	}
}

// qperfCores parses the number of CPUs from a line of conf such as "loc_cpu = 2
// Cores: Intel Xeon @ 2.10GHz".
func qperfCores(text, key string) (n float64, found bool) {
	for line := range strings.Lines(text) {
		name, cpu, isFigure := strings.Cut(line, "=")
		number, _, counted := strings.Cut(cpu, " Cores:")
		if !isFigure || !counted || strings.TrimSpace(name) != key {
			continue
		}
		cores, err := strconv.Atoi(strings.TrimSpace(number))
		return float64(cores), err == nil && cores > 0
	}
	return 0, false
}
