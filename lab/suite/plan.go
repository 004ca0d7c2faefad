package suite

import "time"

// Plan is a suite expanded into the scenarios that will run, in the order in
// which reports show them. It is complete: nothing is left to default.
type Plan struct {
	Suite       string       `json:"suite"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	Nodes       int          `json:"nodes"`
	Trials      int          `json:"trials"` // blocks: every scenario runs once in each
	Scenarios   []Scenario   `json:"scenarios"`
	Comparisons []Comparison `json:"comparisons,omitempty"`
	Published   []Published  `json:"published,omitempty"`
	Notes       []string     `json:"notes,omitempty"` // printed under the report's tables
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
	Timing    Timing    `json:"timing"`
}

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
}

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

// Published is a figure from a public document, to stand beside the measured.
type Published struct {
	Scenario string  `json:"scenario"` // scenario id
	Metric   string  `json:"metric"`   // a sample.Metric
	Value    float64 `json:"value"`    // in the metric's SI unit
	Printed  string  `json:"printed"`  // as the document has it, with its unit
	Source   string  `json:"source"`   // document and table
	Note     string  `json:"note,omitempty"`
}
