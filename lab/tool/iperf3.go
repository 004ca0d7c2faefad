package tool

import (
	"fmt"

	"windtunnel/lab/suite"
)

// Iperf3 drives iperf3 (ESnet): TCP and UDP streams, one way or both ways at once.
// Before 3.16 all streams of one end share a thread.
type Iperf3 struct{}

func (Iperf3) Name() string { return "iperf3" }

func (Iperf3) Programs() []Program {
	return []Program{{Name: "iperf3", Version: []string{"iperf3", "--version"}}}
}

// iperf3MaxStreams is MAX_STREAMS of iperf3's source.
const iperf3MaxStreams = 128

func (t Iperf3) Supports(w suite.Workload) error {
	return firstRefusal(t, w, []refusal{
		{!w.Kind.Stream(), fmt.Sprintf("supports streams only, not %s", w.Kind)},
		{w.Streams > iperf3MaxStreams, fmt.Sprintf("runs at most %d streams, not %d", iperf3MaxStreams, w.Streams)},
		{w.SendBuffer != w.ReceiveBuffer, fmt.Sprintf("sets one size (-w) for send and receive buffers of both ends; the workload has %d and %d bytes", w.SendBuffer, w.ReceiveBuffer)},
		{w.Kind == suite.UDPStream && w.Buffer < 16, fmt.Sprintf("needs 16 bytes in each datagram for its header; the workload has %d", w.Buffer)},
	})
}

// Plan runs for warm-up, duration and cool-down together, in whole seconds, as -t
// requires. It does not use -O, which takes whole seconds only. With intervals of 100
// ms, any window is possible. The client's JSON includes the server's intervals
// (--get-server-output), so that the received data is known too.
func (t Iperf3) Plan(job Job) ([]Process, error) {
	w := job.Workload
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	server := serverProcess(job, "iperf3", "-s", "-p", decimal(job.Port), "-B", job.listen().String(), "-J", "-i", "0.1")
	argv := []string{"iperf3", "-c", job.Receiver.String(), "-p", decimal(job.Port),
		"-J", "-i", "0.1", "--get-server-output", "--connect-timeout", "5000",
		"-t", decimal(wholeSeconds(job.Timing)), "-P", decimal(max(1, w.Streams))}
	argv = append(argv, iperf3Options(w)...)
	return []Process{server, clientProcess("client", argv...)}, nil
}

func iperf3Options(w suite.Workload) (argv []string) {
	if w.IPVersion == 6 {
		argv = append(argv, "-6")
	}
	if w.Buffer > 0 {
		argv = append(argv, "-l", decimal(w.Buffer))
	}
	switch {
	case w.Kind == suite.UDPStream && w.Rate > 0:
		argv = append(argv, "-u", "-b", decimal(w.StreamRate()))
	case w.Kind == suite.UDPStream:
		argv = append(argv, "-u", "-b", "0") // its default is 1 Mbit/s
	case w.Rate > 0:
		// SO_MAX_PACING_RATE: the kernel limits the rate, so the sender needs no
		// timer.
		argv = append(argv, "--fq-rate", decimal(w.StreamRate()))
	}
	if w.SendBuffer > 0 {
		argv = append(argv, "-w", decimal(w.SendBuffer))
	}
	if w.NoDelay && w.Kind == suite.TCPStream {
		argv = append(argv, "-N")
	}
	if w.DSCP > 0 {
		argv = append(argv, "-S", decimal(w.DSCP.TOS())) // the client tells the server
	}
	if w.Sendfile {
		argv = append(argv, "-Z")
	}
	switch w.Direction {
	case suite.Reverse:
		argv = append(argv, "-R")
	case suite.Both:
		argv = append(argv, "--bidir")
	}
	return argv
}
