package sample

// GateName is a validity check of a trial.
type GateName string

// The checks that every trial passes or fails.
const (
	ForeignCPU   GateName = "foreign-cpu"   // something outside the experiment ran on the nodes' CPUs
	Steal        GateName = "steal"         // the host of a virtual machine took the nodes' CPUs away
	StrayCPU     GateName = "stray-cpu"     // a CPU that should not was saturated by softirq work
	Unsteady     GateName = "unsteady-rate" // the rate rose, fell or jumped within the window
	OffTarget    GateName = "off-target"    // the generator stayed below what it was to offer
	StillMoving  GateName = "still-moving"  // counters went on after the traffic had ended
	ClockJump    GateName = "clock-jump"    // wall clock and monotonic clock parted
	MachineStall GateName = "machine-stall" // the machine stood still
	CPUMoved     GateName = "cpu-distance"  // the host moved a virtual machine's CPUs to another distance
)

// Gate is a check that a trial failed: its figures were measured, and do not
// count.
type Gate struct {
	Name    GateName `json:"gate"`
	Value   float64  `json:"value"` // what was found, in Unit
	Limit   float64  `json:"limit"` // what would have passed
	Unit    string   `json:"unit"`
	Message string   `json:"message"` // both figures in a sentence, with where
}
