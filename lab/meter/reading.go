package meter

// Reading is everything that a meter reads of its node at one moment. Counters
// run since boot, or since the counted object was made. A Window of two
// readings has the differences.
type Reading struct {
	Node       string             `json:"node"`
	Mono       int64              `json:"mono_ns"` // CLOCK_MONOTONIC when the CPU times were read
	Wall       int64              `json:"wall_ns"` // CLOCK_REALTIME at the same time, ns since 1970
	CPUs       map[int]CPUTimes   `json:"cpus"`
	Softnet    map[int]uint64     `json:"softnet,omitempty"` // number of buffers that each CPU processed in the receive path; wraps at 32 bits
	Namespaces []NamespaceReading `json:"namespaces,omitempty"`
	Processes  []Process          `json:"processes,omitempty"`
	Guests     []GuestReading     `json:"guests,omitempty"`
	Groups     map[string]int64   `json:"groups_ns,omitempty"` // CPU time by name, see Group
	Throttled  []Throttling       `json:"throttled,omitempty"` // control groups with CPU quotas
	Self       int64              `json:"self_ns"`             // CPU time of the agent itself
}

// NamespaceReading has the counters of one network namespace.
type NamespaceReading struct {
	Name     string          `json:"name"` // container's name; empty for the node itself
	Counters Counters        `json:"counters"`
	Devices  []DeviceReading `json:"devices,omitempty"`
	Sockets  []Socket        `json:"sockets,omitempty"`
}

// Light is a reading of the time series, small enough to be taken ten times a
// second.
type Light struct {
	Mono    int64     `json:"mono_ns"`  // CLOCK_MONOTONIC
	Idle    []int64   `json:"idle_ns"`  // idle, iowait and steal since boot, in the order of the meter's CPUs; −1 while offline
	Steal   []int64   `json:"steal_ns"` // steal since boot, in the same order; in steps of 10 ms
	Traffic []Traffic `json:"traffic"`  // in the order of the meter's series devices
}
