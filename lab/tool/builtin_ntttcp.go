package tool

import (
	"fmt"
	"math"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/traffic"
)

// BuiltinNTttcp runs the lab's generator with NTttcp's command line (`windtunnel
// ntttcp`). So a test published with NTttcp's arguments runs with the same
// arguments. The generator prints the text of NTttcp 5.40, and the same figures as
// JSON, which Parse reads.
type BuiltinNTttcp struct{}

func (BuiltinNTttcp) Name() string { return "builtin-ntttcp" }

func (BuiltinNTttcp) Programs() []Program { return nil }

func (t BuiltinNTttcp) Supports(w suite.Workload) error {
	return firstRefusal(t, w, []refusal{
		{w.Kind.Exchange(), fmt.Sprintf("supports streams only, not %s", w.Kind)},
		{w.Direction != suite.Forward && w.Direction != "", fmt.Sprintf("sends from the sender only; direction %s is not possible", w.Direction)},
		{w.Streams > ntttcpStreams, fmt.Sprintf("needs a port for each stream; the workload needs %d and a job has %d", w.Streams, ntttcpStreams)},
		{w.Sendfile, "has no sendfile"},
		{w.Rate > 0 && !ntttcpPaces(w), fmt.Sprintf("limits the rate in steps of 1 KiB/s (-thr); %d bit/s in %d streams would be wrong by more than 1 %%", w.Rate, max(1, w.Streams))},
	})
}

// throttle is the argument of -thr: KiB per second of each thread.
func throttle(w suite.Workload) int64 { return int64(math.Round(float64(w.StreamRate()) / 8 / 1024)) }

func ntttcpPaces(w suite.Workload) bool {
	wanted := float64(w.StreamRate())
	return math.Abs(float64(throttle(w))*1024*8-wanted) <= 0.01*wanted
}

// Plan gives each end the arguments of the published documents. The receiver gets the
// size of its socket buffer, the sender the length of its send buffers. The
// synchronisation uses the job's first port, because NTttcp uses the port before the
// first data port. Warm-up, duration and cool-down are each rounded up to whole
// seconds. If the timing has whole seconds, NTttcp's window is equal to the meter's.
// The receiver ends by itself after the sender.
func (t BuiltinNTttcp) Plan(job Job) ([]Process, error) {
	w := job.Workload
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	receiver := t.argv(job, "-r")
	if w.ReceiveBuffer > 0 {
		receiver = append(receiver, "-rb", ntttcpSize(w.ReceiveBuffer))
	}
	sender := t.argv(job, "-s")
	if w.Buffer > 0 {
		sender = append(sender, "-l", ntttcpSize(w.Buffer))
	}
	if w.SendBuffer > 0 {
		sender = append(sender, "-sb", ntttcpSize(w.SendBuffer))
	}
	if w.Rate > 0 {
		sender = append(sender, "-thr", decimal(throttle(w)))
	}
	client := clientProcess("client", append(sender, "-json")...)
	client.Ready = ntttcpStarts
	return []Process{{Role: "server", On: OnReceiver, Argv: append(receiver, "-json"), Port: job.Port}, client}, nil
}

// argv returns the arguments that both ends share.
func (t BuiltinNTttcp) argv(job Job, role string) []string {
	w := job.Workload
	argv := []string{job.Self, "ntttcp", role, "-m", fmt.Sprintf("%d,*,%s", max(1, w.Streams), job.Receiver),
		"-p", decimal(job.Port + 1), "-t", decimal(max(1, ceilSeconds(job.Timing.Duration)))}
	if job.Timing.Warmup > 0 {
		argv = append(argv, "-wu", decimal(ceilSeconds(job.Timing.Warmup)))
	}
	if job.Timing.Cooldown > 0 {
		argv = append(argv, "-cd", decimal(ceilSeconds(job.Timing.Cooldown)))
	}
	if w.IPVersion == 6 {
		argv = append(argv, "-6")
	}
	if w.Kind == suite.UDPStream {
		argv = append(argv, "-u")
	}
	if w.NoDelay && w.Kind == suite.TCPStream {
		argv = append(argv, "-ndl")
	}
	return argv
}

// ntttcpSize prints a size in NTttcp's binary units: 128k, 2M.
func ntttcpSize(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return decimal(n>>20) + "M"
	case n >= 1<<10 && n%(1<<10) == 0:
		return decimal(n>>10) + "k"
	}
	return decimal(n)
}

// Parse reads the figures of both ends. Both ends measure the same window, because
// they agree on its start.
func (t BuiltinNTttcp) Parse(job Job, outputs map[string]Output) (Measurement, error) {
	var ends [2]*traffic.NTttcpResult
	for i, role := range []string{"client", "server"} {
		out, ran := outputs[role]
		if !ran {
			return Measurement{}, noResult(t.Name(), "there is no output of the %s", role)
		}
		if role == "client" && out.Exit != 0 {
			return Measurement{}, exitError(t.Name(), role, out)
		}
		r, err := readLine[traffic.NTttcpResult](role, out.Stdout)
		if err == nil && (r.Bytes <= 0 || r.Seconds <= 0) {
			err = fmt.Errorf("the %s reports %d bytes in %g s, and both must be above 0; check that the peer ran", role, r.Bytes, r.Seconds)
		}
		if err != nil {
			return Measurement{}, noResult(t.Name(), "%s: %v: %q", role, err, lastWords(out.Stdout+" "+out.Stderr))
		}
		ends[i] = r
	}
	m := Measurement{Metrics: ntttcpMetrics(job.Workload, ends[0], ends[1]), Warnings: fragments(job)}
	m.From, m.To = roundedSpan(job.Timing)
	return sound(t.Name(), m)
}

// ntttcpMetrics combines the figures of both ends. As in NTttcp, the errors are of the
// whole machine: failed connection attempts, or datagrams that could not be delivered.
func ntttcpMetrics(w suite.Workload, client, server *traffic.NTttcpResult) sample.Metrics {
	sent, received := float64(client.Bytes)*8/client.Seconds, float64(server.Bytes)*8/server.Seconds
	ms := sample.Metrics{
		sample.Throughput:         received,
		sample.ReceiverThroughput: received,
		sample.SenderThroughput:   sent,
		sample.ToolSenderCPU:      client.CPU,
		sample.ToolReceiverCPU:    server.CPU,
		sample.Errors:             float64(client.Errors + server.Errors),
	}
	for metric, size := range map[sample.Metric]float64{sample.ToolSenderFrame: client.FrameSize, sample.ToolReceiverFrame: server.FrameSize} {
		if size > 0 {
			ms.Set(metric, size)
		}
	}
	if w.Kind == suite.UDPStream {
		// NTttcp's packet counters include the whole machine. So the number of
		// datagrams is computed from the payload.
		if bits := float64(w.Buffer) * 8; bits > 0 {
			setDatagrams(w, sent/bits, received/bits, ms)
		}
	} else {
		ms.Set(sample.ToolSenderRetransmits, float64(client.Retransmits))
		ms.Set(sample.ToolReceiverRetransmits, float64(server.Retransmits))
		ms.Set(sample.ToolRetransmits, float64(client.Retransmits+server.Retransmits))
	}
	return ms
}
