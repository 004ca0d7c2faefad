package meter

import (
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// Metrics turns the window of the two nodes into the figures of a sample.
// receiver is nil if both endpoints are on one node. That node's CPU carries
// both sides and cannot be divided: it is recorded under the sender's names,
// and the receiver's CPU is absent.
//
// If the nodes are not pinned, there are no figures for the CPU of the sender and of the receiver, and none that are computed from these.
//
// The fabric's work is subtracted from the CPU on which it ran, from softirq
// first, and recorded separately. Steal is never part of a node's CPU.
func Metrics(sender, receiver *Delta, f Facts) sample.Metrics {
	ms := sample.Metrics{}
	ms.Set(sample.WindowSeconds, sender.Seconds)
	t := trialDeltas{sender: sender, receiver: receiver, Facts: f}
	payload := t.payload()
	if payload > 0 {
		ms.Set(sample.BytesInWindow, payload)
	}
	t.sentPacket(ms, payload)
	packets := t.fabric(ms)
	t.cpu(ms, sender, senderCPU, payload, packets)
	if receiver != nil {
		t.cpu(ms, receiver, receiverCPU, payload, packets)
	}
	t.tools(ms)
	t.groups(ms)
	t.tcp(ms)
	t.datagrams(ms)
	t.receivePlace(ms)
	t.wire(ms)
	if f.Stream {
		ms.SetCapacity()
	}
	return ms
}

// trialDeltas is one window with all known facts about it.
type trialDeltas struct {
	sender, receiver *Delta
	Facts
}

// wire records the CPU time of the fabric's work, and the part of it on the
// receiver's CPUs.
func (t trialDeltas) wire(ms sample.Metrics) {
	if t.WireCPU == nil {
		return
	}
	all, receiver := 0.0, 0.0
	for cpu, s := range t.WireCPU {
		all += s
		if t.receiver == nil {
			continue
		}
		if _, ok := t.receiver.CPUs[cpu]; ok {
			receiver += s
		}
	}
	ms.Set(sample.FabricCores, all/t.sender.Seconds)
	if t.receiver != nil && !t.Unpinned {
		ms.Set(sample.ReceiverFabricCores, receiver/t.sender.Seconds)
	}
}

// groups records the CPU time of each node's control groups.
func (t trialDeltas) groups(ms sample.Metrics) {
	for i, n := range t.nodes() {
		for name, seconds := range n.Groups {
			ms.Set(sample.GroupCores([...]string{SenderSide, ReceiverSide}[i], name), seconds/n.Seconds)
		}
	}
}

func (t trialDeltas) nodes() []*Delta {
	if t.receiver == nil {
		return []*Delta{t.sender}
	}
	return []*Delta{t.sender, t.receiver}
}

// payload returns the payload bytes of the window. TCP counts them exactly on
// sockets that lasted through the window. Otherwise the tool's figure is used,
// which is of the tool's longer window.
func (t trialDeltas) payload() float64 {
	received, lasting := uint64(0), false
	for _, n := range t.nodes() {
		for _, ns := range n.Namespaces {
			for _, s := range ns.Sockets {
				if s.New {
					return t.reported()
				}
				lasting = true
				received += s.BytesReceived
			}
		}
	}
	// The data sockets may have ended in the window, so that only a tool's
	// control connection lasted through it.
	if reported := t.reported(); !lasting || received == 0 || float64(received) < reported/2 {
		return reported
	}
	return float64(received)
}

func (t trialDeltas) reported() float64 { return t.Throughput / 8 * t.sender.Seconds }

// cpuNames are the metrics of one side's CPU.
type cpuNames struct {
	percent, cores, user, system, softirq, irq, steal, perByte, perPacket, guest, network sample.Metric
}

var (
	senderCPU = cpuNames{sample.SenderCPU, sample.SenderCores, sample.SenderUserCPU, sample.SenderSystemCPU, sample.SenderSoftirqCPU,
		sample.SenderIRQCPU, sample.SenderStealCPU, sample.SenderCPUPerByte, sample.SenderCPUPerPacket, sample.SenderGuestCores, sample.SenderNetworkCores}
	receiverCPU = cpuNames{sample.ReceiverCPU, sample.ReceiverCores, sample.ReceiverUserCPU, sample.ReceiverSystemCPU, sample.ReceiverSoftirqCPU,
		sample.ReceiverIRQCPU, sample.ReceiverStealCPU, sample.ReceiverCPUPerByte, sample.ReceiverCPUPerPacket, sample.ReceiverGuestCores, sample.ReceiverNetworkCores}
)

func (t trialDeltas) cpu(ms sample.Metrics, n *Delta, names cpuNames, payload float64, packets uint64) {
	u, count := n.CPU(t.WireCPU)
	if count == 0 {
		return
	}
	percent := func(seconds float64) float64 { return 100 * seconds / n.Seconds / float64(count) }
	ms.Set(names.steal, percent(u.Steal))
	guests := 0.0
	for _, s := range n.Guests {
		guests += s
	}
	if len(n.Guests) > 0 {
		ms.Set(names.guest, guests/n.Seconds)
	}
	if t.Unpinned {
		return
	}
	ms.Set(names.percent, percent(u.Busy))
	ms.Set(names.cores, u.Busy/n.Seconds)
	ms.Set(names.user, percent(u.User))
	ms.Set(names.system, percent(u.System))
	ms.Set(names.softirq, percent(u.Softirq))
	ms.Set(names.irq, percent(u.IRQ))
	if len(n.Guests) > 0 {
		ms.Set(names.network, max(u.Busy-guests, 0)/n.Seconds)
	}
	if payload > 0 {
		ms.Set(names.perByte, u.Busy*1e9/payload)
	}
	if packets > 0 {
		ms.Set(names.perPacket, u.Busy*1e9/float64(packets))
	}
}

// CPU returns the sum over the node's CPUs without the fabric's work, and their
// number.
func (d *Delta) CPU(wire map[int]float64) (sum Usage, count int) {
	for cpu, u := range d.CPUs {
		sum = sum.add(u.without(wire[cpu]))
	}
	return sum, len(d.CPUs)
}

// fabric sets what the fabric carried, and returns its frames in both
// directions. It uses received counts on both nodes: a sending device that
// segments counts superframes, a receiving one the frames from the wire. A
// colocated trial has no fabric; its endpoints' devices are used instead.
func (t trialDeltas) fabric(ms sample.Metrics) (packets uint64) {
	role := RoleFabric
	if t.Colocated {
		role = RoleEndpoint
	}
	found := false
	bits, goodput := 0.0, 0.0
	for i, n := range t.nodes() {
		for _, d := range n.devices() {
			if d.Role != role {
				continue
			}
			found = true
			packets += d.RxPackets
			bits += 8 * float64(d.ReceivedBytes())
			if t.Colocated || t.receivesData(i) {
				goodput += 8 * t.goodput(d)
			}
		}
	}
	if !found {
		return 0
	}
	ms.Set(sample.PacketsPerSecond, float64(packets)/t.sender.Seconds)
	ms.Set(sample.FabricBits, bits/t.sender.Seconds)
	if t.Headers > 0 {
		ms.Set(sample.FabricGoodput, goodput/t.sender.Seconds)
	}
	t.merging(ms)
	t.drops(ms)
	return packets
}

// receivesData reports whether node i (0 the sender's, 1 the receiver's)
// receives payload.
func (t trialDeltas) receivesData(i int) bool {
	switch t.Direction {
	case suite.Both:
		return true
	case suite.Reverse:
		return i == 0
	}
	return i == 1
}

// merging sets the number of frames from the wire in one merged buffer: the
// frames of the data-receiving fabric device over the buffers passed to IP in
// the endpoints there. A system that merges again behind the fabric device
// raises it.
func (t trialDeltas) merging(ms sample.Metrics) {
	if t.Colocated || t.receiver == nil {
		return
	}
	n, endpoints := t.receiver, t.ReceiverEndpoints
	if t.Direction == suite.Reverse {
		n, endpoints = t.sender, t.SenderEndpoints
	}
	frames, buffers := uint64(0), n.ipBuffers(endpoints)
	for _, d := range n.devices() {
		if d.Role == RoleFabric {
			frames += d.RxPackets
		}
	}
	if frames > 0 && buffers > 0 {
		ms.Set(sample.SegmentsPerSKB, float64(frames)/float64(buffers))
	}
}

// sentPacket sets the payload of a packet of the data-sending endpoints. It is not
// known for traffic in both directions, nor if the two endpoints share a namespace:
// acknowledgements are packets too.
func (t trialDeltas) sentPacket(ms sample.Metrics, payload float64) {
	n, endpoints := t.sender, t.SenderEndpoints
	switch {
	case t.Direction == suite.Both, t.Direction == "", t.Colocated && len(endpoints) == 0:
		return
	case t.Direction == suite.Reverse:
		endpoints = t.ReceiverEndpoints
		if t.receiver != nil {
			n = t.receiver
		}
	}
	packets := uint64(0)
	for _, ns := range n.Namespaces {
		if takesPart(ns.Name, endpoints) {
			packets += ns.Counters[IPOutRequests] + ns.Counters[IP6OutRequests]
		}
	}
	if packets > 0 && payload > 0 {
		ms.Set(sample.SentPacket, payload/float64(packets))
	}
}

// ipBuffers returns the number of buffers that the IP stacks of the endpoints
// received.
func (d *Delta) ipBuffers(endpoints []string) (buffers uint64) {
	for _, ns := range d.Namespaces {
		if takesPart(ns.Name, endpoints) {
			buffers += ns.Counters[IPInReceives] + ns.Counters[IP6InReceives]
		}
	}
	return buffers
}

// takesPart reports whether a namespace has an endpoint of the trial.
func takesPart(namespace string, endpoints []string) bool {
	if len(endpoints) == 0 {
		return namespace == ""
	}
	return slices.Contains(endpoints, namespace)
}

// drops sums the drops of all metered hops. It does not add those of softnet:
// the device counts each of them too (enqueue_to_backlog, net/core/dev.c). Nor
// does it add frames that a port of the wire refused: the NIC counts them as
// not transmitted (veth_xmit, drivers/net/veth.c).
func (t trialDeltas) drops(ms sample.Metrics) {
	sum := uint64(0)
	for _, n := range append(t.nodes(), t.Ports) {
		for _, d := range n.devices() {
			sum += d.TxDrops + d.Qdisc.Drops + d.Qdisc.IngressDrops
			if d.Role != RolePort {
				sum += d.RxDrops
			}
		}
	}
	ms.Set(sample.Drops, float64(sum))
}

func (t trialDeltas) tools(ms sample.Metrics) {
	observer := t.Engine
	for _, n := range t.nodes() {
		observer += n.Observer
	}
	ms.Set(sample.ObserverCores, observer/t.sender.Seconds)
	if t.receiver == nil {
		for label, metric := range map[string]sample.Metric{SenderSide: sample.SenderToolCores, ReceiverSide: sample.ReceiverToolCores} {
			if s, ok := t.sender.Tools[label]; ok {
				ms.Set(metric, s/t.sender.Seconds)
			}
		}
		return
	}
	setTools(ms, sample.SenderToolCores, t.sender)
	setTools(ms, sample.ReceiverToolCores, t.receiver)
}

func setTools(ms sample.Metrics, name sample.Metric, n *Delta) {
	if len(n.Tools) == 0 {
		return
	}
	sum := 0.0
	for _, s := range n.Tools {
		sum += s
	}
	ms.Set(name, sum/n.Seconds)
}

// tcp sets segments, retransmits, and medians over the data sockets.
func (t trialDeltas) tcp(ms sample.Metrics) {
	segments, again, known := uint64(0), uint64(0), false
	var sockets []SocketDelta
	for _, n := range t.nodes() {
		for _, ns := range n.Namespaces {
			out, ok := ns.Counters[TCPOutSegs]
			known = known || ok
			segments += out
			again += ns.Counters[TCPRetransSegs]
			sockets = append(sockets, ns.Sockets...)
		}
	}
	if known && segments > 0 {
		ms.Set(sample.Segments, float64(segments))
		ms.Set(sample.Retransmits, float64(again))
	}
	senders := busySenders(sockets)
	if len(senders) == 0 {
		return
	}
	ms.Set(sample.MSS, median(senders, func(s SocketDelta) float64 { return float64(s.MSS) }))
	ms.Set(sample.Cwnd, median(senders, func(s SocketDelta) float64 { return float64(s.Cwnd) }))
	senders = slices.DeleteFunc(senders, func(s SocketDelta) bool { return s.RTT == 0 })
	if len(senders) > 0 {
		ms.Set(sample.RTT, median(senders, func(s SocketDelta) float64 { return float64(s.RTT) }))
	}
}

// busySenders leaves out sockets that sent less than a hundredth of what the
// busiest socket sent: a tool's control connection, the silent side of a
// stream.
func busySenders(all []SocketDelta) []SocketDelta {
	most := uint64(0)
	for _, s := range all {
		most = max(most, s.BytesAcked)
	}
	var busy []SocketDelta
	for _, s := range all {
		if s.BytesAcked > 0 && s.BytesAcked >= most/100 {
			busy = append(busy, s)
		}
	}
	return busy
}

// median of at least one value.
func median(sockets []SocketDelta, of func(SocketDelta) float64) float64 {
	v := make([]float64, len(sockets))
	for i, s := range sockets {
		v[i] = of(s)
	}
	middle, _, _ := stats.Median(v)
	return middle
}

// receivePlace sets the share of the receiver's packets that its own CPUs
// processed in the receive path. It can be known only for a plain fabric
// without VMs, whose kernels have separate queues. The sender's CPUs process
// the packets that the sender's devices received; any packets beyond those are
// the receiver's. A wire's packets are processed on the nodes' CPUs too, so
// that the count has no meaning there.
func (t trialDeltas) receivePlace(ms sample.Metrics) {
	if t.receiver == nil || len(t.sender.Guests) > 0 || t.WireCPU != nil || t.Ports != nil || len(t.sender.Softnet) == 0 || t.Direction == suite.Reverse {
		return
	}
	processed, own, arrived := uint64(0), uint64(0), t.receiver.ipBuffers(t.ReceiverEndpoints)
	for _, n := range t.sender.Softnet {
		processed += n
	}
	for _, d := range t.sender.devices() {
		own += d.RxPackets
	}
	if arrived == 0 {
		return
	}
	foreign := 0.0
	if processed > own {
		foreign = float64(processed - own)
	}
	ms.Set(sample.ReceiverSoftirqOnRecv, max(0, 1-foreign/float64(arrived)))
}

// Lengths of headers in bytes.
const (
	EthernetHeader = 14
	IPv4Header     = 20
	IPv6Header     = 40
	TCPHeader      = 20
	TCPTimestamps  = 12 // RFC 7323, padded, on every segment of a Linux connection
	UDPHeader      = 8
)

// TCPHeaders is the length of all headers of a TCP data frame with timestamps,
// from Ethernet on. ipVersion is 4 or 6.
func TCPHeaders(ipVersion int) int {
	return EthernetHeader + ipHeader(ipVersion) + TCPHeader + TCPTimestamps
}

// UDPHeaders is the length of all headers of a datagram that is not fragmented.
func UDPHeaders(ipVersion int) int { return EthernetHeader + ipHeader(ipVersion) + UDPHeader }

func ipHeader(version int) int {
	if version == 6 {
		return IPv6Header
	}
	return IPv4Header
}

// goodput computes the payload that a device received, in bytes. If a frame can carry several packets of the same size, goodput
// first subtracts the headers that each frame has once. What is left, divided by the size of a packet with its own headers, is the
// number of packets.
func (f Facts) goodput(d DeviceDelta) float64 {
	bytes := d.ReceivedBytes()
	if f.PerPacket == 0 || f.Payload == 0 {
		return float64(goodputFromCounters(bytes, d.RxPackets, f.Headers))
	}
	packets := float64(goodputFromCounters(bytes, d.RxPackets, f.Headers-f.PerPacket)) / float64(int64(f.PerPacket)+f.Payload)
	return packets * float64(f.Payload)
}

// goodputFromCounters computes the payload, in bytes, from a device's byte and
// packet counters, if every packet has headers of headerBytes. The bytes must
// include Ethernet headers (DeviceReading.ReceivedBytes).
//
// A pure acknowledgement in the same direction adds exactly nothing: its packet
// has headers only. Selective acknowledgements make a header longer by 12 to 36
// bytes, which is ignored.
//
// A superframe of a device that segments counts as one packet with one set of
// headers. On a wire it would be many packets. The payload is right for both;
// the bytes on the wire differ.
func goodputFromCounters(bytes, packets uint64, headerBytes int) uint64 {
	headers := packets * uint64(max(headerBytes, 0))
	if headers >= bytes {
		return 0
	}
	return bytes - headers
}

// Facts are the inputs of a trial's figures that no node's meter knows.
type Facts struct {
	Colocated bool // both endpoints are on the sender's node
	Unpinned  bool // the nodes share the metered CPUs, so their CPU time is not that of one node
	Direction suite.Direction
	// Throughput is the received payload that the tool reports, in bits per
	// second, both directions together; 0 if it reports none. It replaces TCP's
	// count of the window where that is missing (UDP, short connections).
	Throughput float64
	Stream     bool // the traffic is a TCP or UDP stream
	// Loss is the share of a UDP stream's datagrams that the tool reports as
	// lost; nil if it reports none.
	Loss *float64
	// Headers is the length of all headers of a data frame on the fabric, from
	// Ethernet on, with tunnel headers; 0 if unknown. See TCPHeaders.
	Headers int
	// PerPacket is 0 if each frame on the fabric carries one packet. If a frame can carry several packets, Headers has two parts: one
	// that occurs once in a frame, and one that occurs once for each packet. PerPacket is the length of the second part, in bytes.
	PerPacket int
	// Payload is the number of payload bytes in each datagram of a UDP stream. It is 0 for TCP, and if the datagrams have
	// different sizes.
	Payload int64
	// WireCPU is the CPU time of the fabric's work in the window, in seconds by
	// CPU; nil if the fabric does not measure it.
	WireCPU map[int]float64
	// Ports is the window of a meter over the wire's ports, in path order; nil
	// if the fabric has none.
	Ports *Delta
	// Engine is the engine's CPU time in the window, in seconds.
	Engine float64
	// SenderEndpoints and ReceiverEndpoints are the containers of the trial;
	// empty if the nodes themselves are the endpoints.
	SenderEndpoints, ReceiverEndpoints []string
}

// RefusedByPorts is the number of frames that the wire lost because a port did
// not accept them from a NIC.
func (f Facts) RefusedByPorts() uint64 {
	sum := uint64(0)
	for _, d := range f.Ports.devices() {
		sum += d.RxDrops
	}
	return sum
}

// Labels of tracked tool processes if both sides run on one node.
const (
	SenderSide   = "sender"
	ReceiverSide = "receiver"
)
