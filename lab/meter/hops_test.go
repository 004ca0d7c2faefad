package meter

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// bridged is a node with containers on a bridge, as systems list its devices.
func bridged(node string, containers ...string) *Delta {
	d := &Delta{Node: node, Seconds: 1, Namespaces: []NamespaceDelta{{}}}
	order := 0
	device := func(name, role string) DeviceDelta {
		order++
		return DeviceDelta{DeviceReading{Name: name, Role: role, Order: order, Traffic: Traffic{RxPackets: uint64(order)}, RxDrops: 1, Qdisc: Qdisc{Drops: 2, IngressDrops: 3}}}
	}
	for _, c := range containers {
		d.Namespaces = append(d.Namespaces, NamespaceDelta{Name: c, Devices: []DeviceDelta{device("eth0", RoleEndpoint)}})
		d.Namespaces[0].Devices = append(d.Namespaces[0].Devices, device("vif"+c, RoleVif))
	}
	for _, x := range []struct{ name, role string }{{"br0", RoleBridge}, {"vxlan0", RoleTunnel}, {"fab", RoleFabric}} {
		d.Namespaces[0].Devices = append(d.Namespaces[0].Devices, device(x.name, x.role))
	}
	return d
}

func names(hops []sample.Hop) string {
	var b strings.Builder
	for i, h := range hops {
		if h.Order != i {
			b.WriteString("!")
		}
		b.WriteString(" " + h.Node + ":" + h.Endpoint + ":" + h.Device)
	}
	return strings.TrimSpace(b.String())
}

func TestHopsOfTwoNodesAreInPathOrder(t *testing.T) {
	wire := &Delta{Namespaces: []NamespaceDelta{{Devices: []DeviceDelta{
		{DeviceReading{Name: "porta", Role: RolePort, Order: 0}}, {DeviceReading{Name: "portb", Role: RolePort, Order: 1}}}}}}
	hops := Hops(bridged("a", "c1", "c2"), bridged("b", "c1", "c2"), Facts{Ports: wire, SenderEndpoints: []string{"c1"}, ReceiverEndpoints: []string{"c2"}})
	want := "a:c1:eth0 a::vifc1 a::br0 a::vxlan0 a::fab wire::porta wire::portb b::fab b::vxlan0 b::br0 b::vifc2 b:c2:eth0"
	must.Equal(t, want, names(hops))
	if h := hops[0]; h.RxDropped != 1 || h.QdiscDrop != 5 || h.RxPackets != 1 || h.Role != RoleEndpoint {
		t.Errorf("the first hop is %+v, want 1 dropped packet and 5 in the queue", h)
	}
}

func TestHopsOfNodesThatAreEndpointsThemselves(t *testing.T) {
	a, b := stream()
	must.Equal(t, "a::fab b::fab", names(Hops(a, b, Facts{})))
}

func TestHopsOnOneNodePassTheBridgeOnce(t *testing.T) {
	hops := Hops(bridged("a", "c1", "c2", "c3"), nil, Facts{Colocated: true, SenderEndpoints: []string{"c1"}, ReceiverEndpoints: []string{"c3"}})
	if got := names(hops); got != "a:c1:eth0 a::vifc1 a::br0 a::vifc3 a:c3:eth0" {
		t.Errorf("the hops are %q, want both endpoints with their vifs around br0", got)
	}
}

// series is readings 100 ms apart in which the CPU is busy by the given
// percent and the device receives the given bytes.
func series(start int64, busy []float64, bytes []uint64) SeriesSide {
	l := Light{Mono: start, Idle: []int64{0}, Traffic: []Traffic{{}}}
	side := SeriesSide{CPUs: []int{0}, Lights: []Light{l}}
	for i := range busy {
		next := Light{Mono: l.Mono + 1e8, Idle: []int64{l.Idle[0] + int64(1e8*(1-busy[i]/100))}, Traffic: []Traffic{{RxBytes: l.Traffic[0].RxBytes + bytes[i]}}}
		side.Lights, l = append(side.Lights, next), next
	}
	return side
}

func TestPointsJoinBothNodes(t *testing.T) {
	sender := series(1e9, []float64{80, 90, 70}, []uint64{10, 10, 10})
	receiver := series(1e9+3e6, []float64{50, 60, 40}, []uint64{125_000, 250_000, 0})
	got := Points(sender, &receiver, nil, 11e8, Facts{Direction: suite.Forward})
	if len(got) != 3 {
		t.Fatalf("%d points", len(got))
	}
	for i, want := range []sample.Point{{At: 0, Bits: 1e7, SenderCPU: 80, ReceiverCPU: 50}, {At: 0.1, Bits: 2e7, SenderCPU: 90, ReceiverCPU: 60}, {At: 0.2, SenderCPU: 70, ReceiverCPU: 40}} {
		p := got[i]
		if !near(p.At, want.At, 1e-9) || !near(p.Bits, want.Bits, 1) || !near(p.SenderCPU, want.SenderCPU, 1e-6) || !near(p.ReceiverCPU, want.ReceiverCPU, 1e-6) {
			t.Errorf("point %d: %+v, want %+v", i, p, want)
		}
	}
}

// The wire works on the sender's CPU for 10 ms of the first slice and 20 ms of
// the second; its clock is read in between too.
func TestPointsSubtractTheWiresWork(t *testing.T) {
	sender := series(1e9, []float64{80, 90, 70}, []uint64{0, 0, 0})
	receiver := series(1e9, []float64{50, 60, 40}, []uint64{125_000, 250_000, 0})
	receiver.CPUs = []int{1}
	var wire []WireReading
	for mono, used := range map[int64]float64{1e9: 5, 105e7: 5.005, 11e8: 5.01, 12e8: 5.03} {
		wire = append(wire, WireReading{Mono: mono, Used: map[int]float64{0: used}})
	}
	slices.SortFunc(wire, func(a, b WireReading) int { return cmp.Compare(a.Mono, b.Mono) })
	got := Points(sender, &receiver, wire, 1e9, Facts{Direction: suite.Forward})
	for i, want := range []float64{70, 70, 70} {
		if !near(got[i].SenderCPU, want, 1e-5) {
			t.Errorf("point %d: sender %v, want %v", i, got[i].SenderCPU, want)
		}
	}
	must.Equal(t, 60, got[1].ReceiverCPU)

	unpinned := Points(sender, &receiver, wire, 1e9, Facts{Direction: suite.Forward, Unpinned: true})
	for i, p := range unpinned {
		if p.SenderCPU != 0 || p.ReceiverCPU != 0 || p.Bits != got[i].Bits {
			t.Errorf("point %d is %+v if the nodes are not pinned, and %+v if they are; want the same without CPU figures", i, p, got[i])
		}
	}
}

func TestPointsHaveTheStealOfTheNodeThatLostMore(t *testing.T) {
	sender, receiver := series(1e9, []float64{80, 80}, []uint64{0, 0}), series(1e9, []float64{80, 80}, []uint64{0, 0})
	for i, stolen := range []int64{0, 1e7, 1e7} {
		sender.Lights[i].Steal = []int64{0}
		receiver.Lights[i].Steal = []int64{stolen}
	}
	got := Points(sender, &receiver, nil, 1e9, Facts{Direction: suite.Forward})
	if !near(got[0].Steal, 10, 1e-9) || got[1].Steal != 0 {
		t.Errorf("steal %v and %v %%, want 10 and 0", got[0].Steal, got[1].Steal)
	}
}

func TestStepsThatCannotBeComparedAreLeftOut(t *testing.T) {
	side := series(1e9, []float64{10, 20, 30}, []uint64{1, 1, 1})
	side.Lights[1].Idle = []int64{-1} // offline then
	must.Equal(t, 1, len(steps(side, nil)))
	side = series(1e9, []float64{10, 20}, []uint64{5, 5})
	side.Lights[2].Traffic = []Traffic{{RxBytes: 1}} // made anew
	must.Equal(t, 1, len(steps(side, nil)))
}
