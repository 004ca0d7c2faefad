package suite

import (
	"math"
	"strings"
	"time"
)

// Plan is an expanded suite: the scenarios that will run, in the order of the reports.
// All defaults are set.
type Plan struct {
	Suite       string           `json:"suite"`
	Title       string           `json:"title"`
	Description string           `json:"description,omitempty"`
	Short       bool             `json:"short,omitempty"` // this is the suite's short form
	Nodes       int              `json:"nodes"`
	Trials      int              `json:"trials"` // number of blocks; every scenario runs once in each block. With a precision it is the minimum number
	Stop        Stop             `json:"stop,omitzero"`
	Scenarios   []Scenario       `json:"scenarios"`
	Comparisons []Comparison     `json:"comparisons,omitempty"`
	Ladders     []Ladder         `json:"ladders,omitempty"`
	Hypotheses  []Hypothesis     `json:"hypotheses,omitempty"`
	Tables      []PublishedTable `json:"tables,omitempty"`
	Published   []Published      `json:"published,omitempty"`
	Causes      []Cause          `json:"causes,omitempty"`
	Notes       []string         `json:"notes,omitempty"` // printed under the report's tables
	// Matrix has the pairs of hosts between which each scenario runs; nil if the
	// scenarios run between the first hosts of the testbed.
	Matrix *Matrix `json:"matrix,omitempty"`
	// Systems has the titles of systems, the names that sentences use: "the
	// bridge" for bridge.
	Systems map[string]string `json:"systems,omitempty"`
	// SetUp maps a system to the additional time until its traffic can flow, compared
	// with a bridge. A system that is not in the map needs no additional time.
	// Estimate uses SetUp.
	SetUp map[string]time.Duration `json:"-"`
	// Traffic maps the ID of a scenario to the time that its tool needs for the
	// traffic and its preparations. A scenario that is not in the map needs the time
	// of its timing. Estimate uses Traffic.
	Traffic map[string]time.Duration `json:"-"`
	// Skipped maps the ID of each scenario that cannot run on this machine to the
	// reason. Estimate counts no time for it.
	Skipped map[string]string `json:"-"`
}

// IDs lists the IDs of the plan's scenarios.
func (p *Plan) IDs() (ids []string) {
	for i := range p.Scenarios {
		ids = append(ids, p.Scenarios[i].ID)
	}
	return ids
}

// UseExistingNetwork replaces the emulated fabrics by the network that joins the hosts of
// a testbed. The NICs keep their offloads unless the suite sets an offload. All other
// properties stay requests: an executor refuses a scenario whose request it cannot fulfil.
// Coalescing is not a request, because its default depends on the traffic.
func (p *Plan) UseExistingNetwork() {
	for i := range p.Scenarios {
		sc := &p.Scenarios[i]
		f := &sc.Fabric
		if f.Kind != Existing && !sc.OffloadSet {
			f.Offload = OffloadKept
		}
		f.Kind, f.NoCoalescing = Existing, false
	}
}

// Stop is the rule for the end of a run. With the zero value a run has exactly the
// plan's trials.
type Stop struct {
	// Precision is the requested relative half-width of intervals. These are the
	// intervals of throughput (or transactions) and of both sides' CPU. They are
	// needed for every comparison, and for every scenario without a comparison. 0
	// means a fixed number of trials.
	Precision float64       `json:"precision,omitempty"`
	MaxTrials int           `json:"max_trials,omitempty"` // maximum number of blocks
	MaxTime   time.Duration `json:"max_time_ns,omitempty"`
}

// Scenario is one cell: system × placement × workload × fabric, run by a tool.
type Scenario struct {
	ID        string    `json:"id"`    // "bridge/stream": unique in the plan; the part before "/" is its group
	Title     string    `json:"title"` // description in reports
	System    string    `json:"system"`
	Placement Placement `json:"placement"`
	Pairs     int       `json:"pairs"` // sender/receiver pairs at once, ≥ 1
	Workload  Workload  `json:"workload"`
	Tool      string    `json:"tool"`
	Fabric    Fabric    `json:"fabric"`
	// OffloadSet: the suite sets the fabric's offload. It is false in a stored plan.
	OffloadSet bool     `json:"-"`
	Endpoint   Endpoint `json:"endpoint,omitzero"`
	Timing     Timing   `json:"timing"`
	Hosts      HostPair `json:"hosts,omitzero"` // of the nodes, if the plan has a matrix
}

// Endpoint is the container or VM in which the tools run, on both sides. A system
// without separate endpoints does not use it. The zero value is a plain container.
type Endpoint struct {
	Name string       `json:"name,omitempty"` // empty if the suite defines no endpoints
	Kind EndpointKind `json:"kind,omitempty"`
	// Spread: the CPUs of the endpoint's node, or of the VM, share the endpoint's
	// receive work by flow (RPS), as with vRSS.
	Spread bool `json:"spread,omitempty"`
	// NoSegmentation: the endpoint's device does not accept superframes (large send
	// offload is off). So the endpoint's kernel segments streams to the MTU.
	NoSegmentation bool `json:"no_segmentation,omitempty"`
	// HostVNIC: the last pair of the scenario runs on the nodes themselves, each with a
	// virtual NIC on the same switch as the other endpoints.
	HostVNIC bool  `json:"host_vnic,omitempty"`
	CPUs     int   `json:"cpus,omitempty"`         // of a VM
	Memory   int64 `json:"memory_bytes,omitempty"` // of a VM
}

// EndpointKind is the kind of an endpoint.
type EndpointKind string

const (
	Container EndpointKind = ""   // a network namespace; "container" in suites
	VM        EndpointKind = "vm" // a virtual machine with one virtio network device
)

// Placement is the location of the two endpoints.
type Placement string

const (
	TwoNodes  Placement = "two-nodes"
	Colocated Placement = "colocated" // both on the first node
	// Gateway: the sender is on the first node. The receiver is outside the virtual network,
	// on the second node or behind it.
	Gateway Placement = "gateway"
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

// Stream reports whether the traffic is a stream.
func (k Kind) Stream() bool { return k == TCPStream || k == UDPStream }

// Exchange reports whether the traffic is request/response and not a stream.
func (k Kind) Exchange() bool { return k == TCPRR || k == TCPCRR || k == UDPRR }

// UDP reports whether the traffic runs over UDP.
func (k Kind) UDP() bool { return k == UDPStream || k == UDPRR }

// Direction of a stream, seen from the sender endpoint, which always connects.
type Direction string

const (
	Forward Direction = "forward" // sender to receiver
	Reverse Direction = "reverse" // receiver to sender
	Both    Direction = "both"    // both at once
)

// Change is a kind of change in the network under test, which does not concern the measured traffic.
type Change string

const (
	ChangePorts    Change = "ports"    // a container joins the network of each node, and leaves it
	ChangeNodes    Change = "nodes"    // each node gets another node as a peer, and loses it
	ChangeRoutes   Change = "routes"   // each node gets a route to an address without traffic, and loses it
	ChangePolicies Change = "policies" // the rules of the endpoints' ports get more rules for other addresses, and lose them
)

// LargestIMIX is the payload of the largest datagrams of an Internet mix, bytes. It fits a tunnel on a fabric of MTU 1500.
const LargestIMIX = 1400

// Workload is the traffic of a scenario, independent of the tool.
type Workload struct {
	Name          string    `json:"name"`
	Kind          Kind      `json:"kind"`
	Direction     Direction `json:"direction"`            // of streams, and of the load beside request/response
	Streams       int       `json:"streams"`              // connections, each on a separate thread, ≥ 1
	Buffer        int64     `json:"buffer_bytes"`         // per send call; a UDP stream's datagram payload
	IMIX          bool      `json:"imix,omitempty"`       // UDP datagrams of three sizes; Buffer is the largest size
	SendBuffer    int64     `json:"send_buffer_bytes"`    // SO_SNDBUF; 0: the kernel's autotuning
	ReceiveBuffer int64     `json:"receive_buffer_bytes"` // SO_RCVBUF; 0: the kernel's autotuning
	NoDelay       bool      `json:"no_delay"`             // TCP_NODELAY
	Sendfile      bool      `json:"sendfile"`             // send from the page cache
	// PacketPerSend: each buffer of a TCP stream is a segment and a packet.
	PacketPerSend bool  `json:"packet_per_send,omitempty"`
	Request       int64 `json:"request_bytes"`  // request/response only, ≥ 1
	Response      int64 `json:"response_bytes"` // request/response only, ≥ 1
	Rate          int64 `json:"rate_bps"`       // all streams together: TCP pacing or UDP offered rate, payload bits/s; 0 = as fast as possible
	// Loss is the fraction of the datagrams that may be lost: the tool finds the highest rate of a
	// UDP stream at which no more are lost. 0: no search.
	Loss float64 `json:"loss_ratio,omitempty"`
	// Pace is the number of requests per second of all connections together. Each is due whether or not
	// earlier responses are late, and its latency counts from then. 0: one after another. OfCapacity gives
	// the pace as a share of the rate that requests reach one after another. The tool measures that rate.
	Pace       float64 `json:"pace_per_s,omitempty"`
	OfCapacity float64 `json:"of_capacity_ratio,omitempty"`
	DSCP       DSCP    `json:"dscp,omitempty"` // both ends set it on their sockets
	IPVersion  int     `json:"ip_version"`     // 4 or 6
	// Load is the number of TCP streams that run beside the request/response in each
	// direction of Direction; 0 for streams.
	Load int `json:"load_streams,omitempty"`
	// Change is the kind of change that the lab makes in the network while the traffic is measured; "": none. At each
	// interval ChangeEvery it makes the change or undoes it, in turns.
	Change      Change        `json:"change,omitempty"`
	ChangeEvery time.Duration `json:"change_every_ns,omitempty"`
	// ReceiverWork is the additional CPU time that the receiver of a TCP stream spends
	// on each byte, in ns. It simulates an application, or a known slowdown that the
	// lab must find.
	ReceiverWork float64 `json:"receiver_work_ns_per_byte,omitempty"`
}

// StreamRate returns each stream's share of the rate, in whole bits per second; 0: no limit. It
// is at least 1, because tools take 0 as no limit.
func (w Workload) StreamRate() int64 {
	if w.Rate == 0 {
		return 0
	}
	return max(1, int64(math.Round(float64(w.Rate)/float64(max(1, w.Streams)))))
}

// Fabric is the underlay between the nodes.
type Fabric struct {
	Name    string     `json:"name"`
	Kind    FabricKind `json:"kind"`
	MTU     int        `json:"mtu"`      // of the nodes' fabric devices
	Offload Offload    `json:"offload"`  // traffic that the NIC segments
	Rate    int64      `json:"rate_bps"` // of each link, bits/s on the wire; 0: as fast as the machine allows
	// RxChecksum says which checksums a NIC verifies in the frames that it receives.
	RxChecksum RxChecksum `json:"rx_checksum,omitempty"`
	// Delay is how long a frame is on its way, one way, beside the time that the
	// machine takes for it.
	Delay  time.Duration `json:"delay_ns,omitempty"`
	Loss   float64       `json:"loss_ratio,omitempty"` // share of the frames that a link loses each way
	Queues int           `json:"queues"`               // receive queues of each NIC, ≥ 1
	// Steering is how a NIC chooses the receive queue of a frame.
	Steering Steering `json:"steering,omitempty"`
	// MovingQueues: the scheduler chooses the CPU of each receive queue, and changes it
	// under load (dynamic VMQ). Otherwise each queue has a CPU of its own.
	MovingQueues bool `json:"moving_queues,omitempty"`
	Links        int  `json:"links"` // parallel links between the nodes, ≥ 1
	Team         Team `json:"team,omitempty"`
	// Cut is the time in the measured part at which the last link of a team loses its
	// carrier, for the rest of the trial; 0: never.
	Cut  time.Duration `json:"cut_ns,omitempty"`
	CPUs int           `json:"cpus,omitempty"` // of each node; 0: all that the machine has for it
	// CPUShare is the share of a node's CPU time that the node's programs get, above 0
	// and up to 1; 0: all.
	CPUShare float64 `json:"cpu_share,omitempty"`
	// Unpinned: the programs of each node, and the threads of its NICs, may run on the CPUs of all nodes.
	// The CPU time of one node cannot be measured then.
	Unpinned bool `json:"unpinned,omitempty"`
	// NoCoalescing: a NIC delivers each received frame at once. It does not collect
	// frames for some time.
	NoCoalescing bool `json:"no_coalescing,omitempty"`
}

// Steering is the rule by which a NIC chooses the receive queue of a frame.
type Steering string

const (
	ByFlow Steering = ""    // "flow" in suites: by the hash of addresses and ports, like RSS
	ByMAC  Steering = "mac" // one queue for each destination MAC address, like VMQ
)

// Team defines how parallel links are used.
type Team string

const (
	Multipath Team = ""     // "multipath" in suites: each link has addresses, and routes spread flows over the links
	Bond      Team = "bond" // one device over all links spreads flows, like a bond or an LBFO team
)

// FabricKind is the kind of the fabric.
type FabricKind string

const (
	Wire FabricKind = "wire" // two NICs and a wire: segmentation at the port, GRO at the receiver, backpressure
	Veth FabricKind = "veth" // a plain veth pair, two nodes only
	// Existing is the network that already joins hosts or the nodes of a cluster.
	Existing FabricKind = "existing"
)

// Offload is the NIC's segmentation profile.
type Offload string

const (
	OffloadKept   Offload = ""       // the NICs' current settings; only of an existing network
	OffloadNone   Offload = "none"   // nothing; the kernel segments in software (GSO) before the NIC
	OffloadTCP    Offload = "tcp"    // plain TCP; tunnels are segmented in software
	OffloadTunnel Offload = "tunnel" // plain and tunnelled TCP
)

// RxChecksum says which checksums a NIC verifies. The CPU of the receiver verifies the others.
type RxChecksum string

const (
	RxChecksumAll   RxChecksum = ""      // "all" in suites: of each frame, also in tunnels
	RxChecksumOuter RxChecksum = "outer" // the outermost TCP or UDP checksum, unless it is 0
	RxChecksumNone  RxChecksum = "none"
)

// Timing of one trial.
type Timing struct {
	Warmup   time.Duration `json:"warmup_ns"`
	Duration time.Duration `json:"duration_ns"` // the measured part
	Cooldown time.Duration `json:"cooldown_ns"`
}

// Comparison names a baseline and a subject; the cost is the subject's ratio
// to the baseline.
type Comparison struct {
	Title    string `json:"title,omitempty"`
	Baseline string `json:"baseline"` // scenario id
	Subject  string `json:"subject"`  // scenario id
}

// Ladder is a sequence of scenarios in which each step changes one thing. So the cost
// of a step is the cost of this change.
type Ladder struct {
	Title string   `json:"title,omitempty"`
	Steps []string `json:"steps"` // scenario ids, two or more, of the same traffic
	Names []string `json:"names"` // names of the steps in reports
}

// Hypothesis is a statement about a figure of each subject. It holds if the figure's
// interval is within [Low, High], is refuted if the interval is outside, and is
// undecided otherwise.
//
// The figure depends on Baseline, Over and Difference:
//   - with a Baseline, subject / baseline, or with Difference subject − baseline;
//   - with a Baseline and Spread, the coefficient of variation of the subject's trials, divided by that of the baseline's trials;
//   - with Over, the Metric of the subject divided by its metric Over;
//   - without any of them, the Metric of the subject.
type Hypothesis struct {
	Claim      string   `json:"claim"`
	Metric     string   `json:"metric"`             // a sample.Metric
	Baseline   string   `json:"baseline,omitempty"` // scenario id
	Over       string   `json:"over,omitempty"`     // a sample.Metric
	Difference bool     `json:"difference,omitempty"`
	Spread     bool     `json:"spread,omitempty"`
	Subjects   []string `json:"subjects"` // scenario IDs; the claim is about each of them
	Low        float64  `json:"low"`      // of the figure; a difference or a value is in the metric's unit
	High       float64  `json:"high"`
	Printed    string   `json:"printed"` // as in the suite: "2 ± 10 %"
}

// Ours reports whether the text of the claim says that the document does not make it.
func (h Hypothesis) Ours() bool { return strings.Contains(h.Claim, "(ours, not the document's") }

// Figure describes the figure that the hypothesis bounds: "throughput_bps of b/stream /
// a/stream".
func (h Hypothesis) Figure() string {
	metric, of := h.Metric, strings.Join(h.Subjects, ", ")
	switch {
	case h.Spread:
		metric, of = "spread of "+metric, of+" / "+h.Baseline
	case h.Over != "":
		metric += " / " + h.Over
	case h.Difference:
		of += " - " + h.Baseline
	case h.Baseline != "":
		of += " / " + h.Baseline
	}
	return metric + " of " + of
}

// PublishedTable is a table of a public document. Its cells are the Published entries with its
// name. Rows and columns are in the order in which they first occur in the cells.
type PublishedTable struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Source string `json:"source"`           // document and page or table
	Corner string `json:"corner,omitempty"` // text above the names of the rows
	Note   string `json:"note,omitempty"`
}

// Published is a figure from a public document, for comparison with the measured
// figure.
type Published struct {
	Table  string `json:"table,omitempty"` // name of its table
	Row    string `json:"row,omitempty"`
	Column string `json:"column,omitempty"`
	// Scenario is an ID, and Metric a sample.Metric. Both are empty if no scenario
	// measures the figure; Note then has the reason.
	Scenario string `json:"scenario,omitempty"`
	Metric   string `json:"metric,omitempty"`
	// Baseline is the ID of another scenario if the figure is a change relative to
	// that scenario. Value is then the ratio of the two figures.
	Baseline string  `json:"baseline,omitempty"`
	Value    float64 `json:"value"`   // in the metric's SI unit
	Printed  string  `json:"printed"` // as in the document, with its unit
	// Step is one unit of the last printed digit, in Value's unit. The rounding error
	// of a printed figure is at most half of Step.
	Step float64 `json:"step,omitempty"`
	// Unit is the unit of Printed, and Factor its size in the SI unit.
	Unit   string  `json:"unit,omitempty"`
	Factor float64 `json:"factor,omitempty"`
	Source string  `json:"source"` // document and table
	Note   string  `json:"note,omitempty"`
}
