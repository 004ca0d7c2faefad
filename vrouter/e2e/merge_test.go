package e2e

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// Node a has the default encapsulations. While it reaches only node b, by VXLAN, no XDP is
// attached. Then a workload on node c joins, which offers only MPLS, and leaves again. Transfers with
// both arrive intact, also by a connection that is open while XDP is attached and detached.
func TestANodeWithTheDefaultEncapsulationsCarriesVXLANAndMPLS(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{nodes: 3})
	b.state.Nodes = b.nodesOf(false)
	b.state.Nodes[0].Encapsulations = model.DefaultEncapsulations
	b.state.Nodes[1].Encapsulations = []model.Encapsulation{model.VXLAN, model.MPLSoUDP}
	b.state.Nodes[2].Encapsulations = []model.Encapsulation{model.MPLSoUDP}
	b.state.Networks = []model.Network{{Name: "red", ID: 1, VNI: 1001, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	x, y := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	b.up()
	mode := func(want string) {
		t.Helper()
		for _, v := range table(b.nodes[0], (*api.Client).Vifs) {
			if v.Device == "fab" && v.Mode != want {
				t.Errorf("the fabric device of node a is served by %s, want %s", v.Mode, want)
			}
		}
	}
	check := func(others ...*workload) {
		t.Helper()
		for _, z := range others {
			for _, version := range []int{4, 6} {
				for _, ends := range [][2]*workload{{x, z}, {z, x}} {
					checkTransfer(ends[0], ends[1], version, 4<<20)
				}
			}
		}
	}
	b.nodes[0].awaitWays("b", "vxlan")
	mode("tcx")
	check(y)

	end := openTransfer(x, y, 4)
	without := b.state
	z := b.workload("z", "red", 2, "10.1.0.12", "fd00:1::12")
	b.apply()
	b.nodes[0].awaitWays("c", "mpls-udp")
	mode("xdp+tcx")
	check(y, z)
	b.state = without
	b.apply()
	mode("tcx")
	check(y)
	if err := end(); err != nil {
		t.Errorf("a connection that was open while XDP was attached and detached: %v", err)
	}
}
