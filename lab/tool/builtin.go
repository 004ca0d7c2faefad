package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/traffic"
)

// Builtin drives the lab's own generator. It supports every workload, and measures
// both ends over the same window.
type Builtin struct{}

func (Builtin) Name() string { return "builtin" }

func (Builtin) Programs() []Program { return nil }

func (t Builtin) Supports(w suite.Workload) error {
	if err := (traffic.Spec{Workload: w, Timing: suite.Timing{Duration: 1}}).Check(); err != nil {
		return cannot(t.Name(), "cannot make this traffic: %v", err)
	}
	return nil
}

// Plan starts the server for one run, and then the client. The client sends the
// settings of the run to the server.
func (t Builtin) Plan(job Job) ([]Process, error) {
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	at := netip.AddrPortFrom(job.Receiver, job.Port).String()
	server := Process{
		Role: "server", On: OnReceiver,
		Argv:  []string{job.Self, "traffic", "server", "-listen", netip.AddrPortFrom(job.listen(), job.Port).String(), "-once", "-wait", "30s"},
		Ready: func(line string) bool { return strings.TrimSpace(line) == "ready" },
	}
	client := Process{
		Role: "client", On: OnSender,
		Argv:  append([]string{job.Self, "traffic", "client", "-connect", at}, builtinFlags(job)...),
		Ready: func(line string) bool { return strings.TrimSpace(line) == "begun" },
		Exact: true,
	}
	if searchTime(job.Workload) > 0 {
		client.Search = traffic.SearchLimit
	}
	return []Process{server, client}, nil
}

func builtinFlags(job Job) []string {
	w := job.Workload
	argv := []string{"-kind", string(w.Kind), "-streams", decimal(w.Streams)}
	if w.Kind.Exchange() {
		argv = append(argv, "-request", decimal(w.Request), "-response", decimal(w.Response))
		if w.Load > 0 {
			argv = append(argv, "-load", decimal(w.Load), "-direction", string(w.Direction))
		}
	} else {
		argv = append(argv, "-direction", string(w.Direction), "-buffer", decimal(w.Buffer))
	}
	for _, o := range []struct {
		flag  string
		value int64
	}{{"-sndbuf", w.SendBuffer}, {"-rcvbuf", w.ReceiveBuffer}, {"-rate", w.Rate}} {
		if o.value > 0 {
			argv = append(argv, o.flag, decimal(o.value))
		}
	}
	for _, o := range []struct {
		flag  string
		value float64
	}{{"-loss", w.Loss}, {"-pace", w.Pace}, {"-of-capacity", w.OfCapacity}, {"-work", w.ReceiverWork}} {
		if o.value > 0 {
			argv = append(argv, o.flag, strconv.FormatFloat(o.value, 'g', -1, 64))
		}
	}
	if w.DSCP > 0 {
		argv = append(argv, "-dscp", w.DSCP.String())
	}
	if w.NoDelay {
		argv = append(argv, "-nodelay")
	}
	if w.IMIX {
		argv = append(argv, "-imix")
	}
	if w.PacketPerSend {
		argv = append(argv, "-packet-per-send")
	}
	if w.Sendfile {
		argv = append(argv, "-sendfile")
	}
	return append(argv, "-warmup", job.Timing.Warmup.String(), "-duration", job.Timing.Duration.String(), "-cooldown", job.Timing.Cooldown.String())
}

// Parse reads the client's JSON, which has the figures of both ends.
func (t Builtin) Parse(job Job, outputs map[string]Output) (Measurement, error) {
	out, err := outputOf(t.Name(), "client", outputs)
	if err != nil {
		return Measurement{}, err
	}
	r, err := readBuiltin(out.Stdout)
	if err != nil {
		return Measurement{}, noResult(t.Name(), "%v: %q", err, lastWords(out.Stdout+" "+out.Stderr))
	}
	if r.Spec.Workload.Kind != job.Workload.Kind {
		return Measurement{}, noResult(t.Name(), "the result is of %s and not of %s", r.Spec.Workload.Kind, job.Workload.Kind)
	}
	m := Measurement{Metrics: sample.Metrics{}, Warnings: append(fragments(job), builtinDoubts(r)...)}
	if job.Workload.Kind.Exchange() {
		err = builtinTransactions(r, &m)
		if pace := r.Spec.Workload.Pace; pace > 0 {
			m.Metrics.Set(sample.OfferedRequests, pace)
		}
	} else {
		builtinStream(r, r.Spec.Workload, m.Metrics)
		m.Began, m.Ended = received(r)
	}
	if err != nil {
		return Measurement{}, noResult(t.Name(), "%v", err)
	}
	m.Metrics.Set(sample.Errors, float64(r.Local.Errors+r.Remote.Errors))
	// Connect/request/response uses too many connections to read the TCP state of
	// each.
	if k := job.Workload.Kind; k == suite.TCPStream || k == suite.TCPRR {
		m.Metrics.Set(sample.ToolRetransmits, float64(r.Local.Retransmits+r.Remote.Retransmits))
	}
	return sound(t.Name(), m)
}

// readBuiltin reads the client's result and checks that it is complete.
func readBuiltin(stdout string) (*traffic.Result, error) {
	r, err := readLine[traffic.Result]("client", stdout)
	switch {
	case err != nil:
		return nil, err
	case r.Version != traffic.ResultVersion:
		return nil, fmt.Errorf("the client's result has version %d, want %d; use the same version of windtunnel at both ends", r.Version, traffic.ResultVersion)
	case r.Remote == nil:
		return nil, fmt.Errorf("the client's result lacks the server's figures; check the server's output")
	case r.Local.Seconds <= 0 || r.Remote.Seconds <= 0:
		return nil, fmt.Errorf("the client's result has a window of 0 s")
	}
	return r, nil
}

// readLine parses the line of JSON in the output of the generator. It fails unless
// the output has exactly one.
func readLine[T any](role, stdout string) (*T, error) {
	var r *T
	for line := range strings.Lines(stdout) {
		if !strings.HasPrefix(strings.TrimSpace(line), "{") {
			continue
		}
		if r != nil {
			return nil, fmt.Errorf("the %s printed two results", role)
		}
		r = new(T)
		if err := json.Unmarshal([]byte(line), r); err != nil {
			return nil, fmt.Errorf("parse the %s's result: %w", role, err)
		}
	}
	if r == nil {
		return nil, fmt.Errorf("the %s printed no result", role)
	}
	return r, nil
}

// builtinDoubts returns a warning if the window differs from the requested one.
func builtinDoubts(r *traffic.Result) (warnings []string) {
	requested := r.Spec.Timing.Duration.Seconds()
	if r.Interrupted {
		warnings = append(warnings, fmt.Sprintf("the run was interrupted: its window is %.3f s instead of %.3f s", r.Local.Seconds, requested))
	} else if math.Abs(r.Local.Seconds-requested) > 0.05*requested || math.Abs(r.Remote.Seconds-requested) > 0.05*requested {
		warnings = append(warnings, fmt.Sprintf("the windows were %.3f s and %.3f s instead of %.3f s: the ends' CPUs were too busy to keep time", r.Local.Seconds, r.Remote.Seconds, requested))
	}
	return warnings
}

// received returns the mean window of the flows at their receivers, as in
// Measurement.Began. Received rates are means over these windows.
func received(r *traffic.Result) (began, ended int64) {
	flows := r.Flows("receive")
	for _, f := range flows {
		began += f.Began / int64(len(flows))
		ended += (f.Began + int64(f.Seconds*1e9)) / int64(len(flows))
	}
	return began, ended
}

func builtinStream(r *traffic.Result, w suite.Workload, ms sample.Metrics) {
	forward, reverse := r.Rate(suite.Forward, "receive"), r.Rate(suite.Reverse, "receive")
	ms.Set(sample.Throughput, forward+reverse)
	ms.Set(sample.ReceiverThroughput, forward+reverse)
	ms.Set(sample.SenderThroughput, r.Rate(suite.Forward, "send")+r.Rate(suite.Reverse, "send"))
	if w.Direction == suite.Both {
		ms.Set(sample.ForwardThroughput, forward)
		ms.Set(sample.ReverseThroughput, reverse)
	}
	if silence := r.Silence(); silence > 0 { // results of earlier versions have none
		ms.Set(sample.Interruption, float64(silence))
	}
	if w.Kind != suite.UDPStream {
		return
	}
	d := r.Datagrams()
	ms.Set(sample.DatagramsSent, d.SentPerS)
	ms.Set(sample.DatagramsReceived, d.ReceivedPerS)
	if d.Counted > 0 {
		ms.Set(sample.LossRatio, float64(d.Lost)/float64(d.Counted))
	}
	if d.Numbered {
		ms.Set(sample.LostDatagrams, float64(d.Lost))
		ms.Set(sample.Reordered, float64(d.Reordered))
	}
	if d.Missing > 0 || d.Numbered && d.Lost == 0 { // else the counters of the network namespace are more exact
		loss := ms[sample.LossRatio]
		socket := 0.0
		if d.Missing > 0 {
			socket = loss * (float64(d.Overflow) / float64(d.Missing)) // never above loss, also when rounded
		}
		ms.Set(sample.SocketLoss, socket)
		ms.Set(sample.PathLoss, loss-socket)
	}
	setOfferedRate(w, ms)
}

func builtinTransactions(r *traffic.Result, m *Measurement) error {
	l := r.Local.Latency
	if r.Local.Transactions <= 0 || l == nil || l.Count <= 0 || l.Histogram == "" {
		return fmt.Errorf("the result has no transactions")
	}
	ms := m.Metrics
	ms.Set(sample.Transactions, r.Local.Transactions)
	ms.Set(sample.LatencyMin, float64(l.Min))
	ms.Set(sample.LatencyMean, l.Mean)
	ms.Set(sample.LatencyP50, float64(l.P50))
	ms.Set(sample.LatencyP90, float64(l.P90))
	ms.Set(sample.LatencyP99, float64(l.P99))
	ms.Set(sample.LatencyP999, float64(l.P999))
	ms.Set(sample.LatencyMax, float64(l.Max))
	m.Latency, m.Course = l.Histogram, l.Course
	if r.Spec.Workload.Load > 0 {
		load := r.Rate(suite.Forward, "receive") + r.Rate(suite.Reverse, "receive")
		if load <= 0 {
			return fmt.Errorf("the result has no traffic of the %d streams beside the requests", r.Spec.Workload.Load)
		}
		ms.Set(sample.LoadThroughput, load)
	}
	if r.Spec.Workload.Kind == suite.UDPRR {
		ms.Set(sample.LossRatio, float64(r.Local.Lost)/float64(r.Local.Lost+l.Count))
	}
	return nil
}
