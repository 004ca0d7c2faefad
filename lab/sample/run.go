package sample

import "time"

// Run is one execution of a suite.
type Run struct {
	ID          string      `json:"id"`             // sortable: 20261121-093015-quick
	Name        string      `json:"name,omitempty"` // given by the user; several runs can have it; see CheckName
	Note        string      `json:"note,omitempty"` // given by the user
	Suite       string      `json:"suite"`
	Title       string      `json:"title"`
	Started     time.Time   `json:"started"`
	Finished    time.Time   `json:"finished"` // zero while the run is in progress, or if it was killed
	Seed        uint64      `json:"seed"`     // seed of the random order of scenarios within each block
	Status      Status      `json:"status"`
	Options     Options     `json:"options,omitzero"`
	Environment Environment `json:"environment"`
	// Skipped maps the ID of each scenario that cannot run on this machine to the
	// reason.
	Skipped map[string]string `json:"skipped,omitempty"`
}

// Options are the user's settings of a run that its plan does not contain. A resumed
// run keeps them.
type Options struct {
	Command       string `json:"command,omitempty"`        // subcommand and arguments that affect the figures, quoted for a shell; without --gates and --seed
	Lenient       bool   `json:"lenient,omitempty"`        // trials measured under invalid conditions count, with a flag
	ProfileRate   int    `json:"profile_rate,omitempty"`   // rate of the CPU profiler, samples per second; 0: no profiles
	ProfileBlocks int    `json:"profile_blocks,omitempty"` // number of blocks, from the first, with additional profiled trials
	Adjusted      bool   `json:"adjusted,omitempty"`       // figures are adjusted for steal and for the distance of the CPUs
	CPUs          string `json:"cpus,omitempty"`           // CPUs of each node, in the form of --cpus
	CPUDistance   string `json:"cpu_distance,omitempty"`   // chosen CPU distance, in the form of --cpu-distance
	// Testbed is the path of the hosts file, or "k8s" for a Kubernetes cluster; "": network
	// namespaces of the engine's machine.
	Testbed string  `json:"testbed,omitempty"`
	Hosts   []Host  `json:"hosts,omitempty"` // of the hosts file, in the order of the testbed
	Cluster Cluster `json:"cluster,omitzero"`
}

// Host identifies a host of a hosts file. A resumed run needs the same hosts.
type Host struct {
	Name    string `json:"name"`
	Address string `json:"address"` // for SSH, with the port
	Data    string `json:"data"`    // IPv4 address of the device that carries the traffic
	Data6   string `json:"data6,omitempty"`
	Zone    string `json:"zone,omitempty"` // where it is, in the words of the hosts file
	Price   Price  `json:"price,omitzero"`
}

// String returns the addresses.
func (h Host) String() string {
	text := "address " + h.Address + " with data " + h.Data
	if h.Data6 != "" {
		text += " and data6 " + h.Data6
	}
	return text
}

// Price is what a host costs; the zero value: not known.
type Price struct {
	PerHour  float64 `json:"per_hour"`
	Currency string  `json:"currency"` // "USD"
}

// Cluster names the nodes that a run uses, and their Kubernetes cluster.
type Cluster struct {
	Kubeconfig string `json:"kubeconfig,omitempty"` // absolute path of the file, or of several, separated as in $KUBECONFIG; "": the service account of the engine's pod
	Context    string `json:"context,omitempty"`    // of the kubeconfig
	Nodes      string `json:"nodes,omitempty"`      // names, separated by commas, in the order of the testbed
	Image      string `json:"image,omitempty"`      // with the windtunnel program
}

// Status of a run.
type Status string

const (
	Running  Status = "running"
	Complete Status = "complete"
	Stopped  Status = "interrupted" // a user ended the run, or the run was killed
	Empty    Status = "no-figures"  // the run ended, and no trial counts
)

// What the nodes of a run can share.
const (
	SharedMachine = "machine"
	SharedCPUs    = "CPUs"
)

// Environment records the facts that the figures depend on.
type Environment struct {
	Hostname          string            `json:"hostname"`
	Kernel            string            `json:"kernel"`
	OS                string            `json:"os"`
	CPUModel          string            `json:"cpu_model"`
	CPUs              int               `json:"cpus"`
	MemoryBytes       uint64            `json:"memory_bytes"`
	Virtualization    string            `json:"virtualization,omitempty"`
	ClockSource       string            `json:"clock_source"`
	HZ                int               `json:"hz,omitempty"`
	IRQTimeAccounting string            `json:"irq_time_accounting"` // yes, no, unknown
	CongestionControl string            `json:"congestion_control"`
	Mitigations       map[string]string `json:"mitigations,omitempty"`
	Sysctls           map[string]string `json:"sysctls,omitempty"`     // name → value; the name of a namespace's sysctl begins with node and container: "a c1 net.ipv4.tcp_rmem"
	Offloads          map[string]string `json:"offloads,omitempty"`    // node, device and feature ("a faba0 rx-gro") → on, off or absent
	Settings          map[string]string `json:"settings,omitempty"`    // other settings of the testbed: files of devices, routes, choices of systems
	Tools             map[string]string `json:"tools,omitempty"`       // name → version
	NodeCPUs          map[string]string `json:"node_cpus,omitempty"`   // node → CPU list
	NodesShare        string            `json:"nodes_share,omitempty"` // SharedMachine or SharedCPUs; "" if each node owns its CPUs
	CPUChoice         string            `json:"cpu_choice,omitempty"`  // how the nodes' CPUs were chosen; "" if there was no choice
	CPUMeter          string            `json:"cpu_meter,omitempty"`   // how the meters read idle time, from which they compute busy time
	Fabric            string            `json:"fabric,omitempty"`      // how the wire was built, and which features it does not have on this machine
	Revision          string            `json:"revision,omitempty"`    // git revision of windtunnel
	Version           string            `json:"version"`
}
