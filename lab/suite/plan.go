package suite

import "time"

// Plan is a suite expanded into the scenarios that will run, in the order in
// which reports show them. It is complete: nothing is left to default.
type Plan struct {
	Suite       string       `json:"suite"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	Short       bool         `json:"short,omitempty"` // this is the suite's short form
	Nodes       int          `json:"nodes"`
	Trials      int          `json:"trials"` // blocks: every scenario runs once in each; with a precision the fewest
	Stop        Stop         `json:"stop,omitzero"`
	Scenarios   []Scenario   `json:"scenarios"`
	Comparisons []Comparison `json:"comparisons,omitempty"`
	Ladders     []Ladder     `json:"ladders,omitempty"`
	Hypotheses  []Hypothesis `json:"hypotheses,omitempty"`
	Tables      []Table      `json:"tables,omitempty"`
	Published   []Published  `json:"published,omitempty"`
	Notes       []string     `json:"notes,omitempty"` // printed under the report's tables
	// Systems has the titles of systems, the names that sentences use: "the
	// bridge" for bridge.
	Systems map[string]string `json:"systems,omitempty"`
	// SetUp is how much longer than a bridge each system takes until traffic can
	// flow, for Estimate; systems that are not in it take no longer.
	SetUp map[string]time.Duration `json:"-"`
	// Traffic is how long each scenario's tool makes traffic, with what it needs
	// before, for Estimate; of those that are not in it, as long as their timing.
	Traffic map[string]time.Duration `json:"-"`
	// Skipped has the scenarios that cannot run here, which take no time.
	Skipped map[string]string `json:"-"`
}

// Stop says when a run has measured enough. The zero value runs the plan's
// trials and no more.
type Stop struct {
	// Precision is the half-width, relative to the figure, that the interval of
	// throughput (or transactions) and of both sides' CPU is to reach in every
	// comparison, and in every scenario without one; 0 = a fixed number of trials.
	Precision float64       `json:"precision,omitempty"`
	MaxTrials int           `json:"max_trials,omitempty"` // blocks at most
	MaxTime   time.Duration `json:"max_time_ns,omitempty"`
}

// Scenario is one cell: system × placement × workload × fabric, run by a tool.
type Scenario struct {
	ID        string    `json:"id"`    // "bridge/stream": unique in the plan; the part before "/" is its group
	Title     string    `json:"title"` // what it is, in the report's words
	System    string    `json:"system"`
	Placement Placement `json:"placement"`
	Pairs     int       `json:"pairs"` // sender/receiver pairs at once, ≥ 1
	Workload  Workload  `json:"workload"`
	Tool      string    `json:"tool"`
	Fabric    Fabric    `json:"fabric"`
	Endpoint  Endpoint  `json:"endpoint,omitzero"`
	Timing    Timing    `json:"timing"`
}

// Endpoint is what the tools run in, on both sides, where the system has
// endpoints of its own. The zero value is a plain container.
type Endpoint struct {
	Name string       `json:"name,omitempty"` // empty where the suite defines none
	Kind EndpointKind `json:"kind,omitempty"`
	// Spread shares the endpoint's receive work among all CPUs of its node by
	// flow (RPS; inside a VM among its own CPUs), as vRSS does.
	Spread bool `json:"spread,omitempty"`
	// NoSegmentation: the endpoint's own device does not take superframes (large
	// send offload off), so that its stack cuts streams to the MTU itself.
	NoSegmentation bool  `json:"no_segmentation,omitempty"`
	CPUs           int   `json:"cpus,omitempty"`         // of a VM
	Memory         int64 `json:"memory_bytes,omitempty"` // of a VM
}

// EndpointKind is what an endpoint is made of.
type EndpointKind string

const (
	Container EndpointKind = ""   // a network namespace; "container" in suites
	VM        EndpointKind = "vm" // a virtual machine with one virtio network device
)

// Placement says where the two endpoints sit.
type Placement string

const (
	TwoNodes  Placement = "two-nodes"
	Colocated Placement = "colocated" // both on the first node
)

// Kind of traffic.
type Kind string

const (
	TCPStream Kind = "tcp_stream"
	TCPRR     Kind = "tcp_rr"  // request/response on one connection
	TCPCRR    Kind = "tcp_crr" // connect, request, response, close
	UDPStream Kind = "udp_stream"
	UDPRR     Kind = "udp_rr"
)

// Exchange reports whether the traffic is request/response and not a stream.
func (k Kind) Exchange() bool { return k == TCPRR || k == TCPCRR || k == UDPRR }

// Direction of a stream, seen from the sender endpoint, which always connects.
type Direction string

const (
	Forward Direction = "forward" // sender to receiver
	Reverse Direction = "reverse" // receiver to sender
	Both    Direction = "both"    // both at once
)

// Workload is the traffic of a scenario, whatever tool makes it.
type Workload struct {
	Name          string    `json:"name"`
	Kind          Kind      `json:"kind"`
	Direction     Direction `json:"direction"`            // streams only
	Streams       int       `json:"streams"`              // connections, each on its own thread, ≥ 1
	Buffer        int64     `json:"buffer_bytes"`         // per send call; a UDP stream's datagram payload
	SendBuffer    int64     `json:"send_buffer_bytes"`    // SO_SNDBUF; 0 leaves the kernel's autotuning
	ReceiveBuffer int64     `json:"receive_buffer_bytes"` // SO_RCVBUF; 0 leaves the kernel's autotuning
	NoDelay       bool      `json:"no_delay"`             // TCP_NODELAY
	Sendfile      bool      `json:"sendfile"`             // send from the page cache
	Request       int64     `json:"request_bytes"`        // request/response only, ≥ 1
	Response      int64     `json:"response_bytes"`       // request/response only, ≥ 1
	Rate          int64     `json:"rate_bps"`             // all streams together: TCP pacing or UDP offered rate, payload bits/s; 0 = as fast as possible
	IPVersion     int       `json:"ip_version"`           // 4 or 6
	// ReceiverWork is CPU time that the receiver of a TCP stream spends on each
	// byte besides taking it, ns: an application's work, or a known slowdown to
	// see whether it is found.
	ReceiverWork float64 `json:"receiver_work_ns_per_byte,omitempty"`
}

// Fabric is the underlay between the nodes.
type Fabric struct {
	Name    string     `json:"name"`
	Kind    FabricKind `json:"kind"`
	MTU     int        `json:"mtu"`      // of the nodes' fabric devices
	Offload Offload    `json:"offload"`  // what the NIC segments
	Rate    int64      `json:"rate_bps"` // of each link, bits/s on the wire; 0 = as fast as the machine
	Queues  int        `json:"queues"`   // receive queues of each NIC, ≥ 1
	Links   int        `json:"links"`    // parallel links between the nodes, ≥ 1
	Team    Team       `json:"team,omitempty"`
	// NoCoalescing: a NIC hands over what it has received at once instead of
	// collecting frames for some time.
	NoCoalescing bool `json:"no_coalescing,omitempty"`
}

// Team is how parallel links are used.
type Team string

const (
	Multipath Team = ""     // "multipath" in suites: each link has addresses, routes spread flows over them
	Bond      Team = "bond" // one device over all links spreads flows, as a bond or an LBFO team does
)

// FabricKind is how the fabric is made.
type FabricKind string

const (
	Wire FabricKind = "wire" // two NICs and a wire: segments at the port, GRO at the receiver, backpressure
	Veth FabricKind = "veth" // a plain veth pair, two nodes only
)

// Offload is the NIC's segmentation profile.
type Offload string

const (
	OffloadNone   Offload = "none"   // nothing: software GSO before the NIC
	OffloadTCP    Offload = "tcp"    // plain TCP; tunnels are segmented in software
	OffloadTunnel Offload = "tunnel" // tunnelled TCP too
)

// Timing of one trial.
type Timing struct {
	Warmup   time.Duration `json:"warmup_ns"`
	Duration time.Duration `json:"duration_ns"` // the part that counts
	Cooldown time.Duration `json:"cooldown_ns"`
}

// Comparison names a baseline and a subject; the cost is the subject's ratio
// to the baseline.
type Comparison struct {
	Title    string `json:"title,omitempty"`
	Baseline string `json:"baseline"` // scenario id
	Subject  string `json:"subject"`  // scenario id
}

// Ladder is scenarios in an order in which each step changes one thing, so
// that a step's cost is that thing's cost.
type Ladder struct {
	Title string   `json:"title,omitempty"`
	Steps []string `json:"steps"` // scenario ids, two or more, of the same traffic
	Names []string `json:"names"` // of the steps, as the report calls them
}

// Hypothesis is a statement about a ratio, judged by the samples: it holds
// where the ratio's interval lies within [Low, High], is refuted where it lies
// outside, and is undecided otherwise.
type Hypothesis struct {
	Claim    string   `json:"claim"`
	Metric   string   `json:"metric"`   // a sample.Metric
	Baseline string   `json:"baseline"` // scenario id
	Subjects []string `json:"subjects"` // scenario ids; the claim is of every one
	Low      float64  `json:"low"`      // of subject / baseline
	High     float64  `json:"high"`
	Printed  string   `json:"printed"` // as the suite has it: "2 ± 10 %"
}

// Table is a table of a public document. Its cells are the Published that name
// it; rows and columns come in the order in which those first name them.
type Table struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Source string `json:"source"`           // document and place
	Corner string `json:"corner,omitempty"` // what stands above the names of the rows
	Note   string `json:"note,omitempty"`
}

// Published is a figure from a public document, to stand beside the measured.
type Published struct {
	Table  string `json:"table,omitempty"` // name of the table that it is a cell of
	Row    string `json:"row,omitempty"`
	Column string `json:"column,omitempty"`
	// Scenario is an id, and Metric a sample.Metric; both empty where nothing
	// here measures what the document did, which Note then explains.
	Scenario string `json:"scenario,omitempty"`
	Metric   string `json:"metric,omitempty"`
	// Baseline is the id of another scenario where the figure is a change over
	// that one's: Value is then the ratio of the two.
	Baseline string  `json:"baseline,omitempty"`
	Value    float64 `json:"value"`   // in the metric's SI unit
	Printed  string  `json:"printed"` // as the document has it, with its unit
	// Step is one unit of the printed figure's last digit, in Value's unit: a
	// document knows its figures no better than half of it.
	Step float64 `json:"step,omitempty"`
	// Unit is what Printed is in, and Factor how many of the SI unit that is.
	Unit   string  `json:"unit,omitempty"`
	Factor float64 `json:"factor,omitempty"`
	Source string  `json:"source"` // document and table
	Note   string  `json:"note,omitempty"`
}
