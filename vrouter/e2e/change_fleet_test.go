package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// Three nodes change their encapsulations every second or two, and get each change one after
// another. With every second change come networks for which the nodes receive no labels, and with
// some an agent is killed. Nothing is lost.
func TestChangesOfThreeNodesLoseNothing(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{nodes: 3, config: map[string]any{"limits": limits(map[string]int{"link_labels": 2})}})
	b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
	b.state.Networks = append(b.state.Networks, model.Network{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16")})
	x, y, z := b.workload("x", "red", 0, "10.1.0.10"), b.workload("y", "red", 1, "10.1.0.11"), b.workload("z", "red", 2, "10.1.0.12")
	b.up()
	for i, n := range b.nodes {
		n.awaitWays(b.nodes[(i+1)%3].name, "direct")
	}
	few := b.state
	for i := range 3 { // their ids are below red's
		name := fmt.Sprint("low", i)
		b.state.Networks = append(b.state.Networks, model.Network{Name: name, ID: uint32(10 + i), VNI: uint32(2000 + i), Subnets: subnets(fmt.Sprintf("10.%d.0.0/16", 10+i))})
		for k := range b.nodes {
			b.workload(fmt.Sprintf("w%d-%d", i, k), name, k, fmt.Sprintf("10.%d.0.%d", 10+i, 10+k))
		}
	}
	many := b.state
	for _, ends := range [][2]*workload{{x, y}, {z, x}} {
		must.Succeed(t, datagram(ends[0], ends[1], 4, 64)) // neighbours resolved
	}
	flows := []*counted{count(t, x, y), count(t, z, x)}
	for i, offered := range [][]model.Encapsulation{
		{model.VXLAN}, {model.Direct, model.MPLSoUDP}, {model.VXLAN}, {model.Direct}, {model.MPLSoUDP, model.VXLAN},
		{model.Direct, model.VXLAN}, {model.MPLSoGRE}, {model.Direct, model.VXLAN}, {model.MPLSoGRE, model.VXLAN}, {model.Direct, model.MPLSoGRE},
	} {
		b.state = []model.State{many, few}[i%2]
		b.state.Nodes = slices.Clone(b.state.Nodes)
		b.offer(offered...)
		if i%3 == 2 { // the pairs differ
			b.state.Nodes[2].Encapsulations = model.DefaultEncapsulations
		}
		if i%4 == 1 {
			n := b.nodes[i%3]
			n.kill(syscall.SIGKILL)
			n.start()
		}
		b.applyApart(300*time.Millisecond, i%2 == 1)
	}
	time.Sleep(6 * time.Second) // until no former encapsulation is sent
	for _, f := range flows {
		f.lost(t)
	}
}
