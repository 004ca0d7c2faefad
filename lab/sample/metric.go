// Package sample holds the values of one trial, in SI units, and the facts of its
// run. Tools and meters write them; the store, the statistics and the reports read
// them. The package does no I/O.
package sample

import "strings"

// Metric names one measured quantity. The name ends in its unit unless it is a
// bare count or ratio.
type Metric string

// Metrics maps each measured quantity to its value. A quantity that was not measured
// is absent, never zero.
type Metrics map[Metric]float64

// Set stores value under m.
func (ms Metrics) Set(m Metric, value float64) { ms[m] = value }

// SetCapacity sets Capacity from the CPU time per byte of both sides, if it is known.
func (ms Metrics) SetCapacity() {
	if busier := max(ms[SenderCPUPerByte], ms[ReceiverCPUPerByte]); busier > 0 {
		ms.Set(Capacity, 8e9/busier)
	}
}

// Merge copies every metric of other into ms. If both have a metric, the value of
// other remains.
func (ms Metrics) Merge(other Metrics) {
	for m, v := range other {
		ms[m] = v
	}
}

// Metrics that the traffic tool reports.
const (
	Throughput         Metric = "throughput_bps"          // received payload, bits per second (sum of both directions if both run)
	SenderThroughput   Metric = "sender_throughput_bps"   // payload written to the sending socket, bits per second
	ReceiverThroughput Metric = "receiver_throughput_bps" // payload read from the receiving socket, bits per second
	ForwardThroughput  Metric = "forward_throughput_bps"  // sender to receiver, if both directions run
	ReverseThroughput  Metric = "reverse_throughput_bps"  // receiver to sender, if both directions run
	HostThroughput     Metric = "host_throughput_bps"     // part of Throughput of the nodes' own virtual NICs, which share the switch with the other endpoints
	HostShare          Metric = "host_share_ratio"        // HostThroughput / Throughput, 0..1
	Transactions       Metric = "transactions_per_s"      // request/response pairs, or connections for connect/request/response
	OfferedRequests    Metric = "offered_requests_per_s"  // requests of a workload with a pace
	LatencyMin         Metric = "latency_ns_min"          // round trip of one transaction, nanoseconds
	LatencyMean        Metric = "latency_ns_mean"
	LatencyP50         Metric = "latency_ns_p50"
	LatencyP90         Metric = "latency_ns_p90"
	LatencyP99         Metric = "latency_ns_p99"
	LatencyP999        Metric = "latency_ns_p999"
	LatencyMax         Metric = "latency_ns_max"
	LoadThroughput     Metric = "load_bps"              // received payload of the streams beside request/response, bits per second, both directions
	OfferedRate        Metric = "offered_bps"           // requested UDP payload, bits per second
	LossRatio          Metric = "loss_ratio"            // UDP datagrams lost / sent, 0..1
	SocketLoss         Metric = "loss_in_socket_ratio"  // part of LossRatio: datagrams that the receiver's full socket dropped, counted by the socket, or by its namespace's UDP counters
	PathLoss           Metric = "loss_on_the_way_ratio" // part of LossRatio: all other lost datagrams
	Reordered          Metric = "reordered_datagrams"   // UDP datagrams that arrived after a later one
	LostDatagrams      Metric = "lost_datagrams"        // UDP datagrams that were sent in the window and did not arrive
	DatagramsSent      Metric = "datagrams_sent_per_s"
	DatagramsReceived  Metric = "datagrams_received_per_s"
	Changes            Metric = "changes"          // number of changes of the network in the measured part on all nodes; to undo a change counts too
	ChangeTime         Metric = "change_ns"        // median time of a change, or to undo it
	ChangeTimeMax      Metric = "change_ns_max"    // longest time of a change, or to undo it
	Interruption       Metric = "interruption_ns"  // longest time in the window in which a stream received nothing: after a link is cut, the time to recover
	Errors             Metric = "errors"           // failed socket calls, counted by the tool
	ToolRetransmits    Metric = "tool_retransmits" // from the tool's output

	// NTttcp's Retransmits at each end: segments that the machine sent again in the
	// tool's window. Here the machine is the endpoint's network namespace.
	// ToolRetransmits is the sum of both ends.
	ToolSenderRetransmits   Metric = "tool_sender_retransmits"
	ToolReceiverRetransmits Metric = "tool_receiver_retransmits"

	// NTttcp's Avg Frame Size at each end: payload divided by the packets of the data
	// direction, those that the kernel merged counted one by one.
	ToolSenderFrame   Metric = "tool_sender_frame_bytes"
	ToolReceiverFrame Metric = "tool_receiver_frame_bytes"

	// The CPU figures that the tool prints. Reports show them beside the figures of
	// the lab's meter; they never replace the meter's figures. Unit: percent of all
	// CPUs of the machine on which this end of the connection runs. All other work on
	// the machine is included. If both nodes share a machine, each figure covers both
	// ends. NTttcp's Avg. CPU % covers its measured window. netperf's LOCAL_CPU_UTIL
	// and REMOTE_CPU_UTIL (-c -C) cover its whole run. netperf adds the guest time to
	// the user time a second time, and counts iowait as busy (netcpu_procstat.c).
	// qperf's cpus_used cover its whole run too.
	ToolSenderCPU   Metric = "tool_sender_cpu_percent"
	ToolReceiverCPU Metric = "tool_receiver_cpu_percent"
	// netperf's service demand (LOCAL_SD, REMOTE_SD) of streams, from the same CPU
	// readings. netperf prints it in µs/KB, with KB of 1,024 bytes.
	ToolSenderCPUPerByte   Metric = "tool_sender_cpu_ns_per_byte"
	ToolReceiverCPUPerByte Metric = "tool_receiver_cpu_ns_per_byte"
)

// Metrics of the lab's meter. Both sides share one window.
const (
	SenderCPU             Metric = "sender_cpu_percent"   // percent of the node's CPUs (100 = all of them)
	ReceiverCPU           Metric = "receiver_cpu_percent" //
	SenderCores           Metric = "sender_cpu_cores"     // CPU-seconds per second
	ReceiverCores         Metric = "receiver_cpu_cores"
	SenderUserCPU         Metric = "sender_cpu_user_percent" // parts of SenderCPU
	SenderSystemCPU       Metric = "sender_cpu_system_percent"
	SenderSoftirqCPU      Metric = "sender_cpu_softirq_percent"
	SenderIRQCPU          Metric = "sender_cpu_irq_percent"
	SenderStealCPU        Metric = "sender_cpu_steal_percent" // not part of SenderCPU
	ReceiverUserCPU       Metric = "receiver_cpu_user_percent"
	ReceiverSystemCPU     Metric = "receiver_cpu_system_percent"
	ReceiverSoftirqCPU    Metric = "receiver_cpu_softirq_percent"
	ReceiverIRQCPU        Metric = "receiver_cpu_irq_percent"
	ReceiverStealCPU      Metric = "receiver_cpu_steal_percent"
	SenderCPUPerByte      Metric = "sender_cpu_ns_per_byte"
	ReceiverCPUPerByte    Metric = "receiver_cpu_ns_per_byte"
	SenderCPUPerPacket    Metric = "sender_cpu_ns_per_packet"
	ReceiverCPUPerPacket  Metric = "receiver_cpu_ns_per_packet"
	SenderToolCores       Metric = "sender_tool_cpu_cores"        // processes of the tool
	ReceiverToolCores     Metric = "receiver_tool_cpu_cores"      //
	SenderGuestCores      Metric = "sender_guest_cpu_cores"       // CPU time of the VMs; includes the emulation if the VMs run without KVM
	ReceiverGuestCores    Metric = "receiver_guest_cpu_cores"     //
	SenderNetworkCores    Metric = "sender_network_cpu_cores"     // all other work on a node with VMs, mainly to carry the VMs' packets
	ReceiverNetworkCores  Metric = "receiver_network_cpu_cores"   //
	SenderForeignCPU      Metric = "sender_foreign_cpu_percent"   // percent of the node's CPUs, by processes outside the experiment
	ReceiverForeignCPU    Metric = "receiver_foreign_cpu_percent" //
	FabricCores           Metric = "fabric_cpu_cores"             // work of the wire; the CPU figures of both nodes exclude it
	ReceiverFabricCores   Metric = "fabric_cpu_cores_at_receiver" // part of FabricCores on the receiving node's CPUs
	DelayErrorP50         Metric = "delay_error_ns_p50"           // how much later than due the delay lines released frames, on links with a delay
	DelayErrorP99         Metric = "delay_error_ns_p99"           //
	ObserverCores         Metric = "observer_cpu_cores"           // engine and agents
	Retransmits           Metric = "retransmits"                  // TCP segments sent again, by the workloads of both nodes
	Segments              Metric = "segments"                     // TCP segments sent, for the ratio Retransmits / Segments
	RTT                   Metric = "tcp_rtt_ns"                   // median smoothed RTT of the workload's sockets
	MSS                   Metric = "tcp_mss_bytes"
	Cwnd                  Metric = "tcp_cwnd_segments"
	PacketsPerSecond      Metric = "packets_per_s"        // frames on the fabric, both directions
	FabricBits            Metric = "fabric_bps"           // bits on the fabric with all headers, both directions
	FabricGoodput         Metric = "fabric_goodput_bps"   // bits on the fabric without headers, in the data direction
	DSCPShare             Metric = "dscp_ratio"           // share of the bytes on the fabric whose outer IP header has the workload's DSCP, in the data direction, 0..1
	SentPacket            Metric = "sent_packet_bytes"    // payload of a packet as the sender's IP stack passes it to the device: of a superframe where a device or the system segments later
	SegmentsPerSKB        Metric = "segments_per_skb"     // frames of the wire in each buffer (skb) that the receiving node's fabric device passes on
	Drops                 Metric = "drops"                // packets dropped at any metered hop
	BytesInWindow         Metric = "window_payload_bytes" // payload within the meter's window
	WindowSeconds         Metric = "window_s"             // length of the meter's window
	ReceiverSoftirqOnRecv Metric = "receive_on_own_cpus"  // share of the receiver's packets that its own CPUs processed, 0..1
)

// The state of the machine during the trial.
const (
	CPUDistance     Metric = "cpu_distance_ns"      // median round trip of a cache line between the nodes' CPUs, over the slices of the window that count
	CPUDistanceLow  Metric = "cpu_distance_ns_low"  // the shortest and the longest reading of the window
	CPUDistanceHigh Metric = "cpu_distance_ns_high" //
	MemoryCopy      Metric = "memory_copy_bps"      // median speed at which the nodes' CPUs copy memory, bits per second, over the slices of the window that count
	KeptSlices      Metric = "kept_slices"          // share of the window's slices that count, 0..1
	Capacity        Metric = "capacity_bps"         // payload that one CPU of the busier side could carry: 1 / the larger CPU time per byte
)

// Info describes a metric: its label, unit and better direction, which traffic
// has it, and how reports summarise it.
type Info struct {
	Metric Metric
	Label  string // for people
	Unit   string // SI unit of the stored value
	// Better is +1 if a larger value is better, −1 if a smaller value is better, else
	// 0.
	Better int
	Traits Traits
}

// Traits of a metric. Without one, all traffic has the metric, and a report
// shows the median of its trials.
type Traits int

const (
	Streams   Traits = 1 << iota // only streams have it
	Datagrams                    // only streams of datagrams
	Exchanges                    // only request/response
	Summed                       // a report shows the sum over the trials
	Percent                      // a share from 0 to 1 that reports print in percent
)

// Is reports whether the metric has a trait.
func (i Info) Is(t Traits) bool { return i.Traits&t != 0 }

var infos = []Info{
	{Throughput, "throughput", "bit/s", +1, Streams},
	{SenderThroughput, "sender throughput", "bit/s", +1, Streams},
	{ReceiverThroughput, "receiver throughput", "bit/s", +1, Streams},
	{ForwardThroughput, "forward throughput", "bit/s", +1, Streams},
	{ReverseThroughput, "reverse throughput", "bit/s", +1, Streams},
	{HostThroughput, "throughput of the host's NIC", "bit/s", 0, Streams},
	{HostShare, "share of the host's NIC", "1", 0, Streams | Percent},
	{Transactions, "transactions", "1/s", +1, Exchanges},
	{OfferedRequests, "offered requests", "1/s", 0, Exchanges},
	{LatencyMin, "latency min", "ns", -1, Exchanges},
	{LatencyMean, "latency mean", "ns", -1, Exchanges},
	{LatencyP50, "latency p50", "ns", -1, Exchanges},
	{LatencyP90, "latency p90", "ns", -1, Exchanges},
	{LatencyP99, "latency p99", "ns", -1, Exchanges},
	{LatencyP999, "latency p99.9", "ns", -1, Exchanges},
	{LatencyMax, "latency max", "ns", -1, Exchanges},
	{LoadThroughput, "load beside the requests", "bit/s", +1, Exchanges},
	{OfferedRate, "offered rate", "bit/s", 0, Datagrams},
	{LossRatio, "loss", "1", -1, Datagrams | Percent},
	{SocketLoss, "loss in the socket", "1", -1, Datagrams | Percent},
	{PathLoss, "loss on the way", "1", -1, Datagrams | Percent},
	{Reordered, "reordered datagrams", "1", -1, Datagrams},
	{LostDatagrams, "lost datagrams", "packets", -1, Datagrams},
	{Changes, "changes", "1", 0, 0},
	{ChangeTime, "time of a change", "ns", -1, 0},
	{ChangeTimeMax, "longest time of a change", "ns", -1, 0},
	{Interruption, "longest interruption", "ns", -1, Streams},
	{DatagramsSent, "datagrams sent", "1/s", +1, Datagrams},
	{DatagramsReceived, "datagrams received", "1/s", +1, Datagrams},
	{Errors, "errors", "1", -1, Summed},
	{ToolRetransmits, "retransmits by the tool", "1", -1, 0},
	{ToolSenderRetransmits, "sender retransmits by the tool", "1", -1, 0},
	{ToolReceiverRetransmits, "receiver retransmits by the tool", "1", -1, 0},
	{ToolSenderFrame, "sender frame size by the tool", "B", 0, Streams},
	{ToolReceiverFrame, "receiver frame size by the tool", "B", 0, Streams},
	{ToolSenderCPU, "sender CPU by the tool", "%", -1, 0},
	{ToolReceiverCPU, "receiver CPU by the tool", "%", -1, 0},
	{ToolSenderCPUPerByte, "sender CPU per byte by the tool", "ns/B", -1, 0},
	{ToolReceiverCPUPerByte, "receiver CPU per byte by the tool", "ns/B", -1, 0},
	{SenderCPU, "sender CPU", "%", -1, 0},
	{ReceiverCPU, "receiver CPU", "%", -1, 0},
	{SenderCores, "sender CPU", "cores", -1, 0},
	{ReceiverCores, "receiver CPU", "cores", -1, 0},
	{SenderUserCPU, "sender user CPU", "%", -1, 0},
	{SenderSystemCPU, "sender system CPU", "%", -1, 0},
	{SenderSoftirqCPU, "sender softirq CPU", "%", -1, 0},
	{SenderIRQCPU, "sender irq CPU", "%", -1, 0},
	{SenderStealCPU, "sender steal", "%", -1, 0},
	{ReceiverUserCPU, "receiver user CPU", "%", -1, 0},
	{ReceiverSystemCPU, "receiver system CPU", "%", -1, 0},
	{ReceiverSoftirqCPU, "receiver softirq CPU", "%", -1, 0},
	{ReceiverIRQCPU, "receiver irq CPU", "%", -1, 0},
	{ReceiverStealCPU, "receiver steal", "%", -1, 0},
	{SenderCPUPerByte, "sender CPU per byte", "ns/B", -1, 0},
	{ReceiverCPUPerByte, "receiver CPU per byte", "ns/B", -1, 0},
	{SenderCPUPerPacket, "sender CPU per packet", "ns/packet", -1, 0},
	{ReceiverCPUPerPacket, "receiver CPU per packet", "ns/packet", -1, 0},
	{SenderToolCores, "sender tool CPU", "cores", -1, 0},
	{ReceiverToolCores, "receiver tool CPU", "cores", -1, 0},
	{SenderGuestCores, "sender CPU in VMs", "cores", -1, 0},
	{ReceiverGuestCores, "receiver CPU in VMs", "cores", -1, 0},
	{SenderNetworkCores, "sender CPU outside VMs", "cores", -1, 0},
	{ReceiverNetworkCores, "receiver CPU outside VMs", "cores", -1, 0},
	{SenderForeignCPU, "foreign CPU at the sender", "%", -1, 0},
	{ReceiverForeignCPU, "foreign CPU at the receiver", "%", -1, 0},
	{FabricCores, "fabric CPU", "cores", 0, 0},
	{ReceiverFabricCores, "fabric CPU at the receiver", "cores", 0, 0},
	{DelayErrorP50, "error of the delay p50", "ns", -1, 0},
	{DelayErrorP99, "error of the delay p99", "ns", -1, 0},
	{ObserverCores, "observer CPU", "cores", -1, 0},
	{Retransmits, "retransmits", "segments", -1, Summed},
	{Segments, "segments", "segments", 0, 0},
	{RTT, "TCP RTT", "ns", -1, 0},
	{MSS, "TCP MSS", "B", 0, 0},
	{Cwnd, "TCP cwnd", "segments", 0, 0},
	{PacketsPerSecond, "packets on the fabric", "1/s", +1, 0},
	{FabricBits, "bits on the fabric", "bit/s", 0, 0},
	{FabricGoodput, "fabric goodput", "bit/s", +1, 0},
	{DSCPShare, "DSCP on the wire", "1", 0, Percent},
	{SentPacket, "payload of a sent packet", "B", 0, Streams},
	{SegmentsPerSKB, "segments per skb", "1", 0, 0},
	{Drops, "drops", "packets", -1, 0},
	{BytesInWindow, "payload in window", "B", 0, 0},
	{WindowSeconds, "window", "s", 0, 0},
	{ReceiverSoftirqOnRecv, "receive work on own CPUs", "1", 0, 0},
	{CPUDistance, "CPU distance", "ns", 0, 0},
	{CPUDistanceLow, "CPU distance low", "ns", 0, 0},
	{CPUDistanceHigh, "CPU distance high", "ns", 0, 0},
	{MemoryCopy, "memory copy", "bit/s", 0, 0},
	{KeptSlices, "slices kept", "1", 0, 0},
	{Capacity, "capacity of one CPU", "bit/s", +1, 0},
}

var byMetric = func() map[Metric]Info {
	m := make(map[Metric]Info, len(infos))
	for _, i := range infos {
		m[i.Metric] = i
	}
	return m
}()

// Known lists every metric in the order of the reports.
func Known() []Info { return append([]Info(nil), infos...) }

// Names lists the names of all metrics in the same order.
func Names() (names []string) {
	for _, info := range infos {
		names = append(names, string(info.Metric))
	}
	return names
}

// ControlPlane is the group of a cluster's control plane outside the nodes' network namespaces:
// API server, etcd, kubelets of other nodes. It is metered by process.
const ControlPlane = "control plane"

// groupCores is the part of a metric's name between the side and the group of GroupCores.
const groupCores = "_group_cpu_cores/"

// GroupCores is the CPU time of a group of processes on a node's CPUs, such as the control groups
// of the CNI plugin's agent, in CPU-seconds per second. Known does not list these metrics: their names depend on
// the node.
func GroupCores(side, group string) Metric { return Metric(side + groupCores + group) }

// Group returns the name of the group of a GroupCores metric; "" for others.
func (m Metric) Group() string {
	_, group, _ := strings.Cut(string(m), groupCores)
	return group
}

// Describe returns how to print m; ok is false for a name that is not a metric.
func Describe(m Metric) (info Info, ok bool) {
	if group := m.Group(); group != "" && m.Side() != "" {
		return Info{m, m.Side() + " CPU of " + group, "cores", -1, 0}, true
	}
	info, ok = byMetric[m]
	return info, ok
}

// Label returns the metric's name in tables and sentences.
func (m Metric) Label() string {
	if info, ok := Describe(m); ok {
		return info.Label
	}
	return string(m)
}

// Side returns "sender" or "receiver" for a metric of that side only; else "".
func (m Metric) Side() string {
	side, _, _ := strings.Cut(string(m), "_")
	if side == "sender" || side == "receiver" {
		return side
	}
	return ""
}
