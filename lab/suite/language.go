package suite

import (
	"regexp"
	"time"
)

// spec is a suite file as read: every value with its place, nothing expanded.
type spec struct {
	name, title, description at[string]
	nodes, trials            at[int]
	timing                   at[timingSpec]
	tool                     at[string]
	fabrics                  at[[]named[fabricSpec]]
	workloads                at[[]named[workloadSpec]]
	scenarios                at[[]at[scenarioSpec]]
	comparisons              at[[]at[comparisonSpec]]
	published                at[[]at[publishedSpec]]
	notes                    at[[]at[string]]
}

type timingSpec struct{ warmup, duration, cooldown at[time.Duration] }

type fabricSpec struct {
	kind          at[FabricKind]
	mtu           at[int]
	offload       at[Offload]
	rate          at[int64]
	queues, links at[int]
}

type workloadSpec struct {
	kind                      at[Kind]
	direction                 at[Direction]
	streams                   at[int]
	buffer                    at[int64]
	sendBuffer, receiveBuffer at[int64]
	noDelay, sendfile         at[bool]
	request, response         at[int64]
	rate                      at[int64]
	ipVersion                 at[int]
	timing                    at[timingSpec]
}

type scenarioSpec struct {
	id, title at[string]
	system    at[[]at[string]]
	encap     at[[]at[string]]
	placement at[[]at[Placement]]
	workload  at[[]at[string]]
	fabric    at[[]at[string]]
	tool      at[[]at[string]]
	pairs     at[int]
	timing    at[timingSpec]
}

type comparisonSpec struct {
	title    at[string]
	baseline at[string]
	subjects at[[]at[string]]
}

type publishedSpec struct {
	scenario at[string]
	metric   at[string]
	value    at[string]
	source   at[string]
	note     at[string]
}

var (
	kinds      = []Kind{TCPStream, TCPRR, TCPCRR, UDPStream, UDPRR}
	streams    = []Kind{TCPStream, UDPStream}
	tcpOnly    = []Kind{TCPStream, TCPRR, TCPCRR}
	requests   = []Kind{TCPRR, TCPCRR, UDPRR}
	directions = []Direction{Forward, Reverse, Both}
	placements = []Placement{TwoNodes, Colocated}
	profiles   = []Offload{OffloadNone, OffloadTCP, OffloadTunnel}
)

// Bounds that are not the kernel's are wide enough for any honest experiment
// and keep a slip of the finger from taking the machine.
const (
	mostNodes     = 64
	mostTrials    = 1000
	mostPairs     = 256
	mostStreams   = 1024
	mostNames     = 100     // fabrics, workloads, and entries of lists
	mostScenarios = 1000    // after expansion
	mostBuffer    = 1 << 30 // bytes
	mostRate      = int64(1e13)
	mostDatagram  = 65507 // bytes of payload: 65535 − 20 (IPv4) − 8 (UDP)
	mostQueues    = 64
	mostLinks     = 16
	leastMTU      = 68   // RFC 791
	leastMTUv6    = 1280 // RFC 8200
	mostMTU       = 65535
	leastDuration = 100 * time.Millisecond
	mostDuration  = 24 * time.Hour
	mostMargin    = 10 * time.Minute // warmup and cooldown
)

// Defaults of the language.
const (
	defaultNodes    = 2
	defaultTrials   = 6 // the fewest with a 95 % interval of the median
	defaultTool     = "builtin"
	defaultFabric   = "default" // the fabric of a suite that defines none
	defaultMTU      = 1500
	defaultBuffer   = 128 << 10 // tcp_stream
	defaultDatagram = 1400      // udp_stream
	defaultWarmup   = 500 * time.Millisecond
	defaultDuration = 2 * time.Second
	defaultCooldown = 200 * time.Millisecond
)

const nameRemedy = `use up to 40 letters, digits, ".", "_" and "-", and start with a letter or digit`

var (
	name     = word{"a name", regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`), nameRemedy}
	ref      = word{"a scenario or group", regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}(/[A-Za-z0-9._-]{1,199})?$`), `write a scenario's id such as "bridge/stream", or a group such as "bridge"`}
	template = word{"an id", regexp.MustCompile(`^[A-Za-z0-9._{}-]{1,99}(/[A-Za-z0-9._{}-]{1,99})?$`), `write it like "bridge/stream" or "{system}/{workload}", with at most one "/"`}
	title    = sentence{200}
	prose    = sentence{4000}
)

var timingTable = table[timingSpec]{
	what: "timing",
	doc:  "How long one trial runs. A trial is warmup, duration and cooldown in this order; only duration counts.",
	fields: []field[timingSpec]{
		preset("warmup", span(0, mostMargin), func(t *timingSpec) *at[time.Duration] { return &t.warmup }, defaultWarmup, "Time from the start of the traffic that does not count."),
		preset("duration", span(leastDuration, mostDuration), func(t *timingSpec) *at[time.Duration] { return &t.duration }, defaultDuration, "Time that counts."),
		preset("cooldown", span(0, mostMargin), func(t *timingSpec) *at[time.Duration] { return &t.cooldown }, defaultCooldown, "Time at the end that does not count."),
	},
}

var fabricTable = table[fabricSpec]{
	what: "a fabric",
	doc:  "The underlay between the nodes.",
	fields: []field[fabricSpec]{
		preset("kind", choice[FabricKind]{[]FabricKind{Wire, Veth}}, func(f *fabricSpec) *at[FabricKind] { return &f.kind }, Wire, "wire: two NICs and a wire, with segmentation at the port, GRO at the receiver and backpressure. veth: a plain veth pair between two nodes."),
		preset("mtu", number{leastMTU, mostMTU}, func(f *fabricSpec) *at[int] { return &f.mtu }, defaultMTU, "MTU of the nodes' fabric devices, in bytes; at least 1280 where a workload uses IPv6."),
		preset("offload", choice[Offload]{profiles}, func(f *fabricSpec) *at[Offload] { return &f.offload }, OffloadTCP, "What the NIC segments: nothing, plain TCP, or tunnelled TCP too."),
		preset("rate", rate(mostRate), func(f *fabricSpec) *at[int64] { return &f.rate }, 0, "Rate of each link on the wire, bits per second; 0 is as fast as the machine."),
		preset("queues", number{1, mostQueues}, func(f *fabricSpec) *at[int] { return &f.queues }, 1, "Receive queues of each NIC."),
		preset("links", number{1, mostLinks}, func(f *fabricSpec) *at[int] { return &f.links }, 1, "Parallel links between the nodes; more than one needs a wire."),
	},
}

var workloadTable = table[workloadSpec]{
	what: "a workload",
	doc:  "The traffic of a scenario, whatever tool makes it.",
	fields: []field[workloadSpec]{
		bind("kind", choice[Kind]{kinds}, func(w *workloadSpec) *at[Kind] { return &w.kind }, "tcp_stream and udp_stream move data; tcp_rr and udp_rr exchange a request and a response; tcp_crr connects for each exchange.").must(),
		preset("direction", choice[Direction]{directions}, func(w *workloadSpec) *at[Direction] { return &w.direction }, Forward, "forward is from sender to receiver; the sender always connects.").only(streams...),
		preset("streams", number{1, mostStreams}, func(w *workloadSpec) *at[int] { return &w.streams }, 1, "Connections at once, each on its own thread.").also("threads"),
		bind("buffer", size(1, mostBuffer), func(w *workloadSpec) *at[int64] { return &w.buffer }, "Bytes of one send call; of a udp_stream the payload of a datagram, at most 65507. Default 128k for tcp_stream, 1400 for udp_stream.").only(streams...),
		preset("send_buffer", size(0, mostBuffer), func(w *workloadSpec) *at[int64] { return &w.sendBuffer }, 0, "SO_SNDBUF in bytes; 0 leaves it to the kernel."),
		preset("receive_buffer", size(0, mostBuffer), func(w *workloadSpec) *at[int64] { return &w.receiveBuffer }, 0, "SO_RCVBUF in bytes; 0 leaves it to the kernel."),
		preset("no_delay", flag{}, func(w *workloadSpec) *at[bool] { return &w.noDelay }, false, "TCP_NODELAY: no waiting to fill segments.").only(tcpOnly...),
		preset("sendfile", flag{}, func(w *workloadSpec) *at[bool] { return &w.sendfile }, false, "Send from the page cache by sendfile(2).").only(TCPStream),
		preset("request", size(1, mostBuffer), func(w *workloadSpec) *at[int64] { return &w.request }, 1, "Bytes of a request; at most 65507 for udp_rr.").only(requests...),
		preset("response", size(1, mostBuffer), func(w *workloadSpec) *at[int64] { return &w.response }, 1, "Bytes of a response; at most 65507 for udp_rr.").only(requests...),
		preset("rate", rate(mostRate), func(w *workloadSpec) *at[int64] { return &w.rate }, 0, "Payload bits per second of all streams together: TCP pacing, or what a udp_stream offers; 0 is as fast as possible.").only(streams...),
		preset("ip_version", oneOf{[]int{4, 6}}, func(w *workloadSpec) *at[int] { return &w.ipVersion }, 4, "4 or 6."),
		bind("timing", timingTable, func(w *workloadSpec) *at[timingSpec] { return &w.timing }, "Overrides the suite's timing key by key."),
	},
}

var scenarioTable = table[scenarioSpec]{
	what: "a scenario",
	doc:  "One cell, or several: where system, placement, workload, fabric or tool is a list, every combination is a scenario.",
	fields: []field[scenarioSpec]{
		bind("id", template, func(s *scenarioSpec) *at[string] { return &s.id }, `Its name in results; the part before "/" is its group. May hold {system}, {placement}, {workload}, {fabric} and {tool}. Default: the system, with -colocated where it is, a "/", the workload, and behind it the fabric and the tool where several are listed.`),
		bind("title", title, func(s *scenarioSpec) *at[string] { return &s.title }, "What it is, in the report's words; may hold the same {parts} as id."),
		bind("system", list[string]{name, true, mostNames}, func(s *scenarioSpec) *at[[]at[string]] { return &s.system }, "What carries packets between the endpoints; a name or a list.").must(),
		bind("encap", list[string]{name, true, mostNames}, func(s *scenarioSpec) *at[[]at[string]] { return &s.encap }, "The encapsulation of a system that has several: mpls-gre, mpls-udp or vxlan; one or a list. {system} is then system-encap."),
		bind("placement", list[Placement]{choice[Placement]{placements}, true, mostNames}, func(s *scenarioSpec) *at[[]at[Placement]] { return &s.placement }, "Where the endpoints sit: on two nodes, or both on the first; one or a list.").shows(TwoNodes),
		bind("workload", list[string]{name, true, mostNames}, func(s *scenarioSpec) *at[[]at[string]] { return &s.workload }, "A name under workloads, or a list; may be left out where the suite has only one."),
		bind("fabric", list[string]{name, true, mostNames}, func(s *scenarioSpec) *at[[]at[string]] { return &s.fabric }, "A name under fabrics, or a list; may be left out where the suite has one or none."),
		bind("tool", list[string]{name, true, mostNames}, func(s *scenarioSpec) *at[[]at[string]] { return &s.tool }, "The traffic program, or a list; default is the suite's."),
		preset("pairs", number{1, mostPairs}, func(s *scenarioSpec) *at[int] { return &s.pairs }, 1, "Pairs of sender and receiver at once."),
		bind("timing", timingTable, func(s *scenarioSpec) *at[timingSpec] { return &s.timing }, "Overrides the timing of suite and workload key by key."),
	},
}

var comparisonTable = table[comparisonSpec]{
	what: "a comparison",
	doc:  "What is compared with what. Two scenario ids make one comparison; two groups make one for every part behind the \"/\" that both have.",
	fields: []field[comparisonSpec]{
		bind("title", title, func(c *comparisonSpec) *at[string] { return &c.title }, "In the report's words."),
		bind("baseline", ref, func(c *comparisonSpec) *at[string] { return &c.baseline }, "A scenario's id, or a group.").must(),
		bind("subjects", list[string]{ref, true, mostNames}, func(c *comparisonSpec) *at[[]at[string]] { return &c.subjects }, "What is compared with the baseline: ids where that is an id, groups where that is a group; one or a list.").also("subject").must(),
	},
}

var publishedTable = table[publishedSpec]{
	what: "a published figure",
	doc:  "A figure from a public document, shown beside the measured one.",
	fields: []field[publishedSpec]{
		bind("scenario", ref, func(p *publishedSpec) *at[string] { return &p.scenario }, "The id of the scenario that it stands beside.").must(),
		bind("metric", form[string](metric{}), func(p *publishedSpec) *at[string] { return &p.metric }, "What it measures.").must(),
		bind("value", sentence{60}, func(p *publishedSpec) *at[string] { return &p.value }, `As the document prints it, with its unit: "7375.159 Mbit/s", "14.799 %", "11050 1/s".`).must(),
		bind("source", prose, func(p *publishedSpec) *at[string] { return &p.source }, "The document and the table.").must(),
		bind("note", prose, func(p *publishedSpec) *at[string] { return &p.note }, "What a reader has to know of it."),
	},
}

var suiteTable = table[spec]{
	what: "a suite",
	doc:  "A suite of Windtunnel: scenarios, and the comparisons between them.",
	fields: []field[spec]{
		bind("suite", name, func(s *spec) *at[string] { return &s.name }, "Name of the suite.").must(),
		bind("title", title, func(s *spec) *at[string] { return &s.title }, "One line; default is the name."),
		bind("description", prose, func(s *spec) *at[string] { return &s.description }, "What the suite shows, for the report."),
		preset("nodes", number{1, mostNodes}, func(s *spec) *at[int] { return &s.nodes }, defaultNodes, "Compute nodes; 1 suffices where every scenario is colocated."),
		preset("trials", number{1, mostTrials}, func(s *spec) *at[int] { return &s.trials }, defaultTrials, "How often each scenario runs; 6 are the fewest that give a 95 % interval of a median."),
		bind("timing", timingTable, func(s *spec) *at[timingSpec] { return &s.timing }, "How long a trial runs."),
		preset("tool", name, func(s *spec) *at[string] { return &s.tool }, defaultTool, "The traffic program of scenarios that name none."),
		bind("fabrics", index[fabricSpec]{name, fabricTable, mostNames}, func(s *spec) *at[[]named[fabricSpec]] { return &s.fabrics }, `The underlays, by name. A suite without has one that is called "default", with every key at its default.`),
		bind("workloads", index[workloadSpec]{name, workloadTable, mostNames}, func(s *spec) *at[[]named[workloadSpec]] { return &s.workloads }, "The kinds of traffic, by name.").must(),
		bind("scenarios", list[scenarioSpec]{scenarioTable, false, mostNames}, func(s *spec) *at[[]at[scenarioSpec]] { return &s.scenarios }, "What is measured, in the order of the report.").must(),
		bind("comparisons", list[comparisonSpec]{comparisonTable, false, mostNames}, func(s *spec) *at[[]at[comparisonSpec]] { return &s.comparisons }, "Baselines and what is compared with them."),
		bind("published", list[publishedSpec]{publishedTable, false, mostNames}, func(s *spec) *at[[]at[publishedSpec]] { return &s.published }, "Figures from public documents."),
		bind("notes", list[string]{prose, true, mostNames}, func(s *spec) *at[[]at[string]] { return &s.notes }, "Remarks printed under the report's tables."),
	},
}

// homes tells, for keys of the inner tables, where they belong.
var homes map[string]string

func init() {
	homes = map[string]string{}
	note(timingTable)
	note(fabricTable)
	note(workloadTable)
	note(scenarioTable)
	note(comparisonTable)
	note(publishedTable)
	note(suiteTable)
}

// note records a table's keys; a key that several tables have belongs nowhere
// in particular.
func note[T any](t table[T]) {
	for _, f := range t.fields {
		if _, taken := homes[f.key]; taken {
			homes[f.key] = ""
			continue
		}
		homes[f.key] = t.what
	}
}

func homeOf(key string) string { return homes[key] }
