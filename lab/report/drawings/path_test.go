package drawings

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func names(stops []stop) string {
	var list []string
	for _, s := range stops {
		list = append(list, s.Name)
	}
	return strings.Join(list, " ")
}

func TestThePathHasTheHopsOfBothNodesAndTheWire(t *testing.T) {
	r := reporttest.Quick()
	p, ok := pathOf(keep(r).median["vxlan/stream"])
	if !ok || strings.Join(p.Nodes, " ") != "a b" {
		t.Fatalf("nodes %q, want a and b", p.Nodes)
	}
	for what, got := range map[string][2]string{
		"near":    {names(p.Near), "a1 · eth0 vif-a1 br0 vxlan0 fab"},
		"between": {names(p.Between), "port-a port-b"},
		"far":     {names(p.Far), "fab vxlan0 br0 vif-b1 b1 · eth0"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %q, want %q", what, got[0], got[1])
		}
	}
	must.Equal(t, 2, p.Far[1].Drops())
}

func TestColocatedPathMeetsAtTheBridge(t *testing.T) {
	r := reporttest.Quick()
	p, ok := pathOf(keep(r).median["bridge-colocated/stream"])
	if !ok || len(p.Nodes) != 1 || names(p.Near) != "a1 · eth0 vif-a1" || names(p.Between) != "br0" || names(p.Far) != "vif-a2 a2 · eth0" {
		t.Errorf("the path on the nodes %q is %q, %q, %q, want one node with br0 between the endpoints", p.Nodes, names(p.Near), names(p.Between), names(p.Far))
	}
	two := &sample.Sample{Hops: []sample.Hop{{Node: "a", Endpoint: "c1", Device: "mac0", Role: "endpoint"}, {Node: "a", Endpoint: "c2", Device: "mac0", Role: "endpoint", Order: 1}}}
	if p, _ := pathOf(two); names(p.Near) != "c1 · mac0" || names(p.Between) != "" || names(p.Far) != "c2 · mac0" {
		t.Errorf("without a bridge: %q, %q, %q", names(p.Near), names(p.Between), names(p.Far))
	}
}

func TestDevicesOfManyContainersAreAddedUp(t *testing.T) {
	s := &sample.Sample{}
	for _, c := range []string{"a1", "a2", "a3"} {
		s.Hops = append(s.Hops,
			sample.Hop{Node: "a", Endpoint: c, Device: "eth0", Role: "endpoint", Order: len(s.Hops), TxPackets: 10, TxBytes: 1000, QdiscDrop: 1},
			sample.Hop{Node: "a", Device: "vif-" + c, Role: "vif", Order: len(s.Hops) + 1, RxPackets: 10})
	}
	s.Hops = append(s.Hops, sample.Hop{Node: "a", Device: "fab", Role: "fabric", Order: 99}, sample.Hop{Node: "b", Device: "fab", Role: "fabric", Order: 100})
	p, _ := pathOf(s)
	if got := names(p.Near); got != "eth0 in 3 containers 3 vifs fab" {
		t.Fatalf("the near side is %q", got)
	}
	if e := p.Near[0]; e.Of != 3 || e.hops.TxPackets != 30 || e.hops.TxBytes != 3000 || e.Drops() != 3 || p.Near[1].hops.RxPackets != 30 {
		t.Errorf("the sums are %+v and %+v", p.Near[0], p.Near[1])
	}
}

func TestPicturesHaveEveryHopBetweenSenderAndReceiver(t *testing.T) {
	paths := reporttest.Quick()
	b := &builder{r: paths, paints: paints(paths), kept: keep(paths)}
	// Parallel links, more hops on one side, and a fabric without ports.
	odd := paths.Scenarios[0]
	odd.ID = "odd/stream"
	trial := sample.Sample{Metrics: sample.Metrics{sample.Throughput: 1e9}}
	for i, h := range []sample.Hop{
		{Node: "a", Device: "fab0", Role: "fabric"},
		{Node: wire, Device: "port-a0", Role: "port"}, {Node: wire, Device: "port-a1", Role: "port"},
		{Node: wire, Device: "port-b0", Role: "port"}, {Node: wire, Device: "port-b1", Role: "port"},
		{Node: "b", Device: "fab0", Role: "fabric"}, {Node: "b", Device: "br0", Role: "bridge"}, {Node: "b", Device: "vif", Role: "vif"},
	} {
		h.Order = i
		trial.Hops = append(trial.Hops, h)
	}
	bare := trial
	bare.Hops = []sample.Hop{{Node: "a", Device: "fab"}, {Node: "b", Device: "fab", Order: 1}}
	bareRow := odd
	bareRow.ID = "bare/stream"
	paths.Scenarios = append(paths.Scenarios, odd, bareRow)
	b.kept.median[odd.ID], b.kept.median[bareRow.ID] = &trial, &bare
	list := b.topologies()
	if len(list) != 10 {
		t.Fatalf("%d pictures, want 10", len(list))
	}
	for _, topology := range list {
		near, far := topology.Parts[0].Stops, topology.Parts[2].Stops
		if near[0].Name != "sender" || far[len(far)-1].Name != "receiver" {
			t.Errorf("%s: the path goes from %s to %s, want from sender to receiver", topology.ID, near[0].Name, far[len(far)-1].Name)
		}
		stops := 0
		for _, p := range topology.Parts {
			stops += len(p.Stops)
		}
		if stops != len(topology.Hops)+2 {
			t.Errorf("%s: %d stops, want %d hops and two workloads", topology.ID, stops, len(topology.Hops))
		}
	}
}

func TestArrowsPointWhereTheDataGoes(t *testing.T) {
	stream := &model.Scenario{Workload: suite.Workload{Direction: suite.Forward}}
	reverse := &model.Scenario{Workload: suite.Workload{Direction: suite.Reverse}}
	both := &model.Scenario{Workload: suite.Workload{Direction: suite.Both}}
	exchange := &model.Scenario{Workload: suite.Workload{Direction: suite.Forward}, Transactions: &quantity.Interval{}}
	two := path{Nodes: []string{"a", "b"}}
	for _, c := range []struct {
		row  *model.Scenario
		want string
	}{{stream, "forward"}, {reverse, "backward"}, {both, "both"}, {exchange, "both"}} {
		if got := two.class(c.row); got != c.want {
			t.Errorf("the class of direction %v is %s, want %s", c.row.Workload.Direction, got, c.want)
		}
	}
	must.Equal(t, "forward alone", (path{Nodes: []string{"a"}}).class(stream))
}

func TestAmountsAreShort(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 pkts", 999: "999 pkts", 1234: "1.23 k pkts", 2_230_000: "2.23 M pkts", 999_600: "1.00 M pkts", 1 << 63: "9.22 E pkts"} {
		if got := amount(n, "pkts"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	must.Equal(t, "3.25 GB", amount(3_250_000_000, "B"))
}
