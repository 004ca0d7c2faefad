package tool

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// NTttcp drives ntttcp-for-linux 1.4: TCP and UDP streams, each connection on a
// separate thread at both ends. It has NTttcp's name and method, but other flags and
// units: -l counts connections, -x names a file, and MB/s are decimal.
type NTttcp struct{}

func (NTttcp) Name() string { return "ntttcp" }

func (NTttcp) Programs() []Program {
	return []Program{{Name: "ntttcp", Build: "none; build it from github.com/microsoft/ntttcp-for-linux", Version: []string{"ntttcp", "-h"}}}
}

// ntttcpStreams is the maximum number of streams. One port of the job is for the
// synchronisation.
const ntttcpStreams = portsPerJob - 1

func (t NTttcp) Supports(w suite.Workload) error {
	return firstRefusal(t, w, []refusal{
		{w.Kind.Exchange(), fmt.Sprintf("supports streams only, not %s", w.Kind)},
		{w.Direction != suite.Forward && w.Direction != "", fmt.Sprintf("sends from the sender only; direction %s is not possible", w.Direction)},
		{w.Streams > ntttcpStreams, fmt.Sprintf("needs a port for each stream; the workload needs %d and a job has %d", w.Streams, ntttcpStreams)},
		{w.SendBuffer > 0 || w.ReceiveBuffer > 0, "for Linux has no option for socket buffers (its -B limits the bandwidth)"},
		{w.Sendfile, "has no sendfile"},
		{w.Kind == suite.UDPStream && w.Rate > 0, "limits the rate of TCP only (--fq-rate-limit)"},
	})
}

// Plan gives every stream a port, and so a thread at each end. The synchronisation
// uses the job's first port, because ntttcp uses the port before the first data port.
// Warm-up, duration and cool-down are each rounded up to whole seconds. The receiver
// ends by itself after the sender.
func (t NTttcp) Plan(job Job) ([]Process, error) {
	w := job.Workload
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	// Arguments that both ends need.
	common := []string{"-m", fmt.Sprintf("%d,*,%s", max(1, w.Streams), job.Receiver), "-p", decimal(job.Port + 1),
		"-W", decimal(ceilSeconds(job.Timing.Warmup)),
		"-t", decimal(max(1, ceilSeconds(job.Timing.Duration))),
		"-C", decimal(ceilSeconds(job.Timing.Cooldown))}
	if w.Buffer > 0 {
		common = append(common, "-b", decimal(w.Buffer))
	}
	if w.IPVersion == 6 {
		common = append(common, "-6")
	}
	if w.Kind == suite.UDPStream {
		common = append(common, "-u")
	}
	if w.NoDelay && w.Kind == suite.TCPStream {
		common = append(common, "--no-delay") // since 1.4.3
	}
	receiver := append([]string{"ntttcp", "-r"}, common...)
	sender := append([]string{"ntttcp", "-s"}, common...)
	sender = append(sender, "-n", "1", "-l", "1", "--show-tcp-retrans")
	if w.Rate > 0 {
		sender = append(sender, "--fq-rate-limit", decimal(w.StreamRate()))
	}
	client := clientProcess("client", sender...)
	client.Ready = ntttcpStarts
	return []Process{{Role: "server", On: OnReceiver, Argv: receiver, Ready: ntttcpReady}, client}, nil
}

// ntttcpStarts recognises the line that the sender prints at the start of its
// traffic.
func ntttcpStarts(line string) bool { return strings.Contains(line, "Network activity progressing") }

// ntttcpReady recognises the line that the receiver prints when all its threads are
// ready.
func ntttcpReady(line string) bool { return strings.Contains(line, "threads created") }

// Parse takes the received data from the receiver. The two ends measure windows of
// slightly different length, so their figures need not be equal.
func (t NTttcp) Parse(job Job, outputs map[string]Output) (Measurement, error) {
	server := outputs["server"]
	client, err := outputOf(t.Name(), "client", outputs)
	if err != nil {
		return Measurement{}, err
	}
	sent, err := readNTttcp(client.Stdout)
	if err != nil {
		return Measurement{}, noResult(t.Name(), "sender: %v: %q", err, lastWords(client.Stdout+" "+client.Stderr))
	}
	received, err := readNTttcp(server.Stdout)
	if err != nil {
		return Measurement{}, noResult(t.Name(), "receiver: %v: %q", err, lastWords(server.Stdout+" "+server.Stderr))
	}
	m := Measurement{Metrics: sample.Metrics{}, Warnings: fragments(job)}
	m.From, m.To = roundedSpan(job.Timing)
	m.Metrics.Set(sample.Throughput, received.bits)
	m.Metrics.Set(sample.ReceiverThroughput, received.bits)
	m.Metrics.Set(sample.SenderThroughput, sent.bits)
	if job.Workload.Kind == suite.TCPStream && sent.retransmits != nil {
		m.Metrics.Set(sample.ToolRetransmits, *sent.retransmits)
	}
	return sound(t.Name(), m)
}

// ntttcpResult has the figures of one end of ntttcp-for-linux after its warm-up.
type ntttcpResult struct {
	bits        float64  // per second
	retransmits *float64 // segments, of the whole network namespace; nil if not printed
}

var ntttcpLines = struct{ duration, total, retransmits *regexp.Regexp }{
	duration:    regexp.MustCompile(`(?m)^\S+ INFO: test duration\s*:(\S+) seconds$`),
	total:       regexp.MustCompile(`(?m)^\S+ INFO: total bytes\s*:(\S+)$`),
	retransmits: regexp.MustCompile(`(?m)^\S+ INFO: \s*retrans segs\s*:(\S+)$`),
}

// readNTttcp reads the result of one end from its text. It divides the total bytes by
// the duration, because the printed throughput has fewer digits.
func readNTttcp(text string) (r ntttcpResult, err error) {
	duration := ntttcpLines.duration.FindStringSubmatch(text)
	total := ntttcpLines.total.FindStringSubmatch(text)
	if duration == nil || total == nil {
		return r, errors.New("the output has no totals")
	}
	seconds, err1 := figure("the test duration", duration[1])
	bytes, err2 := figure("the total bytes", total[1])
	if err := errors.Join(err1, err2); err != nil {
		return r, err
	}
	if seconds <= 0 {
		return r, errors.New("the test has a duration of 0 s")
	}
	if bytes <= 0 {
		return r, errors.New("the test transferred no data")
	}
	r.bits = bytes * 8 / seconds
	if f := ntttcpLines.retransmits.FindStringSubmatch(text); f != nil {
		n, err := figure("the retransmits", f[1])
		if err != nil {
			return r, err
		}
		r.retransmits = &n
	}
	return r, nil
}
