package sample

// GateName is a validity check of a trial.
type GateName string

// Conditions: what the machine did. A trial that fails one of these counts in
// no figure.
const (
	ForeignCPU   GateName = "foreign-cpu"   // programs outside the experiment ran on the nodes' CPUs
	Steal        GateName = "steal"         // the host of a virtual machine took the nodes' CPUs away
	StrayCPU     GateName = "stray-cpu"     // softirq work saturated a CPU without a part in the experiment
	ClockJump    GateName = "clock-jump"    // the difference of wall clock and monotonic clock changed
	MachineStall GateName = "machine-stall" // the machine was paused
	CPUMoved     GateName = "cpu-distance"  // the host moved a virtual machine's CPUs to another distance
)

// Outcomes: effects of the system under test, or of the tool. A trial that fails one
// of these counts, with a flag: without it the system's bad trials would be hidden.
const (
	Unsteady    GateName = "unsteady-rate" // the rate rose, fell or jumped within the window
	OffTarget   GateName = "off-target"    // the generator did not reach the requested rate
	StillMoving GateName = "still-moving"  // traffic went on after the tools had ended
)

// Outcome reports whether the check is of an outcome, not of a condition.
func (n GateName) Outcome() bool {
	switch n {
	case Unsteady, OffTarget, StillMoving:
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
	Message string   `json:"message"`           // both figures in a sentence, with the place
	Culprit string   `json:"culprit,omitempty"` // program with the most CPU time; "" if unknown
}
