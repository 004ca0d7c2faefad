package sample

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"windtunnel/lab/units"
)

// Sample has the figures of one attempt at a trial, or the reason why it has none.
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

// Settled reports whether the trial needs no further attempt: its figures count, or
// it failed for a reason that a repeat does not change.
func (s *Sample) Settled() bool {
	if s.OK() {
		return len(s.Gates) == 0
	}
	return !s.Failure.Retryable() && s.Failure.Kind != Interrupted
}

// Trial names the attempt: "block 3", or "block 3, attempt 2".
func (s *Sample) Trial() string {
	text := fmt.Sprintf("block %d", s.Block+1)
	if s.Attempt > 0 {
		text += fmt.Sprintf(", attempt %d", s.Attempt+1)
	}
	return text
}

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
	ChangeFailed   FailureKind = "change-failed"   // the network could not be changed while traffic passed
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
	At          float64 `json:"at_s"`               // end of the slice, seconds since the start of the meter's window; negative before it
	Seconds     float64 `json:"seconds,omitempty"`  // length of the slice; 0 in samples of version 1
	Bits        float64 `json:"bps"`                // bits per second on the fabric (or the colocated endpoint's device) in the data direction
	SenderCPU   float64 `json:"sender_cpu_percent"` // this and ReceiverCPU are 0 if the nodes are not pinned
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

// Limit is the bottleneck of a trial's traffic.
type Limit string

const (
	SenderLimit   Limit = "sender CPU"     // a CPU of the sender's node was busy during the whole window
	ReceiverLimit Limit = "receiver CPU"   // a CPU of the receiver's node was busy during the whole window
	WireLimit     Limit = "wire"           // a CPU was busy during the whole window, mostly with work of the fabric
	LinkLimit     Limit = "link rate"      // the traffic reached the rate of the fabric's links
	RateLimit     Limit = "requested rate" // the traffic reached the rate that the workload requests
	WindowLimit   Limit = "window"         // no other limit was found, and a TCP window limits the data in flight
	TripLimit     Limit = "round trip"     // no other limit was found, and request/response waits for each answer
)

// RoundTrips summarises the transactions that ended in a short slice of time.
type RoundTrips struct {
	At    float64 `json:"at_s"` // middle of the slice, seconds since the start of a window, to the ms
	Count int64   `json:"count"`
	Mean  int64   `json:"mean_ns"`
	Max   int64   `json:"max_ns"`
}

// SetLatency sets the latency of every point from the round trips within it. points are
// in the order of time. offset is the time from the start of the points' window to the
// start of the round trips' window, in seconds.
func SetLatency(points []Point, trips []RoundTrips, offset float64) {
	counts := make([]int64, len(points))
	for _, t := range trips {
		at := t.At + offset
		i, _ := slices.BinarySearchFunc(points, at, func(p Point, at float64) int { return cmp.Compare(p.At, at) })
		if i == len(points) || at <= points[i].At-points[i].Seconds {
			continue
		}
		p := &points[i]
		counts[i] += t.Count
		p.Latency += (float64(t.Mean) - p.Latency) * float64(t.Count) / float64(counts[i])
		p.LatencyMax = max(p.LatencyMax, float64(t.Max))
	}
}

// GateName is the name of a validity check of a trial.
type GateName string

// Checks of conditions: events on the machine during the trial. No figure includes a
// trial that fails such a check.
const (
	ForeignCPU   GateName = "foreign-cpu"   // programs outside the experiment ran on the nodes' CPUs
	Steal        GateName = "steal"         // the host of a virtual machine took the nodes' CPUs away
	CPUQuota     GateName = "cpu-quota"     // a control group's CPU quota stopped the experiment's processes
	StrayCPU     GateName = "stray-cpu"     // softirq work saturated a CPU that belongs to no node
	ClockJump    GateName = "clock-jump"    // the difference between the wall clock and the monotonic clock changed
	MachineStall GateName = "machine-stall" // the machine was paused
	CPUMoved     GateName = "cpu-distance"  // the host moved a virtual machine's CPUs to another distance
)

// Checks of outcomes: effects of the system under test, or of the tool. A trial that
// fails such a check counts, and has a flag. If such trials did not count, the figures
// would hide the bad results of a system.
const (
	Unsteady    GateName = "unsteady-rate" // the rate rose, fell or jumped within the window
	OffTarget   GateName = "off-target"    // the generator did not reach the requested rate
	StillMoving GateName = "still-moving"  // traffic went on after the tools had ended
	PacketSize  GateName = "packet-size"   // a workload with packet_per_send sent packets of another size than its buffer
	WrongDSCP   GateName = "dscp"          // frames on the wire have another DSCP than the workload
	AboveLoss   GateName = "above-loss"    // a workload with a loss lost more in the window than in the search
)

// Outcomes are the checks of outcomes. All other checks are of conditions.
var Outcomes = []GateName{Unsteady, OffTarget, StillMoving, PacketSize, WrongDSCP, AboveLoss}

// Outcome reports whether n is a check of an outcome.
func (n GateName) Outcome() bool { return slices.Contains(Outcomes, n) }

// Gate is a check that a trial failed.
type Gate struct {
	Name    GateName `json:"gate"`
	Value   float64  `json:"value"` // measured figure, in Unit
	Limit   float64  `json:"limit"` // largest or smallest figure that passes
	Unit    string   `json:"unit"`
	Message string   `json:"message"`           // a sentence with both figures and the place, such as the node
	Culprit string   `json:"culprit,omitempty"` // program that used the most CPU time; "" if unknown
}

// Counting returns the samples that the figures of a scenario are computed
// from: the last attempt that counts of each block, in order of blocks. The
// given samples are of one scenario, in any order.
func Counting(samples []*Sample) []*Sample {
	list := slices.DeleteFunc(slices.Clone(samples), func(s *Sample) bool { return !s.Counts() })
	slices.SortStableFunc(list, func(a, b *Sample) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Attempt, b.Attempt))
	})
	var last []*Sample
	for i, s := range list {
		if i+1 == len(list) || list[i+1].Block != s.Block {
			last = append(last, s)
		}
	}
	return last
}

// Cause returns why a sample does not count: the kind of its failure, or its
// first gate. It is empty if the sample has neither.
func (s *Sample) Cause() string {
	switch {
	case !s.OK():
		return string(s.Failure.Kind)
	case len(s.Gates) > 0:
		return string(s.Gates[0].Name)
	}
	return ""
}

// GateText joins the checks of a list: "name: message; …".
func GateText(gates []Gate) string {
	var parts []string
	for _, g := range gates {
		text := string(g.Name)
		if g.Message != "" {
			text += ": " + g.Message
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// Clean returns the sample without values that are not finite, because neither
// SQL nor JSON can store them. left has one line for each value left out. The
// argument is not changed.
func (s Sample) Clean() (clean Sample, left []string) {
	for m, v := range s.Metrics {
		if !units.Finite(v) {
			left = append(left, fmt.Sprintf("%s was %v and is left out", m, v))
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		s.Metrics = maps.Clone(s.Metrics)
		maps.DeleteFunc(s.Metrics, func(_ Metric, v float64) bool { return !units.Finite(v) })
	}
	dirty := func(p Point) bool {
		return !units.Finite(p.At) || !units.Finite(p.Bits) || !units.Finite(p.SenderCPU) || !units.Finite(p.ReceiverCPU)
	}
	if all := len(s.Series); slices.ContainsFunc(s.Series, dirty) {
		s.Series = slices.DeleteFunc(slices.Clone(s.Series), dirty)
		left = append(left, fmt.Sprintf("%d of %d points of the series were not finite numbers and are left out", all-len(s.Series), all))
	}
	s.Gates, s.Flags = cleanGates(s.Gates), cleanGates(s.Flags)
	return s, left
}

// cleanGates sets figures that are not finite to 0. The gate's message still
// has them.
func cleanGates(gates []Gate) []Gate {
	dirty := func(g Gate) bool { return !units.Finite(g.Value) || !units.Finite(g.Limit) }
	if !slices.ContainsFunc(gates, dirty) {
		return gates
	}
	gates = slices.Clone(gates)
	for i := range gates {
		if dirty(gates[i]) {
			gates[i].Value, gates[i].Limit, gates[i].Unit = 0, 0, ""
		}
	}
	return gates
}
