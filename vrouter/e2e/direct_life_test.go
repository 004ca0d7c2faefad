package e2e

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/model"
)

// Agents are killed, restarted, and replaced with other limits, which need new maps, while
// datagrams pass without a tunnel: none is lost.
func TestNoDirectPacketIsLostWhileAgentsDieAndAreReplaced(t *testing.T) {
	for _, c := range []struct {
		name string
		pair func(b *bed) (x, y *workload)
		ways []string
		sent model.Encapsulation
	}{
		{"labels", func(b *bed) (x, y *workload) { return directPair(b, model.L3, model.VXLAN) }, []string{"direct"}, model.Direct},
		{"bridged", func(b *bed) (x, y *workload) { return directPair(b, model.L2, model.VXLAN) }, directWays(model.L2), model.Direct},
		{"translated", func(b *bed) (x, y *workload) { return routedPair(b, model.VXLAN) }, []string{"translated", "vxlan"}, model.Translated},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{routed: c.sent == model.Translated, config: map[string]any{"repair_interval": "500ms"}})
			x, y := c.pair(b)
			must.Succeed(t, datagram(x, y, 4, 64)) // neighbours resolved
			datagrams := count(t, x, y)
			for i, n := range b.nodes {
				other := b.nodes[1-i].name
				n.kill(syscall.SIGKILL)
				time.Sleep(300 * time.Millisecond)
				n.start()
				n.awaitWays(other, c.ways...)
				time.Sleep(700 * time.Millisecond) // longer than the repair interval
				n.kill(syscall.SIGTERM)
				n.config["limits"] = limits(map[string]int{"routes": 1000, "flows": 5000})
				n.start()
				n.awaitWays(other, c.ways...)
				time.Sleep(700 * time.Millisecond)
			}
			for _, n := range b.nodes {
				if n.sent(c.sent) == 0 {
					t.Errorf("node %s has sent no packet with the encapsulation %s", n.name, c.sent)
				}
			}
			datagrams.lost(t)
		})
	}
}

// Four nodes on one link offer different encapsulations. Each pair uses the right one, and all
// workloads reach each other: node b offers only tunnels, node c has no IPv4 address on the
// underlay, and nodes a and d offer everything.
func TestNodesOfAMixedFleetReachEachOther(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{nodes: 4})
	everything := []model.Encapsulation{model.Direct, model.VXLAN, model.MPLSoUDP}
	b.state.Nodes = b.nodesOf(false)
	for i, n := range b.nodes {
		s := &b.state.Nodes[i]
		s.Encapsulations, s.Underlay = everything, []netip.Addr{n.v4, n.v6}
		switch n.name {
		case "b":
			s.Encapsulations = []model.Encapsulation{model.MPLSoUDP, model.VXLAN}
		case "c":
			s.Encapsulations, s.Underlay = []model.Encapsulation{model.Direct, model.VXLAN}, []netip.Addr{n.v6}
		}
		if n.name == "b" {
			continue
		}
		s.Locator = n.locator()
		for _, other := range b.nodes {
			if other != n {
				other.ip("-6 route add " + n.locator().String() + " via " + n.v6.String())
			}
		}
	}
	b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	workloads := []*workload{
		b.workload("w", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("x", "red", 1, "10.1.0.11", "fd00:1::11"),
		b.workload("y", "red", 2, "10.1.0.12", "fd00:1::12"), b.workload("z", "red", 3, "10.1.0.13", "fd00:1::13"),
	}
	b.up()
	tunnel, translated := []string{"vxlan"}, []string{"translated", "vxlan"}
	for pair, ways := range map[string][]string{"ab": tunnel, "ac": translated, "ad": {"direct"}, "bc": tunnel, "bd": {"mpls-udp"}, "cd": translated} {
		one, other := b.nodes[pair[0]-'a'], b.nodes[pair[1]-'a']
		one.awaitWays(other.name, ways...)
		other.awaitWays(one.name, ways...)
	}
	for _, n := range b.nodes {
		n.forgetDrops()
	}
	for _, from := range workloads {
		for _, to := range workloads {
			if from == to {
				continue
			}
			for _, version := range []int{4, 6} {
				checkTransfer(from, to, version, 1<<20)
				if err := datagram(from, to, version, 9000); err != nil {
					t.Errorf("an IPv%d datagram of 9000 bytes from workload %s to workload %s: %v", version, from.port.Name, to.port.Name, err)
				}
			}
		}
	}
	for _, n := range b.nodes {
		drops := n.drops()
		delete(drops, "link_local") // the workloads' router solicitations
		if len(drops) > 0 {
			t.Errorf("node %s dropped packets by reason: %v, want none", n.name, drops)
		}
	}
}

// The nodes' fabric devices get a smaller MTU while a transfer goes directly: the transfer
// continues, and the workloads' MTU becomes smaller too. A workload whose device nevertheless has
// a larger MTU gets an ICMP error for a packet that is too large.
func TestDirectPacketsFollowTheMTUOfTheUnderlay(t *testing.T) {
	t.Parallel()
	needs(t, "ping")
	b := newBed(t, options{config: map[string]any{"repair_interval": "1h"}}) // it would set the workload's MTU again
	x, y := directPair(b, model.L3, model.VXLAN)
	end := openTransfer(x, y, 4)
	set := func(space, device, mtu string) {
		t.Helper()
		testprogram.Output(t, "ip -n "+space+" link set "+device+" mtu "+mtu)
	}
	for _, n := range b.nodes {
		set(n.space, "fab", "1300")
	}
	for i, n := range b.nodes {
		n.awaitWays(b.nodes[1-i].name, "direct")
		port := []*workload{x, y}[i].port.Name
		soon(t, "the workload's MTU becomes smaller", func() error {
			if mtu := n.vif(port).MTU; mtu != 1300 {
				return errTimeout
			}
			return nil
		})
	}
	if err := end(); err != nil {
		t.Errorf("a transfer during the change of the MTU: %v", err)
	}
	set(x.port.Attach.Netns, "eth0", "1500")
	for version, payload := range map[int]string{4: "1272", 6: "1252"} { // 1300 bytes with the headers
		to := y.ip(version).String()
		if out, err := x.command("ping", "-c", "1", "-W", "2", "-M", "do", "-s", payload, to); err != nil {
			t.Errorf("an IPv%d packet as large as the MTU: %v\n%s", version, err, out)
		}
		out, err := x.command("ping", "-c", "2", "-i", "0.3", "-W", "1", "-M", "do", "-s", "1400", to)
		if err == nil || !strings.Contains(strings.ReplaceAll(out, " ", ""), "mtu=1300") {
			t.Errorf("an IPv%d packet that is too large: %v, want an error with the MTU 1300\n%s", version, err, out)
		}
		checkTransfer(x, y, version, 8<<20)
	}
	if ways := b.nodes[0].ways("b"); len(ways) != 1 || ways[0] != "direct" {
		t.Errorf("node a reaches node b with the encapsulations %v, want direct alone", ways)
	}
}
