package sample

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
)

// Outcome reports whether n is a check of an outcome. All other checks are of
// conditions.
func (n GateName) Outcome() bool {
	switch n {
	case Unsteady, OffTarget, StillMoving, PacketSize:
		return true
	}
	return false
}

// Gate is a check that a trial failed.
type Gate struct {
	Name    GateName `json:"gate"`
	Value   float64  `json:"value"` // measured figure, in Unit
	Limit   float64  `json:"limit"` // largest or smallest figure that passes
	Unit    string   `json:"unit"`
	Message string   `json:"message"`           // a sentence with both figures and the place, such as the node
	Culprit string   `json:"culprit,omitempty"` // program that used the most CPU time; "" if unknown
}
