package meter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// stream is a window of 2 s in which 1 GB went from node a to node b, one CPU
// each; a's device hands over superframes, the wire delivers frames.
func stream() (a, b *Delta) {
	const frames, acks = 690_608, 20_000 // of 1448 bytes of payload
	a = &Delta{Node: "a", Seconds: 2, Observer: 0.01, Tools: map[string]float64{"tool": 0.8},
		CPUs:    map[int]Usage{0: {Busy: 1.6, User: 0.1, System: 1.0, Softirq: 0.5, Idle: 0.4}},
		Softnet: map[int]uint64{0: acks},
		Namespaces: []NamespaceDelta{{
			Counters: Counters{TCPOutSegs: frames, TCPRetransSegs: 4, IPInReceives: acks},
			Devices:  []DeviceDelta{{DeviceReading{Name: "fab", Role: RoleFabric, Traffic: Traffic{RxBytes: 66 * acks, RxPackets: acks, TxPackets: 16_000}, TxDrops: 1}}},
			Sockets: []SocketDelta{
				{Socket: Socket{BytesAcked: 6e8, RTT: 100_000, MSS: 1448, Cwnd: 30}},
				{Socket: Socket{BytesAcked: 4e8, RTT: 300_000, MSS: 1448, Cwnd: 50}},
				{Socket: Socket{BytesAcked: 300, RTT: 9e9, MSS: 500, Cwnd: 1}}, // a control connection
			}}}}
	b = &Delta{Node: "b", Seconds: 2, Observer: 0.03, Tools: map[string]float64{"tool": 0.4},
		CPUs: map[int]Usage{1: {Busy: 1.2, System: 0.4, Softirq: 0.8, Idle: 0.6, Steal: 0.2}},
		Namespaces: []NamespaceDelta{{
			Counters: Counters{TCPOutSegs: acks, IPInReceives: frames / 16},
			Devices: []DeviceDelta{{DeviceReading{Name: "fab", Role: RoleFabric,
				Traffic: Traffic{RxBytes: 1e9 + 52*frames, RxPackets: frames, TxPackets: acks}, RxBare: frames, Qdisc: Qdisc{Drops: 2}}}},
			Sockets: []SocketDelta{{Socket: Socket{BytesReceived: 6e8}}, {Socket: Socket{BytesReceived: 4e8}}},
		}}}
	return a, b
}

func TestMetricsOfAStream(t *testing.T) {
	a, b := stream()
	got := Metrics(a, b, Facts{Direction: suite.Forward, Throughput: 5e9, Headers: TCPHeaders(4), WireCPU: map[int]float64{1: 0.3}, Engine: 0.02})
	// The wire's 0.3 s ran on CPU 1, in softirq. They hold the wire's part of the
	// 0.2 s that were stolen while the CPU was busy for 1.2 s.
	const receiver = (1.2 - 0.3*1.2/1.4) / 2
	want := sample.Metrics{
		sample.WindowSeconds: 2, sample.BytesInWindow: 1e9,
		sample.SenderCPU: 80, sample.SenderCores: 0.8, sample.SenderUserCPU: 5, sample.SenderSystemCPU: 50, sample.SenderSoftirqCPU: 25,
		sample.SenderIRQCPU: 0, sample.SenderStealCPU: 0, sample.SenderCPUPerByte: 1.6, sample.SenderCPUPerPacket: 1.6e9 / 710_608,
		sample.ReceiverCPU: 100 * receiver, sample.ReceiverCores: receiver, sample.ReceiverUserCPU: 0, sample.ReceiverSystemCPU: 20, sample.ReceiverSoftirqCPU: 100 * (receiver - 0.2),
		sample.ReceiverIRQCPU: 0, sample.ReceiverStealCPU: 10, sample.ReceiverCPUPerByte: 2 * receiver, sample.ReceiverCPUPerPacket: 2e9 * receiver / 710_608,
		sample.SenderToolCores: 0.4, sample.ReceiverToolCores: 0.2, sample.ObserverCores: 0.03, sample.FabricCores: 0.15, sample.ReceiverFabricCores: 0.15,
		sample.PacketsPerSecond: 355_304, sample.FabricBits: 4 * (66*20_000 + 1e9 + 66*690_608), sample.FabricGoodput: 4e9,
		sample.SegmentsPerSKB: 690_608.0 / 43_163, sample.Drops: 3,
		sample.Segments: 710_608, sample.Retransmits: 4, sample.MSS: 1448, sample.Cwnd: 40, sample.RTT: 200_000,
	}
	same := cmp.Comparer(func(x, y float64) bool { return near(x, y, 1e-9*max(1, x)) })
	must.Equal(t, want, got, same)
	for m := range got {
		if _, ok := sample.Describe(m); !ok {
			t.Errorf("%s is not a metric", m)
		}
	}
}

func TestAFrameThatAPortRefusesIsOneDrop(t *testing.T) {
	a, b := stream() // the NICs have 3 drops, 1 of them on transmission
	f := Facts{Ports: &Delta{Node: WireNode, Namespaces: []NamespaceDelta{{Devices: []DeviceDelta{
		{DeviceReading{Name: "porta", Role: RolePort, RxDrops: 1}},
		{DeviceReading{Name: "portb", Role: RolePort, TxDrops: 5}},
	}}}}}
	must.Equal(t, 8, Metrics(a, b, f)[sample.Drops])
	must.Equal(t, 1, f.RefusedByPorts())
	must.Equal(t, 0, (Facts{}).RefusedByPorts())
}

func TestUnmeasuredMetricsAreAbsent(t *testing.T) {
	a, b := stream()
	for _, n := range []*Delta{a, b} {
		n.Tools, n.Namespaces = nil, nil
	}
	got := Metrics(a, b, Facts{Direction: suite.Forward})
	for _, m := range []sample.Metric{sample.BytesInWindow, sample.SenderCPUPerByte, sample.ReceiverCPUPerPacket, sample.SenderToolCores, sample.RTT,
		sample.Segments, sample.Retransmits, sample.PacketsPerSecond, sample.FabricGoodput, sample.Drops, sample.FabricCores, sample.SegmentsPerSKB} {
		if v, ok := got[m]; ok {
			t.Errorf("%s is %v", m, v)
		}
	}
	if got[sample.SenderCPU] != 80 || got[sample.ReceiverCPU] != 60 {
		t.Errorf("sender %v, receiver %v", got[sample.SenderCPU], got[sample.ReceiverCPU])
	}
}

func TestShortConnectionsTakeThePayloadFromTheTool(t *testing.T) {
	a, b := stream()
	b.Namespaces[0].Sockets[0].New = true
	got := Metrics(a, b, Facts{Throughput: 8e9})
	if got[sample.BytesInWindow] != 2e9 || got[sample.SenderCPUPerByte] != 0.8 {
		t.Errorf("%v bytes, %v ns/byte", got[sample.BytesInWindow], got[sample.SenderCPUPerByte])
	}
}

func TestGoodputFollowsTheDirectionOfTheData(t *testing.T) {
	a, b := stream()
	for direction, want := range map[suite.Direction]float64{suite.Forward: 4e9, suite.Reverse: 0, suite.Both: 4e9} {
		got := Metrics(a, b, Facts{Direction: direction, Headers: 66})
		if !near(got[sample.FabricGoodput], want, 1) {
			t.Errorf("%s: %v, want %v", direction, got[sample.FabricGoodput], want)
		}
	}
}

// Each frame carries four datagrams of 64 bytes, as Weave's frames can. The headers of a frame have 48 bytes, and those of each datagram
// in it 56 bytes more.
func TestGoodputOfFramesWithSeveralPackets(t *testing.T) {
	const datagrams, frames = 4000, 1000
	a, b := stream()
	b.Namespaces[0].Devices[0].Traffic = Traffic{RxBytes: frames*48 + datagrams*(56+64), RxPackets: frames}
	b.Namespaces[0].Devices[0].RxBare = 0
	facts := Facts{Direction: suite.Forward, Headers: 48 + 56, PerPacket: 56, Payload: 64}
	if got, want := Metrics(a, b, facts)[sample.FabricGoodput], float64(datagrams*64*8)/2; !near(got, want, 1) {
		t.Errorf("%v bit/s, want %v", got, want)
	}
}

// A superframe counts once, and acknowledgements are not the sender's packets.
func TestAPacketsPayloadIsThatOfTheSendersStack(t *testing.T) {
	a, b := stream() // 1e9 bytes from a to b
	a.Namespaces[0].Counters[IPOutRequests], a.Namespaces[0].Counters[IP6OutRequests] = 15_000, 1_000
	b.Namespaces[0].Counters[IPOutRequests] = 10_000
	for direction, want := range map[suite.Direction]float64{suite.Forward: 62_500, suite.Reverse: 100_000, suite.Both: 0, "": 0} {
		if got := Metrics(a, b, Facts{Direction: direction})[sample.SentPacket]; got != want {
			t.Errorf("direction %q: %v bytes a packet, want %v", direction, got, want)
		}
	}
	b.Namespaces[0].Name = "c1"
	if got := Metrics(b, nil, Facts{Direction: suite.Forward, Colocated: true, SenderEndpoints: []string{"c1"}, ReceiverEndpoints: []string{"c2"}})[sample.SentPacket]; got != 100_000 {
		t.Errorf("containers on one node: %v bytes a packet, want 100000", got)
	}
	if got, ok := Metrics(a, nil, Facts{Direction: suite.Forward, Colocated: true})[sample.SentPacket]; ok {
		t.Errorf("one namespace of both ends: %v bytes a packet", got)
	}
}

func TestOnOneNodeTheReceiversCPUIsAbsent(t *testing.T) {
	n, _ := stream()
	n.Tools = map[string]float64{SenderSide: 0.5, ReceiverSide: 0.25}
	got := Metrics(n, nil, Facts{Colocated: true, Direction: suite.Forward})
	if _, ok := got[sample.ReceiverCPU]; ok || got[sample.SenderCPU] != 80 {
		t.Errorf("sender %v, receiver %v", got[sample.SenderCPU], got[sample.ReceiverCPU])
	}
	if got[sample.SenderToolCores] != 0.25 || got[sample.ReceiverToolCores] != 0.125 {
		t.Errorf("tools: %v and %v", got[sample.SenderToolCores], got[sample.ReceiverToolCores])
	}
}

func TestReceiveWorkOnTheSendersCPUsIsMeasured(t *testing.T) {
	a, b := stream()
	must.Equal(t, 1, Metrics(a, b, Facts{})[sample.ReceiverSoftirqOnRecv])
	a.Softnet[0] += 43_163 / 2
	if got := Metrics(a, b, Facts{})[sample.ReceiverSoftirqOnRecv]; !near(got, 0.5, 0.001) {
		t.Errorf("half on the sender's: %v", got)
	}
}

// The table's values are those of a full-size frame and of a superframe.
func TestGoodputFromCounters(t *testing.T) {
	for _, x := range []struct {
		bytes, packets uint64
		headers        int
		want           uint64
	}{
		{1514 * 1000, 1000, TCPHeaders(4), 1448 * 1000},
		{1514 * 1000, 1000, TCPHeaders(6), 1428 * 1000},
		{1514, 1, UDPHeaders(4), 1472},
		{66 * 500, 500, TCPHeaders(4), 0}, // acknowledgements only
		{65226, 1, TCPHeaders(4), 65160},
		{10, 1, 66, 0},
	} {
		if got := goodputFromCounters(x.bytes, x.packets, x.headers); got != x.want {
			t.Errorf("%d bytes in %d packets of %d: %d, want %d", x.bytes, x.packets, x.headers, got, x.want)
		}
	}
}

func TestTheFabricsWorkAtTheReceiverIsSeparate(t *testing.T) {
	a, b := stream()
	got := Metrics(a, b, Facts{Throughput: 5e9, WireCPU: map[int]float64{0: 0.2, 1: 0.3}})
	if all, receiver := got[sample.FabricCores], got[sample.ReceiverFabricCores]; !near(all, 0.25, 1e-9) || !near(receiver, 0.15, 1e-9) {
		t.Errorf("%v cores, %v of them at the receiver, want 0.25 and 0.15", all, receiver)
	}
	if _, ok := Metrics(a, nil, Facts{Colocated: true, Throughput: 5e9, WireCPU: map[int]float64{0: 0.2}})[sample.ReceiverFabricCores]; ok {
		t.Error("a trial on one node has work at a receiver")
	}
}

// If the nodes are not pinned, figures from the CPUs' counters are absent. Figures from counters of processes and of devices are present.
func TestWithoutPinningNoCPUTimeIsOfOneSide(t *testing.T) {
	a, b := stream()
	facts := Facts{Direction: suite.Forward, Stream: true, Throughput: 5e9, Headers: TCPHeaders(4), WireCPU: map[int]float64{1: 0.3}, Engine: 0.02}
	want := Metrics(a, b, facts)
	for _, m := range []sample.Metric{sample.SenderCPU, sample.SenderCores, sample.SenderUserCPU, sample.SenderSystemCPU, sample.SenderSoftirqCPU, sample.SenderIRQCPU, sample.SenderCPUPerByte, sample.SenderCPUPerPacket,
		sample.ReceiverCPU, sample.ReceiverCores, sample.ReceiverUserCPU, sample.ReceiverSystemCPU, sample.ReceiverSoftirqCPU, sample.ReceiverIRQCPU, sample.ReceiverCPUPerByte, sample.ReceiverCPUPerPacket,
		sample.ReceiverFabricCores, sample.Capacity} {
		if _, ok := want[m]; !ok {
			t.Errorf("the nodes are pinned, but the metric %s is absent", m)
		}
		delete(want, m)
	}
	facts.Unpinned = true
	must.Equal(t, want, Metrics(a, b, facts))

	b.Guests = map[string]float64{"c1": 0.5} // CPU time of the VM's threads: known, as the system counts it by thread
	got := Metrics(a, b, facts)
	if _, ok := got[sample.ReceiverNetworkCores]; ok || got[sample.ReceiverGuestCores] != 0.25 {
		t.Errorf("the receiver's VM used %v cores, want 0.5; the rest of its node used %v, want no such metric", got[sample.ReceiverGuestCores], got[sample.ReceiverNetworkCores])
	}
}
