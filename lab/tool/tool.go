// Package tool has the drivers of traffic programs. A driver plans which program runs
// on which endpoint, recognises when the program is ready, and parses its output.
// Drivers are pure: they start no process, and use no file, clock or socket.
package tool

import (
	"net/netip"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Tool is one traffic program. A driver is one file and one line in Registry.
type Tool interface {
	Name() string
	// Programs are the executables it needs on the endpoints; none for the
	// built-in generator.
	Programs() []Program
	// Supports returns nil, or the reason why the tool cannot generate this traffic.
	Supports(w suite.Workload) error
	// Plan returns the processes of one trial in their starting order. The last
	// process ends by itself, and its end ends the trial.
	Plan(job Job) ([]Process, error)
	// Parse reads the measurement from the outputs of the processes, by role. An
	// output without a result is an error, never zero.
	Parse(job Job, outputs map[string]Output) (Measurement, error)
}

// Program is an executable that a tool needs.
type Program = program.Program

// Job is the traffic between one pair of endpoints.
type Job struct {
	Workload suite.Workload
	Timing   suite.Timing
	Sender   netip.Addr // the endpoint on the first node
	Receiver netip.Addr // the endpoint on the second node (or the same, colocated)
	// Listen is the receiver's own address if that is not Receiver, because NAT replaces
	// Receiver by Listen. See BehindNAT.
	Listen netip.Addr
	Port   uint16 // first port the job may use; it may use the next 15 too
	MTU    int    // of the endpoints' devices: a UDP payload above it fragments
	// Self is the path of the windtunnel program on the endpoints.
	Self string
}

// Side is where a process runs.
type Side string

const (
	OnSender   Side = "sender"
	OnReceiver Side = "receiver"
)

// Process is one program to run.
type Process struct {
	Role string // "server" or "client"; the key of its output
	On   Side
	Argv []string
	// Ready reports whether a line of stdout or stderr says that the next process may
	// start. If Ready is nil, the process is ready when Port listens. Ready of the
	// last process says that traffic begins. If it is nil, traffic begins when the
	// process starts.
	Ready func(line string) bool
	// Exact: the process starts and ends its window at the times of Job.Timing after it is ready, to a few milliseconds, and
	// it sends during the cool-down. So the meters can be read before and after its window, while traffic flows.
	Exact bool
	// Search is the longest time of what the process does before it is ready, beside its start.
	Search time.Duration
	// Port is the port on which the process listens, in the endpoint's namespace, when
	// it is ready. It is 0 if Ready decides, or if the next process need not wait.
	Port uint16
	UDP  bool // Port is a UDP port
	// Stays: the process does not end by itself. It gets SIGINT after the last
	// process has ended, and its exit code is ignored.
	Stays bool
}

// Output is the output of a process.
type Output struct {
	Stdout, Stderr string
	Exit           int // −1 if a signal ended it
}

// Measurement has the tool's figures of one job.
type Measurement struct {
	Metrics sample.Metrics
	Latency string // HdrHistogram V2 compressed base64, ns; empty if the tool has none
	// Course has the round trips over time, since the measured part began; empty if the
	// tool does not print them.
	Course   []sample.RoundTrips
	Warnings []string // remarks about figures that are still valid
	// From and To are the edges of the period over which the rates are means, since
	// traffic began. Both are 0 if this period is the measured part of the timing.
	From, To time.Duration
	// Began and Ended are the real edges of the same period: CLOCK_MONOTONIC of the
	// receivers' kernel, ns. Both are 0 if the tool does not print them.
	Began, Ended int64
}

// Span returns the period over which the rates are means, since traffic began.
func (m Measurement) Span(t suite.Timing) (from, to time.Duration) {
	if m.To > 0 {
		return m.From, m.To
	}
	return t.Warmup, t.Warmup + t.Duration
}

// Registry returns every tool, in the order of lists for users. The built-in generator
// is first, because every machine has it.
func Registry() []Tool {
	return []Tool{
		Builtin{},
		Iperf3{},
		Netperf{},
		Qperf{},
		Sockperf{},
		NTttcp{},
		BuiltinNTttcp{},
		Fio{},
	}
}

// ByName returns the tool with the given name.
func ByName(name string) (t Tool, ok bool) {
	for _, t := range Registry() {
		if t.Name() == name {
			return t, true
		}
	}
	return nil, false
}

// Names lists the names that ByName knows, in Registry's order.
func Names() []string {
	var names []string
	for _, t := range Registry() {
		names = append(names, t.Name())
	}
	return names
}
