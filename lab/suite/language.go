package suite

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// spec is a parsed suite file: every value with its position, not expanded.
type spec struct {
	name, title, description at[string]
	nodes, trials            at[int]
	precision                at[float64] // a fraction
	maxTrials                at[int]
	maxTime                  at[time.Duration]
	timing                   timingSpec
	tool                     at[string]
	fabrics                  at[[]named[fabricSpec]]
	endpoints                at[[]named[endpointSpec]]
	workloads                at[[]named[workloadSpec]]
	scenarios                at[[]at[scenarioSpec]]
	comparisons              at[[]at[comparisonSpec]]
	ladders                  at[[]at[ladderSpec]]
	hypotheses               at[[]at[hypothesisSpec]]
	tables                   at[[]named[PublishedTable]]
	published                at[[]at[publishedSpec]]
	causes                   at[[]at[causeSpec]]
	short                    at[shortSpec]
	notes                    at[[]at[string]]
}

type timingSpec struct {
	Timing
	keys positions
}

type fabricSpec struct {
	Fabric
	queueCPUs string
	keys      positions
}

type endpointSpec struct {
	Endpoint
	keys positions
}

type workloadSpec struct {
	Workload
	timing timingSpec
	keys   positions
}

type scenarioSpec struct {
	id, title at[string]
	system    at[[]at[string]]
	encap     at[[]at[string]]
	placement at[[]at[Placement]]
	workload  at[[]at[string]]
	fabric    at[[]at[string]]
	endpoint  at[[]at[string]]
	tool      at[[]at[string]]
	pairs     at[int]
	timing    timingSpec
	faulty    bool // a mistake in the names: the entry is not expanded
}

type comparisonSpec struct {
	title    at[string]
	baseline at[string]
	subjects at[[]at[string]]
}

type ladderSpec struct {
	title at[string]
	steps at[[]at[string]]
	names at[[]at[string]]
}

type hypothesisSpec struct {
	claim      at[string]
	metric     at[string]
	baseline   at[string]
	over       at[string]
	statistic  at[string]
	subjects   at[[]at[string]]
	ratio      at[band]
	difference at[extent]
	value      at[extent]
}

type publishedSpec struct {
	Published
	keys positions
}

type causeSpec struct {
	baseline at[string]
	subjects at[[]at[string]]
	metrics  at[[]at[string]]
	verdict  at[Ruling]
	cause    at[string]
}

var (
	kinds      = []Kind{TCPStream, TCPRR, TCPCRR, UDPStream, UDPRR}
	streams    = []Kind{TCPStream, UDPStream}
	tcpOnly    = []Kind{TCPStream, TCPRR, TCPCRR}
	requests   = []Kind{TCPRR, TCPCRR, UDPRR}
	directed   = []Kind{TCPStream, UDPStream, TCPRR} // TCPRR has the direction of its load
	directions = []Direction{Forward, Reverse, Both}
	placements = []Placement{TwoNodes, Colocated, Gateway}
	changes    = []Change{ChangePorts, ChangeNodes, ChangeRoutes, ChangePolicies}
	profiles   = []Offload{OffloadNone, OffloadTCP, OffloadTunnel}
)

// Kinds lists the kinds of traffic.
func Kinds() []Kind { return slices.Clone(kinds) }

// Limits of the language, not of the kernel. They are above the needs of every useful
// experiment, and protect the machine against typing errors.
const (
	mostNodes     = 64
	mostTrials    = 1000
	mostTime      = 7 * 24 * time.Hour // of a run with a precision
	leastTime     = time.Second
	mostSteps     = 12 // of a ladder
	leastSteps    = 2
	mostPrecision = 0.5 // a figure with a larger error is not useful
	// The drift of the machine between blocks is of this size, so more trials cannot
	// give a better precision.
	leastPrecision = 0.001
	mostPairs      = 256
	MostStreams    = 1024    // of a workload
	mostNames      = 100     // fabrics, workloads, and entries of lists
	mostPublished  = 400     // figures of documents
	mostScenarios  = 1000    // after expansion
	mostBuffer     = 1 << 30 // bytes
	mostRate       = int64(1e13)
	mostWork       = 1e6   // ns per byte
	mostDatagram   = 65507 // bytes of payload: 65535 − 20 (IPv4) − 8 (UDP)
	mostQueues     = 64
	mostLinks      = 16
	mostCPUs       = 64        // of a VM, and of a node
	leastMemory    = 128 << 20 // of a VM: a kernel, the tools, and their buffers
	mostMemory     = 1 << 40
	mostDelay      = 500 * time.Millisecond // with more, the tools do not start within their time limits
	leastShare     = 0.01                   // of a node's CPU time
	leastLoss      = 1e-6                   // of a search for the highest rate
	mostLoss       = 0.5
	mostLinkLoss   = 0.1
	mostPace       = 1e7  // requests per second
	leastNumbered  = 16   // bytes of a datagram with a number
	LeastMTU       = 1280 // smallest MTU of IPv6 (RFC 8200, section 5): nodes and endpoints have IPv6 addresses
	mostMTU        = 65535
	leastDuration  = 100 * time.Millisecond
	leastChange    = 10 * time.Millisecond // between changes
	mostDuration   = 24 * time.Hour
	mostMargin     = 10 * time.Minute // warmup and cooldown
)

// Defaults of the language.
const (
	defaultNodes    = 2
	defaultTrials   = 6                // the minimum for a 95 % interval of the median
	defaultMaxTime  = 30 * time.Minute // of a run with a precision
	defaultMaximum  = 40               // max_trials is four times the trials, and at least this
	defaultTool     = "builtin"
	defaultFabric   = "default" // the fabric of a suite that defines none
	defaultEndpoint = "container"
	defaultVMCPUs   = 1
	defaultMemory   = 512 << 20 // of a VM
	defaultTeam     = "multipath"
	defaultVerified = "all"
	defaultSteering = "flow"
	defaultQueueCPU = "fixed"
	movingQueues    = "moving"
	defaultFigure   = "median" // default of a hypothesis' key statistic
	spreadFigure    = "spread"
	defaultMTU      = 1500
	defaultBuffer   = 128 << 10   // tcp_stream
	defaultDatagram = LargestIMIX // udp_stream
	defaultWarmup   = 500 * time.Millisecond
	defaultDuration = 2 * time.Second
	defaultCooldown = 200 * time.Millisecond
	defaultChange   = 100 * time.Millisecond
)

const nameRemedy = `use up to 40 letters, digits, ".", "_" and "-", and start with a letter or digit`

var (
	name     = word("a name", `^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`, nameRemedy)
	ref      = word("a scenario or group", `^[A-Za-z0-9][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9._-]{1,199})?$`, `write a scenario's id such as "bridge/stream", or a group such as "bridge"`)
	pattern  = word("a scenario, group or pattern", `^[][A-Za-z0-9._/*?^-]{1,200}$`, `write an id such as "bridge/stream", a group such as "bridge", or a pattern such as "vrouter-*"`)
	template = word("an id", `^[A-Za-z0-9._{}-]{1,99}(/[A-Za-z0-9._{}-]{1,99})?$`, `write it like "bridge/stream" or "{system}/{workload}", of letters, digits, ".", "_" and "-", with at most one "/"`)
	title    = sentence(200)
	prose    = sentence(4000)
)

var timingKeys = mapping[timingSpec]{
	what:   "timing",
	places: func(t *timingSpec) *positions { return &t.keys },
	doc:    "How long one trial runs. A trial is warmup, duration and cooldown in this order; only duration counts.",
	fields: []field[timingSpec]{
		setOr("warmup", span(0, mostMargin), func(t *timingSpec) *time.Duration { return &t.Warmup }, defaultWarmup, "Time from the start of the traffic that does not count."),
		setOr("duration", span(leastDuration, mostDuration), func(t *timingSpec) *time.Duration { return &t.Duration }, defaultDuration, "Time that counts."),
		setOr("cooldown", span(0, mostMargin), func(t *timingSpec) *time.Duration { return &t.Cooldown }, defaultCooldown, "Time at the end that does not count."),
	},
}

var fabricKeys = mapping[fabricSpec]{
	what:   "a fabric",
	doc:    "The underlay between the nodes.",
	places: func(t *fabricSpec) *positions { return &t.keys },
	fields: []field[fabricSpec]{
		setOr("kind", choice(Wire, Veth, Existing), func(f *fabricSpec) *FabricKind { return &f.Kind }, Wire, "wire: two NICs and a wire, with segmentation at the port, GRO at the receiver and backpressure. veth: a plain veth pair between two nodes. existing: the network that joins the hosts of --testbed. With --testbed every fabric is an existing network."),
		setOr("mtu", number(LeastMTU, mostMTU), func(f *fabricSpec) *int { return &f.MTU }, defaultMTU, "MTU of the nodes' fabric devices, in bytes. Nodes and endpoints have IPv6 addresses, so 1280 is the least. A tunnel needs more, for its headers: vxlan needs 1330."),
		setOr("offload", choice(profiles...), func(f *fabricSpec) *Offload { return &f.Offload }, OffloadTCP, "TCP that the NIC segments. none: nothing; tcp: plain TCP; tunnel: plain and tunnelled TCP. The lab sets it on dedicated devices of hosts, and restores the devices. On other devices, a scenario is skipped if its NICs have another profile. Default of kind existing: the current settings of the NICs."),
		set("rx_checksum", choiceOr(defaultVerified, RxChecksumOuter, RxChecksumNone), func(f *fabricSpec) *RxChecksum { return &f.RxChecksum }, "TCP and UDP checksums that a NIC verifies on arrival. all: of each packet, also in tunnels. outer: the outermost one, unless it is 0. none: none. The receiver's CPU verifies the others. Needs a wire.").shows(defaultVerified),
		setOr("rate", rate(mostRate), func(f *fabricSpec) *int64 { return &f.Rate }, 0, "Rate of each link on the wire, bits per second; 0 is as fast as the machine."),
		setOr("delay", span(0, mostDelay), func(f *fabricSpec) *time.Duration { return &f.Delay }, 0, "Time that a frame is on its way on a link, one way; a round trip takes twice as much longer. Needs a wire."),
		setOr("loss", fraction(leastLoss, mostLinkLoss), func(f *fabricSpec) *float64 { return &f.Loss }, 0, "Share of the frames that a link loses in each direction, at random, such as 0.1%. Needs a wire. Default: none."),
		set("cpus", number(1, mostCPUs), func(f *fabricSpec) *int { return &f.CPUs }, "CPUs of each node, such as 2. Default: all that the machine has for a node. A scenario that needs more is skipped."),
		set("cpu_share", fraction(leastShare, 1), func(f *fabricSpec) *float64 { return &f.CPUShare }, "Share of its CPUs' time that the programs of a node get, such as 25%. Work of the kernel in softirqs is not limited. Default: all."),
		set("pinned", unless, func(f *fabricSpec) *bool { return &f.Unpinned }, "Keep the programs and the NICs' threads of each node on its CPUs. If it is false, they may run on the CPUs of all nodes, and no figure has the CPU time of one node. Needs a wire.").shows(true),
		setOr("queues", number(1, mostQueues), func(f *fabricSpec) *int { return &f.Queues }, 1, "Receive queues of each NIC."),
		set("steering", choiceOr(defaultSteering, ByMAC), func(f *fabricSpec) *Steering { return &f.Steering }, "How a NIC chooses the receive queue of a frame. flow: by addresses and ports, like RSS. mac: each destination MAC address has one queue, like VMQ. Needs queues: 2 or more.").shows(defaultSteering),
		setOr("queue_cpus", choice(defaultQueueCPU, movingQueues), func(f *fabricSpec) *string { return &f.queueCPUs }, defaultQueueCPU, "CPU of each receive queue. fixed: a separate CPU. moving: the scheduler chooses it among the node's CPUs and changes it under load, like dynamic VMQ. Needs a wire."),
		setOr("links", number(1, mostLinks), func(f *fabricSpec) *int { return &f.Links }, 1, "Parallel links between the nodes; more than one needs a wire."),
		set("team", choiceOr(defaultTeam, Bond), func(f *fabricSpec) *Team { return &f.Team }, "Use of parallel links. multipath: each link has addresses, and routes spread flows over the links; systems that switch frames cannot use this. bond: one device over all links spreads flows by addresses and ports.").shows(defaultTeam),
		set("cut", span(leastDuration, mostDuration), func(f *fabricSpec) *time.Duration { return &f.Cut }, "Time in the measured part at which the last link loses its carrier, for the rest of the trial. Needs team: bond. Default: never."),
	},
}

var endpointKeys = mapping[endpointSpec]{
	what:   "an endpoint",
	doc:    "The container or VM in which the tools run, on both sides.",
	places: func(t *endpointSpec) *positions { return &t.keys },
	fields: []field[endpointSpec]{
		set("kind", choiceOr(defaultEndpoint, VM), func(e *endpointSpec) *EndpointKind { return &e.Kind }, "container: a network namespace. vm: a virtual machine with one virtio network device.").shows(defaultEndpoint),
		setOr("spread", flag, func(e *endpointSpec) *bool { return &e.Spread }, false, "Share the endpoint's receive work among all CPUs of its node by flow, as vRSS does; inside a VM among its own CPUs."),
		set("segmentation", unless, func(e *endpointSpec) *bool { return &e.NoSegmentation }, "Large send offload of the endpoint's device. If it is false, the endpoint's kernel cuts streams to the MTU.").shows(true),
		setOr("host_vnic", flag, func(e *endpointSpec) *bool { return &e.HostVNIC }, false, "Run the last pair of the scenario on the nodes themselves, each with a virtual NIC on the same switch as the other endpoints. Needs pairs: 2 or more, and the system bridge."),
		setOr("cpus", number(1, mostCPUs), func(e *endpointSpec) *int { return &e.CPUs }, defaultVMCPUs, "CPUs of a VM."),
		setOr("memory", size(leastMemory, mostMemory), func(e *endpointSpec) *int64 { return &e.Memory }, defaultMemory, "Memory of a VM, in bytes.").shows("512M"),
	},
}

var workloadKeys = mapping[workloadSpec]{
	what:   "a workload",
	doc:    "The traffic of a scenario, independent of the tool.",
	places: func(t *workloadSpec) *positions { return &t.keys },
	fields: []field[workloadSpec]{
		set("kind", choice(kinds...), func(w *workloadSpec) *Kind { return &w.Kind }, "tcp_stream and udp_stream move data; tcp_rr and udp_rr exchange a request and a response; tcp_crr connects for each exchange.").must(),
		setOr("direction", choice(directions...), func(w *workloadSpec) *Direction { return &w.Direction }, Forward, "Of streams, and of the load beside request/response. forward is from sender to receiver; the sender always connects.").only(directed...),
		setOr("streams", number(1, MostStreams), func(w *workloadSpec) *int { return &w.Streams }, 1, "Number of simultaneous connections, each on a separate thread.").also("threads"),
		setOr("load", number(0, MostStreams), func(w *workloadSpec) *int { return &w.Load }, 0, "Number of TCP streams that run beside the request/response in each direction, as fast as possible; builtin tool only. The latency is then the latency under load.").only(TCPRR),
		set("buffer", size(1, mostBuffer), func(w *workloadSpec) *int64 { return &w.Buffer }, "Bytes of one send call; of a udp_stream the payload of a datagram, at most 65507. Default 128k for tcp_stream, 1400 for udp_stream.").only(streams...),
		setOr("imix", flag, func(w *workloadSpec) *bool { return &w.IMIX }, false, "Send an Internet mix: of 12 datagrams, 7 have 18 bytes of payload, 4 have 548 and 1 has 1400. Not with buffer; builtin tool only.").only(UDPStream),
		setOr("send_buffer", size(0, mostBuffer), func(w *workloadSpec) *int64 { return &w.SendBuffer }, 0, "SO_SNDBUF in bytes; 0: the kernel decides."),
		setOr("receive_buffer", size(0, mostBuffer), func(w *workloadSpec) *int64 { return &w.ReceiveBuffer }, 0, "SO_RCVBUF in bytes; 0: the kernel decides."),
		setOr("no_delay", flag, func(w *workloadSpec) *bool { return &w.NoDelay }, false, "TCP_NODELAY: send small segments at once.").only(tcpOnly...),
		setOr("packet_per_send", flag, func(w *workloadSpec) *bool { return &w.PacketPerSend }, false, "Send each buffer as a TCP segment and a packet, so that nothing segments or merges it at the sender. Implies no_delay; the tools builtin and builtin-ntttcp only. A trial with packets of another size has a flag.").only(TCPStream),
		setOr("sendfile", flag, func(w *workloadSpec) *bool { return &w.Sendfile }, false, "Send from the page cache by sendfile(2).").only(TCPStream),
		setOr("request", size(1, mostBuffer), func(w *workloadSpec) *int64 { return &w.Request }, 1, "Bytes of a request; at most 65507 for udp_rr.").only(requests...),
		setOr("response", size(1, mostBuffer), func(w *workloadSpec) *int64 { return &w.Response }, 1, "Bytes of a response; at most 65507 for udp_rr.").only(requests...),
		setOr("rate", rate(mostRate), func(w *workloadSpec) *int64 { return &w.Rate }, 0, "Payload bits per second of all streams together: TCP pacing, or the offered rate of a udp_stream; 0 is as fast as possible.").only(streams...),
		setOr("loss", fraction(leastLoss, mostLoss), func(w *workloadSpec) *float64 { return &w.Loss }, 0, "Find the highest rate at which at most this share of the datagrams is lost, such as 0.1%, before each trial, and measure at that rate; not with rate or several pairs; builtin tool only. Default: no search.").only(UDPStream),
		setOr("pace", amount(mostPace), func(w *workloadSpec) *float64 { return &w.Pace }, 0, "Requests per second of all connections together. Each is due whether or not earlier responses are late, and its latency counts from then, so it includes the wait behind a late response; builtin tool only. 0: one after another.").only(requests...),
		setOr("of_capacity", fraction(leastShare, 1), func(w *workloadSpec) *float64 { return &w.OfCapacity }, 0, "The pace as a share of the requests per second that go through one after another, such as 50%; the tool measures them before each trial. Not with pace, load or several pairs; builtin tool only.").only(requests...),
		setOr("receiver_work", amount(mostWork), func(w *workloadSpec) *float64 { return &w.ReceiverWork }, 0, "CPU time in ns that the receiver spends on each byte after reading it, as an application does; builtin tool only.").only(TCPStream),
		setOr("dscp", codepoint, func(w *workloadSpec) *DSCP { return &w.DSCP }, 0, "DSCP of the packets that both ends send: a name, such as EF, AF41 or CS1, or a number. The wire reads the DSCP of the frames, and a trial with another one has a flag."),
		set("change", choice(changes...), func(w *workloadSpec) *Change { return &w.Change }, "Change the network on each node with endpoints while the traffic is measured, and undo the change at the next time. ports: a container joins. nodes: another node joins. routes: a route to an unused address. policies: more rules for other addresses. A system without such changes is skipped. Default: none."),
		setOr("change_every", span(leastChange, mostDuration), func(w *workloadSpec) *time.Duration { return &w.ChangeEvery }, defaultChange, "Time from the beginning of a change to that of the next. If a change takes longer, the next one follows at once. Needs change."),
		setOr("ip_version", oneOf(4, 6), func(w *workloadSpec) *int { return &w.IPVersion }, 4, "4 or 6."),
		set("timing", timingKeys, func(w *workloadSpec) *timingSpec { return &w.timing }, "Overrides the suite's timing key by key."),
	},
}

var scenarioKeys = mapping[scenarioSpec]{
	what: "a scenario",
	doc:  "One scenario, or several: if system, placement, workload, fabric, endpoint or tool is a list, every combination is a scenario.",
	fields: []field[scenarioSpec]{
		bind("id", template, func(s *scenarioSpec) *at[string] { return &s.id }, `Name in results; the part before "/" is its group. May contain {system}, {placement}, {workload}, {fabric}, {endpoint} and {tool}. Default: the system, with -colocated or -gateway for these placements, a "/", the workload, and then the fabric, the endpoint and the tool if several are listed.`),
		bind("title", title, func(s *scenarioSpec) *at[string] { return &s.title }, "Description in the report; may contain the same {parts} as id."),
		bind("system", oneOrMore[string](name), func(s *scenarioSpec) *at[[]at[string]] { return &s.system }, "Systems that carry packets between the endpoints; a name or a list.").must(),
		bind("encap", oneOrMore[string](name), func(s *scenarioSpec) *at[[]at[string]] { return &s.encap }, "The encapsulation, for a system that supports several: direct, direct-policy, direct-netkit, direct-big-tcp, translated, vxlan, mpls-udp, mpls-udp-checksum, mpls-gre, or nat, routed or evpn in placement gateway; one or a list. {system} is then the system and the encapsulation: vrouter-vxlan."),
		bind("placement", oneOrMore[Placement](choice(placements...)), func(s *scenarioSpec) *at[[]at[Placement]] { return &s.placement }, "Where the endpoints sit: on two nodes, both on the first, or the receiver outside the virtual network behind a gateway; one or a list.").shows(TwoNodes),
		bind("workload", oneOrMore[string](name), func(s *scenarioSpec) *at[[]at[string]] { return &s.workload }, "A name under workloads, or a list; may be left out where the suite has only one."),
		bind("fabric", oneOrMore[string](name), func(s *scenarioSpec) *at[[]at[string]] { return &s.fabric }, "A name under fabrics, or a list; may be left out where the suite has one or none."),
		bind("endpoint", oneOrMore[string](name), func(s *scenarioSpec) *at[[]at[string]] { return &s.endpoint }, "A name under endpoints, or a list; may be left out where the suite has one or none."),
		bind("tool", oneOrMore[string](name), func(s *scenarioSpec) *at[[]at[string]] { return &s.tool }, "The traffic program, or a list; default is the suite's."),
		preset("pairs", number(1, mostPairs), func(s *scenarioSpec) *at[int] { return &s.pairs }, 1, "Number of simultaneous pairs of sender and receiver."),
		set("timing", timingKeys, func(s *scenarioSpec) *timingSpec { return &s.timing }, "Overrides the timing of suite and workload key by key."),
	},
}

var comparisonKeys = mapping[comparisonSpec]{
	what: "a comparison",
	doc:  "A comparison of scenarios with a baseline. Two scenario ids make one comparison; two groups make one for every part after the \"/\" that both have.",
	fields: []field[comparisonSpec]{
		bind("title", title, func(c *comparisonSpec) *at[string] { return &c.title }, "Title in the report."),
		bind("baseline", ref, func(c *comparisonSpec) *at[string] { return &c.baseline }, "A scenario's id, or a group.").must(),
		bind("subjects", oneOrMore[string](ref), func(c *comparisonSpec) *at[[]at[string]] { return &c.subjects }, "Scenarios to compare with the baseline: ids if baseline is an id, groups if it is a group; one or a list.").also("subject").must(),
	},
}

var ladderKeys = mapping[ladderSpec]{
	what: "a ladder",
	doc:  "A sequence of scenarios in which each step changes one thing, so that the cost of a step is the cost of this change. Scenario ids make one ladder; groups make one ladder for every part after the \"/\".",
	fields: []field[ladderSpec]{
		bind("title", title, func(l *ladderSpec) *at[string] { return &l.title }, "Title in the report."),
		bind("steps", list[string]{ref, leastSteps, mostSteps, false}, func(l *ladderSpec) *at[[]at[string]] { return &l.steps }, "2 to 12 steps from the first to the last: all ids, or all groups with the same parts; all with the same traffic.").must(),
		bind("names", list[string]{sentence(60), leastSteps, mostSteps, false}, func(l *ladderSpec) *at[[]at[string]] { return &l.names }, "Names of the steps in the report, one for each step; default is their ids or groups."),
	},
}

var hypothesisKeys = mapping[hypothesisSpec]{
	what:  "a hypothesis",
	doc:   "A statement about a ratio, a difference or a value: the samples confirm it, refute it, or leave it undecided. Groups make one hypothesis for every part after the \"/\" that baseline and subject both have.",
	oneOf: []string{"ratio", "difference", "value"},
	fields: []field[hypothesisSpec]{
		bind("claim", sentence(300), func(h *hypothesisSpec) *at[string] { return &h.claim }, "The statement in a sentence.").must(),
		bind("metric", metric, func(h *hypothesisSpec) *at[string] { return &h.metric }, "Metric of the figure; default is throughput_bps, and transactions_per_s for request/response."),
		bind("baseline", ref, func(h *hypothesisSpec) *at[string] { return &h.baseline }, "A scenario's id, or a group: for a difference, and for a ratio without over."),
		bind("over", metric, func(h *hypothesisSpec) *at[string] { return &h.over }, "For a ratio without baseline: another metric of the same subject, by which the metric is divided."),
		preset("statistic", choice(defaultFigure, spreadFigure), func(h *hypothesisSpec) *at[string] { return &h.statistic }, defaultFigure, "What is claimed about the trials. median: the ratio, difference or value of the metric. spread: the ratio of the coefficients of variation of subject and baseline; needs ratio and baseline."),
		bind("subjects", oneOrMore[string](ref), func(h *hypothesisSpec) *at[[]at[string]] { return &h.subjects }, "Scenarios that are compared with the baseline: ids if baseline is an id, groups if it is a group; one or a list. The claim must hold for each of them.").also("subject").must(),
		bind("ratio", ratioBand, func(h *hypothesisSpec) *at[band] { return &h.ratio }, `Range that is claimed for subject / baseline: "2 ± 10 %" (also "2 +- 10%"), "1 ± 0.05", ">= 0.95" or "<= 1.1".`),
		bind("difference", differenceRange, func(h *hypothesisSpec) *at[extent] { return &h.difference }, `Range that is claimed for subject - baseline, with the unit: "-0.15 ± 0.05 cores" or "<= -100 Mbit/s".`),
		bind("value", valueRange, func(h *hypothesisSpec) *at[extent] { return &h.value }, `Range that is claimed for the subject's own figure, with the unit: ">= 9 Gbps" or "1600 ± 160 Mbit/s".`),
	},
}

var publishedTableKeys = mapping[PublishedTable]{
	what: "a published table",
	doc:  "A table of a public document. The report shows it, the measured figures in the same shape, and both as ratios to their own baselines.",
	fields: []field[PublishedTable]{
		set("title", title, func(t *PublishedTable) *string { return &t.Title }, "What the table shows, in a line.").must(),
		set("source", prose, func(t *PublishedTable) *string { return &t.Source }, "The document and the position of the table in it.").must(),
		set("corner", sentence(60), func(t *PublishedTable) *string { return &t.Corner }, "Heading of the column with the row names."),
		set("note", prose, func(t *PublishedTable) *string { return &t.Note }, "A remark about the whole table."),
	},
}

var publishedKeys = mapping[publishedSpec]{
	what:   "a published figure",
	doc:    "A figure from a public document, shown beside the measured one.",
	places: func(t *publishedSpec) *positions { return &t.keys },
	fields: []field[publishedSpec]{
		set("table", name, func(p *publishedSpec) *string { return &p.Table }, "The table of this cell: a name under tables."),
		set("row", sentence(80), func(p *publishedSpec) *string { return &p.Row }, "Name of the cell's row; rows keep the order in which they first occur."),
		set("column", sentence(80), func(p *publishedSpec) *string { return &p.Column }, "Name of the cell's column; columns keep the order in which they first occur."),
		set("scenario", ref, func(p *publishedSpec) *string { return &p.Scenario }, "The id of the scenario that measures this figure. A cell may omit it if the note gives the reason."),
		set("metric", metric, func(p *publishedSpec) *string { return &p.Metric }, "Metric of the figure; a cell without scenario has no metric."),
		set("baseline", ref, func(p *publishedSpec) *string { return &p.Baseline }, "The id of another scenario. The figure is then the change of scenario against this baseline, such as \"-27 %\"."),
		set("value", sentence(60), func(p *publishedSpec) *string { return &p.Printed }, `As the document prints it, with its unit: "7375.159 Mbit/s", "14.799 %", "11050 1/s".`).must(),
		set("source", prose, func(p *publishedSpec) *string { return &p.Source }, "The document and the table; a cell has its table's."),
		set("note", prose, func(p *publishedSpec) *string { return &p.Note }, "A remark for readers."),
	},
}

var causeKeys = mapping[causeSpec]{
	what: "a cause",
	doc:  "Why measured figures differ from a document: shown where the verdict on a published figure deviates from the document, or a hypothesis is refuted.",
	fields: []field[causeSpec]{
		bind("subjects", oneOrMore[string](ref), func(c *causeSpec) *at[[]at[string]] { return &c.subjects }, "Scenarios whose figures differ: ids or groups; one or a list.").also("subject").must(),
		bind("baseline", ref, func(c *causeSpec) *at[string] { return &c.baseline }, "The baseline of the ratios: an id if the subjects are ids, else a group. Default: every baseline, and values without one."),
		bind("metrics", oneOrMore[string](metric), func(c *causeSpec) *at[[]at[string]] { return &c.metrics }, "Metrics that differ for this reason; one or a list. Default: every metric.").also("metric"),
		bind("verdict", choice(ByConstruction, NotHere), func(c *causeSpec) *at[Ruling] { return &c.verdict }, "Replaces the verdict on these figures and hypotheses; the cause is its reason. by construction: the suite set the figure itself, such as the rate of a link. cannot be judged here: the lab lacks what the figure depends on."),
		bind("cause", prose, func(c *causeSpec) *at[string] { return &c.cause }, "The cause in a sentence, with the profile or the experiment that shows it.").must(),
	},
}

var suiteKeys = mapping[spec]{
	what: "a suite",
	doc:  "A suite of Windtunnel: scenarios, and the comparisons between them.",
	fields: []field[spec]{
		bind("suite", name, func(s *spec) *at[string] { return &s.name }, "Name of the suite.").must(),
		bind("title", title, func(s *spec) *at[string] { return &s.title }, "One line; default is the name."),
		bind("description", prose, func(s *spec) *at[string] { return &s.description }, "What the suite shows, for the report."),
		preset("nodes", number(1, mostNodes), func(s *spec) *at[int] { return &s.nodes }, defaultNodes, "Compute nodes; 1 is enough if every scenario is colocated."),
		preset("trials", number(1, mostTrials), func(s *spec) *at[int] { return &s.trials }, defaultTrials, "Trials of each scenario; with a precision, the smallest number of trials. A 95 % interval of a median needs at least 6."),
		bind("precision", fraction(leastPrecision, mostPrecision), func(s *spec) *at[float64] { return &s.precision }, "Run until the intervals are narrow enough: largest half-width of an interval, relative to the figure. It applies to throughput (or transactions) and both sides' CPU, in every comparison and in every scenario without a comparison."),
		bind("max_trials", number(1, mostTrials), func(s *spec) *at[int] { return &s.maxTrials }, "With a precision: the largest number of trials of each scenario. Default is four times trials, and at least 40."),
		preset("max_time", span(leastTime, mostTime), func(s *spec) *at[time.Duration] { return &s.maxTime }, defaultMaxTime, "With a precision: no further block begins after this time, once each scenario has run trials times."),
		set("timing", timingKeys, func(s *spec) *timingSpec { return &s.timing }, "How long a trial runs."),
		preset("tool", name, func(s *spec) *at[string] { return &s.tool }, defaultTool, "The traffic program of scenarios without the key tool."),
		bind("fabrics", index[fabricSpec]{name, fabricKeys, mostNames}, func(s *spec) *at[[]named[fabricSpec]] { return &s.fabrics }, `The underlays, by name. Default: one underlay "default", with every key at its default.`),
		bind("endpoints", index[endpointSpec]{name, endpointKeys, mostNames}, func(s *spec) *at[[]named[endpointSpec]] { return &s.endpoints }, `The containers or VMs in which the tools run, by name. Default: one endpoint "container", with every key at its default.`),
		bind("workloads", index[workloadSpec]{name, workloadKeys, mostNames}, func(s *spec) *at[[]named[workloadSpec]] { return &s.workloads }, "The kinds of traffic, by name.").must(),
		bind("scenarios", list[scenarioSpec]{scenarioKeys, 1, mostNames, false}, func(s *spec) *at[[]at[scenarioSpec]] { return &s.scenarios }, "Scenarios to measure, in the order of the report.").must(),
		bind("comparisons", list[comparisonSpec]{comparisonKeys, 1, mostNames, false}, func(s *spec) *at[[]at[comparisonSpec]] { return &s.comparisons }, "Comparisons of scenarios with a baseline."),
		bind("ladders", list[ladderSpec]{ladderKeys, 1, mostNames, false}, func(s *spec) *at[[]at[ladderSpec]] { return &s.ladders }, "Scenarios in which each step changes one thing."),
		bind("hypotheses", list[hypothesisSpec]{hypothesisKeys, 1, mostNames, false}, func(s *spec) *at[[]at[hypothesisSpec]] { return &s.hypotheses }, "Claims about ratios, differences and values. The report says whether they hold."),
		bind("tables", index[PublishedTable]{name, publishedTableKeys, mostNames}, func(s *spec) *at[[]named[PublishedTable]] { return &s.tables }, "Tables of public documents, by name; their figures are under published."),
		bind("published", list[publishedSpec]{publishedKeys, 1, mostPublished, false}, func(s *spec) *at[[]at[publishedSpec]] { return &s.published }, "Figures from public documents."),
		bind("causes", list[causeSpec]{causeKeys, 1, mostNames, false}, func(s *spec) *at[[]at[causeSpec]] { return &s.causes }, "Known causes of differences from the documents."),
		bind("short", shortKeys, func(s *spec) *at[shortSpec] { return &s.short }, "Changes that `run --short` makes."),
		bind("notes", oneOrMore[string](prose), func(s *spec) *at[[]at[string]] { return &s.notes }, "Remarks printed under the report's tables."),
	},
}

// homes maps each key of an inner mapping to that mapping: "buffer" to "a workload". A key
// of several mappings has the value "".
var homes map[string]string

func init() {
	homes = map[string]string{}
	note(timingKeys)
	note(fabricKeys)
	note(endpointKeys)
	note(workloadKeys)
	note(scenarioKeys)
	note(comparisonKeys)
	note(ladderKeys)
	note(hypothesisKeys)
	note(publishedTableKeys)
	note(publishedKeys)
	note(causeKeys)
	note(shortKeys)
	note(suiteKeys)
}

// note adds the keys of a mapping to homes.
func note[T any](t mapping[T]) {
	for _, f := range t.fields {
		if _, taken := homes[f.key]; taken {
			homes[f.key] = ""
			continue
		}
		homes[f.key] = t.what
	}
}

// Schema returns the JSON Schema (draft 2020-12) of the suite language, for editors.
// It is made from the mappings that Parse uses, so both have the same keys. Only Parse
// checks some rules, such as undefined names.
func Schema() []byte {
	s := suiteKeys.schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Windtunnel suite"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("suite: the schema cannot be encoded: " + err.Error()) // the mappings hold nothing but JSON values
	}
	return b.Bytes()
}
