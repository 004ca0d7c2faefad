package tool

import (
	"fmt"
	"strings"

	"windtunnel/lab/suite"
)

// Sockperf drives sockperf 3.7: round trips with their distribution, and streams of
// messages, over one connection. Each message is one send call and has at most 65507
// bytes.
type Sockperf struct{}

func (Sockperf) Name() string { return "sockperf" }

func (Sockperf) Programs() []Program {
	return []Program{{Name: "sockperf", Version: []string{"sockperf", "--version"}}}
}

// sockperfHeader is the size of sockperf's header in bytes, and so the smallest
// message.
const sockperfHeader = 14

// sockperfMost is the size of its largest message: a UDP datagram over IPv4.
const sockperfMost = 65507

func (t Sockperf) Supports(w suite.Workload) error {
	size := sockperfMessage(w)
	return firstRefusal(t, w, []refusal{
		{w.Kind == suite.TCPCRR, "uses one connection for all requests, so it does not measure connecting"},
		{w.IPVersion == 6, "3.7, the version of the distributions, supports IPv4 only"},
		{w.Streams > 1, fmt.Sprintf("runs one connection, not %d", w.Streams)},
		{!w.Kind.Exchange() && w.Direction != suite.Forward && w.Direction != "", fmt.Sprintf("sends streams from the client only; direction %s is not possible", w.Direction)},
		{w.Kind.Exchange() && w.Request != w.Response, fmt.Sprintf("sends responses of the request's size; request %d and response %d differ", w.Request, w.Response)},
		{size < sockperfHeader, fmt.Sprintf("needs messages of at least %d bytes for its header; the workload has %d", sockperfHeader, size)},
		{size > sockperfMost, fmt.Sprintf("sends messages of at most %d bytes, over TCP too; the workload has %d", sockperfMost, size)},
		{w.Sendfile, "has no sendfile"},
		{w.Kind.Exchange() && w.SendBuffer != w.ReceiveBuffer, fmt.Sprintf("sets one size for send and receive buffers of an end (--buffer-size); the workload has %d and %d bytes", w.SendBuffer, w.ReceiveBuffer)},
	})
}

// sockperfMessage is the size of one message.
func sockperfMessage(w suite.Workload) int64 {
	if w.Kind.Exchange() {
		return w.Request
	}
	return w.Buffer
}

// Plan runs for warm-up, duration and cool-down together, in whole seconds. In
// ping-pong mode sockperf omits its first 400 ms and its last 50 ms. The client sleeps
// two seconds before its traffic; no option changes this. It prints a line when the
// traffic begins.
func (t Sockperf) Plan(job Job) ([]Process, error) {
	w := job.Workload
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	address := []string{"-i", job.Receiver.String(), "-p", decimal(job.Port)}
	if !w.Kind.UDP() {
		address = append(address, "--tcp")
	}
	if w.DSCP > 0 {
		address = append(address, "--tos", decimal(w.DSCP.TOS()))
	}
	server := serverProcess(job, append([]string{"sockperf", "server"}, address...)...)
	server.UDP = w.Kind.UDP()
	mode := "throughput"
	if w.Kind.Exchange() {
		mode = "ping-pong"
	}
	client := append([]string{"sockperf", mode}, address...)
	client = append(client, "-m", decimal(sockperfMessage(w)), "-t", decimal(wholeSeconds(job.Timing)))
	if w.Kind.Exchange() {
		client = append(client, "--full-rtt")
	}
	if w.Rate > 0 {
		client = append(client, "--mps="+decimal(max(1, w.Rate/(8*w.Buffer))))
	}
	// On a one-way stream only the sender's send buffer and the receiver's receive
	// buffer matter. --buffer-size sets both buffers of an end.
	if w.SendBuffer > 0 {
		client = append(client, "--buffer-size", decimal(w.SendBuffer))
	}
	if w.ReceiveBuffer > 0 {
		server.Argv = append(server.Argv, "--buffer-size", decimal(w.ReceiveBuffer))
	}
	// --tcp-avoid-nodelay inverts the default of the mode. By default TCP_NODELAY is
	// off in throughput mode, and on in ping-pong mode and at the server.
	switch {
	case w.Kind == suite.TCPStream && w.NoDelay:
		client = append(client, "--tcp-avoid-nodelay")
	case w.Kind == suite.TCPRR && !w.NoDelay:
		client = append(client, "--tcp-avoid-nodelay")
		server.Argv = append(server.Argv, "--tcp-avoid-nodelay")
	}
	process := clientProcess("client", client...)
	process.Ready = sockperfStarts
	return []Process{server, process}, nil
}

// sockperfStarts recognises the line that the client prints at the start of its
// traffic.
func sockperfStarts(line string) bool { return strings.Contains(line, "Starting test") }
