package sample

import "time"

// Sample has the figures of one trial of one scenario, or the reason why it has none.
type Sample struct {
	Scenario string        `json:"scenario"` // the scenario's id in the plan
	Block    int           `json:"block"`    // from 0; every scenario runs once in a block
	Position int           `json:"position"` // position in the order of the block, from 0
	Attempt  int           `json:"attempt"`  // 0, or the number of earlier attempts at the same trial
	Started  time.Time     `json:"started"`
	Took     time.Duration `json:"took_ns"`
	Failure  *Failure      `json:"failure,omitempty"`
	// Gates are the failed checks of conditions. The sample keeps its figures, but no
	// summary includes them.
	Gates []Gate `json:"gates,omitempty"`
	// Flags are failed checks that do not exclude the figures: checks of outcomes, and
	// with --gates warn also checks of conditions.
	Flags []Gate `json:"flags,omitempty"`
	// Profiled: the CPU profiler ran during the trial and used CPU time. The figures
	// only serve to compute this CPU cost.
	Profiled bool    `json:"profiled,omitempty"`
	Metrics  Metrics `json:"metrics,omitempty"`
	Limit    Limit   `json:"limit,omitempty"` // bottleneck of the traffic; "" if unknown
	// Latency is the full distribution, as HdrHistogram's V2 compressed
	// encoding in base64. Values are nanoseconds of a round trip.
	Latency  string    `json:"latency_histogram,omitempty"`
	Series   []Point   `json:"series,omitempty"`
	Hops     []Hop     `json:"hops,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
	Outputs  []Output  `json:"outputs,omitempty"` // raw output of each process of the tool
	Commands []Command `json:"commands,omitempty"`
	// Profiles has the CPU profiles of both sides if Profiled is true. JSON exports of
	// samples omit them; the report has the merged profiles.
	Profiles []Profile `json:"-"`
}

// Profile is the CPU profile of one side in the meter's window.
type Profile struct {
	Side  string  // sender, receiver
	Cores float64 // busy cores in the same window, from the meter
	Data  string  // a folded.Profile, encoded
}

// Emulated is the warning for a sample that was measured in VMs without KVM.
const Emulated = "emulated CPU (TCG): VMs ran without KVM, so figures of guests are not those of real VMs"

// OK reports whether the trial yielded figures.
func (s *Sample) OK() bool { return s.Failure == nil }

// Counts reports whether the trial yielded figures under valid conditions and without
// the profiler.
func (s *Sample) Counts() bool { return s.OK() && len(s.Gates) == 0 && !s.Profiled }

// FailureKind is the class of a failure. It decides whether a repeat of the trial may
// succeed.
type FailureKind string

const (
	ToolMissing    FailureKind = "tool-missing"    // a program is not installed; a repeat cannot help
	ToolHung       FailureKind = "tool-hung"       // the watchdog killed the tool
	ToolFailed     FailureKind = "tool-failed"     // the tool ended with an error
	NoResult       FailureKind = "no-result"       // the tool ended without an error, but its output has no result
	NoConnectivity FailureKind = "no-connectivity" // the proof of connectivity before the trial failed
	SetupFailed    FailureKind = "setup-failed"    // the testbed or system did not come up
	AgentLost      FailureKind = "agent-lost"      // a node's agent ended, or no longer answered
	Invalid        FailureKind = "invalid-sample"  // figures that contradict each other
	Unsupported    FailureKind = "unsupported"     // the tool or the kernel does not support the workload; a repeat cannot help
	Interrupted    FailureKind = "interrupted"     // the user stopped the run
)

// Failure is the reason why a trial has no figures.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"` // the attempted action, its object, and the remedy
}

// Error returns the message without the kind.
func (f *Failure) Error() string { return f.Message }

// String returns the kind and the message: "tool-failed: the client ended with 1".
func (f *Failure) String() string { return string(f.Kind) + ": " + f.Message }

// Retryable reports whether a repeat of the trial may succeed.
func (f *Failure) Retryable() bool {
	switch f.Kind {
	case ToolMissing, Unsupported, Interrupted:
		return false
	}
	return true
}

// Point is one slice of the time series (100 ms by default).
type Point struct {
	At          float64 `json:"at_s"`              // end of the slice, seconds since the start of the meter's window; negative before it
	Seconds     float64 `json:"seconds,omitempty"` // length of the slice; 0 in samples of version 1
	Bits        float64 `json:"bps"`               // bits per second on the fabric (or the colocated endpoint's device) in the data direction
	SenderCPU   float64 `json:"sender_cpu_percent"`
	ReceiverCPU float64 `json:"receiver_cpu_percent"`
	// Latency is the mean round trip of the transactions that ended in the slice, and
	// LatencyMax the longest, in ns; both are absent without transactions.
	Latency    float64 `json:"latency_ns,omitempty"`
	LatencyMax float64 `json:"latency_ns_max,omitempty"`
	// State of the machine during the slice; absent if it was not read.
	Steal              float64 `json:"steal_percent,omitempty"`   // steal of the node from which the host took more CPU time
	CPUDistance        float64 `json:"cpu_distance_ns,omitempty"` // round trip of a cache line between the nodes' CPUs
	SenderMemoryCopy   float64 `json:"sender_memory_copy_bps,omitempty"`
	ReceiverMemoryCopy float64 `json:"receiver_memory_copy_bps,omitempty"`
	// LeftOut is the reason why the slice does not count in the figures; "" if it
	// counts.
	LeftOut LeftOut `json:"left_out,omitempty"`
}

// LeftOut says why a part of the measured time (a slice) does not count.
type LeftOut string

const (
	StolenSlice  LeftOut = "steal"        // the host ran other guests on the nodes' CPUs
	DistantSlice LeftOut = "cpu-distance" // the distance between the nodes' CPUs was not that of most slices
)

// Hop is one network device on the path of the packets, with its counters in the
// window.
type Hop struct {
	Node      string `json:"node"`               // node name, or "wire"
	Endpoint  string `json:"endpoint,omitempty"` // container's name if the device is inside one
	Device    string `json:"device"`
	Role      string `json:"role"` // endpoint, vif, bridge, tunnel, fabric, port
	Order     int    `json:"order"`
	RxPackets uint64 `json:"rx_packets"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxPackets uint64 `json:"tx_packets"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxDropped uint64 `json:"rx_dropped"`
	TxDropped uint64 `json:"tx_dropped"`
	QdiscDrop uint64 `json:"qdisc_dropped"`
}

// Output is the raw output of one process, kept with the parsed figures.
type Output struct {
	Role   string `json:"role"` // server or client, with a number if there are several
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Exit   int    `json:"exit"` // −1 if a signal ended it
}

// Command is a command line of the trial, so that a user can repeat it by hand.
type Command struct {
	Role string   `json:"role"`
	On   string   `json:"on"` // endpoint
	Argv []string `json:"argv"`
}
