package sample

import "time"

// Sample is what one trial of one scenario measured, or why it measured
// nothing.
type Sample struct {
	Scenario string        `json:"scenario"` // the scenario's id in the plan
	Block    int           `json:"block"`    // from 0; every scenario runs once in a block
	Position int           `json:"position"` // place within the block, from 0
	Attempt  int           `json:"attempt"`  // from 0; more where a trial was repeated
	Started  time.Time     `json:"started"`
	Took     time.Duration `json:"took_ns"`
	Failure  *Failure      `json:"failure,omitempty"`
	// Gates are the conditions that the trial failed. Its figures stand here and
	// count in no summary.
	Gates []Gate `json:"gates,omitempty"`
	// Flags are checks that the trial failed and that leave its figures to
	// count: of outcomes, and with --gates warn of conditions too.
	Flags []Gate `json:"flags,omitempty"`
	// Profiled: CPU profiles were taken meanwhile, which costs; the figures
	// count only where that cost is worked out.
	Profiled bool    `json:"profiled,omitempty"`
	Metrics  Metrics `json:"metrics,omitempty"`
	Limit    Limit   `json:"limit,omitempty"` // what held the traffic back; empty where it is not known
	// Latency is the full distribution, as HdrHistogram's V2 compressed
	// encoding in base64. Values are nanoseconds of a round trip.
	Latency  string    `json:"latency_histogram,omitempty"`
	Series   []Point   `json:"series,omitempty"`
	Hops     []Hop     `json:"hops,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
	Outputs  []Output  `json:"outputs,omitempty"` // raw, one for each process of the tool
	Commands []Command `json:"commands,omitempty"`
	// Profiles of the sides, where Profiled. They are not in JSON exports of
	// samples: the report has them merged.
	Profiles []Profile `json:"-"`
}

// Profile is where one side's CPU time went in the meter's window.
type Profile struct {
	Side  string  // sender, receiver
	Cores float64 // that the meter read over the same window
	Data  string  // a folded.Profile, encoded
}

// Emulated is the warning of a sample that was taken in VMs without KVM.
const Emulated = "emulated CPU (TCG): VMs ran without KVM, so figures of guests are not those of real VMs"

// OK reports whether the trial yielded figures.
func (s *Sample) OK() bool { return s.Failure == nil }

// Counts reports whether the trial yielded figures that were measured under
// valid conditions and without a profiler beside them.
func (s *Sample) Counts() bool { return s.OK() && len(s.Gates) == 0 && !s.Profiled }

// FailureKind says what went wrong and so whether a repeat can help.
type FailureKind string

const (
	ToolMissing    FailureKind = "tool-missing"    // a program is not installed; a repeat cannot help
	ToolHung       FailureKind = "tool-hung"       // killed by the watchdog
	ToolFailed     FailureKind = "tool-failed"     // ended with an error
	NoResult       FailureKind = "no-result"       // ended well and said nothing that can be read
	NoConnectivity FailureKind = "no-connectivity" // the proof before the trial failed
	SetupFailed    FailureKind = "setup-failed"    // the testbed or system did not come up
	AgentLost      FailureKind = "agent-lost"      // a node's agent ended, or no longer answered
	Invalid        FailureKind = "invalid-sample"  // figures that contradict each other
	Unsupported    FailureKind = "unsupported"     // the tool or kernel cannot do it; a repeat cannot help
	Interrupted    FailureKind = "interrupted"     // the person stopped the run
)

// Failure is why a trial has no figures.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"` // what was attempted, on what, and the remedy
}

// Error is the message alone, for an error that wraps the failure.
func (f *Failure) Error() string { return f.Message }

// String is the failure for a person: "tool-failed: the client ended with 1".
func (f *Failure) String() string { return string(f.Kind) + ": " + f.Message }

// Retryable reports whether the same trial may succeed when repeated.
func (f *Failure) Retryable() bool {
	switch f.Kind {
	case ToolMissing, Unsupported, Interrupted:
		return false
	}
	return true
}

// Point is one slice of the time series (100 ms by default).
type Point struct {
	At          float64 `json:"at_s"`              // its end, seconds since the meter's window began; negative before it
	Seconds     float64 `json:"seconds,omitempty"` // its length; 0 in samples of version 1
	Bits        float64 `json:"bps"`               // bits per second on the fabric (or the colocated endpoint's device) in the data direction
	SenderCPU   float64 `json:"sender_cpu_percent"`
	ReceiverCPU float64 `json:"receiver_cpu_percent"`
	// The state of the machine meanwhile; absent where it was not read.
	Steal              float64 `json:"steal_percent,omitempty"`   // of the node that lost more
	CPUDistance        float64 `json:"cpu_distance_ns,omitempty"` // round trip of a cache line between the nodes' CPUs
	SenderMemoryCopy   float64 `json:"sender_memory_copy_bps,omitempty"`
	ReceiverMemoryCopy float64 `json:"receiver_memory_copy_bps,omitempty"`
	// LeftOut says why the trial's figures leave the slice out.
	LeftOut LeftOut `json:"left_out,omitempty"`
}

// LeftOut is why a slice does not belong to its trial's figures.
type LeftOut string

const (
	StolenSlice  LeftOut = "steal"        // the host ran other guests on the nodes' CPUs
	DistantSlice LeftOut = "cpu-distance" // the CPUs were at another distance than in most of the trial
)

// Hop is one network device on the path and what it counted in the window.
type Hop struct {
	Node      string `json:"node"`               // node name, or "wire"
	Endpoint  string `json:"endpoint,omitempty"` // container's name where the device is inside one
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

// Output is the raw text of one process, kept beside what was read from it.
type Output struct {
	Role   string `json:"role"` // server or client, with a number where there are more
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Exit   int    `json:"exit"` // −1 where a signal ended it
}

// Command is what was run, so that a person can repeat it by hand.
type Command struct {
	Role string   `json:"role"`
	On   string   `json:"on"` // endpoint
	Argv []string `json:"argv"`
}
