package meter

// Process is a tool's process with its CPU time.
type Process struct {
	Label  string `json:"label"` // as given to Track
	PID    int    `json:"pid"`
	Parent int    `json:"parent"` // its parent's process id
	Start  uint64 `json:"start"`  // start time in ticks since boot; with PID it identifies the process
	Name   string `json:"name"`
	// CPU is the run time of all its threads, ended ones too, in nanoseconds.
	CPU int64 `json:"cpu_ns"`
	// Waited is the CPU time of its ended children, in nanoseconds, cut to
	// whole ticks.
	Waited int64 `json:"waited_ns"`
}

type processKey struct {
	pid   int
	start uint64
}

func (p Process) key() processKey { return processKey{p.PID, p.Start} }
