package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/model"
)

// TestAWorkloadForwardsFromTunnelToTunnel: a firewall or other service on one node has a
// port in each of two networks. It forwards between workloads on two other nodes.
func TestAWorkloadForwardsFromTunnelToTunnel(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for offload, v6 := range map[string]bool{"none": false, "tunnel": true} { // both values of each
		t.Run(fmt.Sprintf("%s/underlay-v6=%v", offload, v6), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{nodes: 3, offload: offload})
			for _, encap := range encaps {
				b.run(string(encap), func(t *testing.T) {
					b.state.Nodes = b.nodesOf(v6, encap)
					for i, name := range []string{"red", "blue"} {
						n := i + 1
						b.state.Networks = append(b.state.Networks, model.Network{Name: name, Tenant: name, ID: uint32(n), VNI: uint32(1000 + n), Subnets: subnets(fmt.Sprintf("10.%d.0.0/16", n), fmt.Sprintf("fd00:%d::/64", n))})
					}
					x, y := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "blue", 2, "10.2.0.10", "fd00:2::10")
					service := b.workload("service", "red", 1, "10.1.0.5", "fd00:1::5").port
					inBlue := service
					inBlue.Name, inBlue.Network, inBlue.MAC[1], inBlue.IPs, inBlue.Attach.Interface = "service-blue", "blue", 9, addresses("10.2.0.5", "fd00:2::5"), "eth1"
					b.state.Ports[len(b.state.Ports)-1].AllowSources = subnets("10.2.0.0/16", "fd00:2::/64")
					inBlue.AllowSources = subnets("10.1.0.0/16", "fd00:1::/64")
					b.state.Ports = append(b.state.Ports, inBlue)
					for _, p := range []string{"10.2.0.0/16", "fd00:2::/64"} {
						b.state.Routes = append(b.state.Routes, model.Route{Network: "red", Prefix: netip.MustParsePrefix(p), Via: []model.Via{{Port: service.Name}}})
					}
					for _, p := range []string{"10.1.0.0/16", "fd00:1::/64"} {
						b.state.Routes = append(b.state.Routes, model.Route{Network: "blue", Prefix: netip.MustParsePrefix(p), Via: []model.Via{{Port: inBlue.Name}}})
					}
					b.up()
					testprogram.Output(t, "ip netns exec "+service.Attach.Netns+" sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
					for _, version := range []int{4, 6} {
						for _, ends := range [][2]*workload{{x, y}, {y, x}} {
							checkTransfer(ends[0], ends[1], version, 8<<20)
						}
					}
				})
			}
		})
	}
}

// chain has workloads x of network red and y of network blue on node a, and a firewall on each of the other
// nodes between them, whose ports have the attachments. The networks left and right, with the ports of the firewalls,
// have the routes through these ports. Red and left import each other's routes, and so do blue and
// right. Red and blue do not import each other's routes.
func chain(b *bed, attachment func(firewall string, side int) model.Attachment) (x, y *workload) {
	b.t.Helper()
	target := func(i byte) []model.RouteTarget { return []model.RouteTarget{{0, 2, 0xfc, 7: i}} }
	for i, n := range []model.Network{
		{Name: "red", Export: target(1), Import: target(3)}, {Name: "blue", Export: target(2), Import: target(4)},
		{Name: "left", Export: target(3), Import: target(1)}, {Name: "right", Export: target(4), Import: target(2)},
	} {
		n.ID, n.Tenant, n.Subnets = uint32(i+1), n.Name, subnets(fmt.Sprintf("10.%d.0.0/16", i+1), fmt.Sprintf("fd00:%d::/64", i+1))
		b.state.Networks = append(b.state.Networks, n)
	}
	x, y = b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("y", "blue", 0, "10.2.0.10", "fd00:2::10")
	var ways [2][]model.Via
	for node := 1; node < len(b.nodes); node++ {
		name := fmt.Sprint("fw", node)
		for side, network := range []string{"left", "right"} {
			p := model.Port{
				Name: name + "-" + network, Network: network, Node: b.nodes[node].name, MAC: model.MAC{2, 9, byte(side), 0, 0, byte(node)},
				IPs:          addresses(fmt.Sprintf("10.%d.0.%d", side+3, node+4), fmt.Sprintf("fd00:%d::%d", side+3, node+4)),
				Attach:       attachment(name, side),
				AllowSources: b.state.Networks[1-side].Subnets,
			}
			b.state.Ports = append(b.state.Ports, p)
			ways[side] = append(ways[side], model.Via{Port: p.Name})
		}
	}
	for side, network := range []string{"left", "right"} {
		for _, to := range b.state.Networks[1-side].Subnets {
			b.state.Routes = append(b.state.Routes, model.Route{Network: network, Prefix: to, Via: ways[side]})
		}
	}
	b.up()
	return x, y
}

// firewallRoutes are the routes of a firewall in chain to red and blue.
const firewallRoutes = `
ip route add 10.1.0.0/16 via 10.3.0.1 dev eth0
ip route add fd00:1::/64 via fd00:3::1 dev eth0
ip route add 10.2.0.0/16 via 10.4.0.1 dev eth1
ip route add fd00:2::/64 via fd00:4::1 dev eth1
`

// forward turns forwarding of the firewalls on or off.
func forward(t testing.TB, b *bed, on int) {
	t.Helper()
	for _, name := range []string{"fw1", "fw2"} {
		testprogram.Output(t, fmt.Sprintf("ip netns exec %s-%s sysctl -w net.ipv4.ip_forward=%d net.ipv6.conf.all.forwarding=%d", b.name, name, on, on))
	}
}

// awaitAllPass waits until 32 datagrams of different flows in a row are answered.
func awaitAllPass(t *testing.T, x, y *workload, what string) {
	t.Helper()
	soon(t, what, func() error {
		for range 32 {
			if err := datagram(x, y, 4, 64); err != nil {
				return err
			}
		}
		return nil
	})
}

// Traffic between two networks passes one of two firewalls, by the routes that the networks import from
// those of the firewalls. The flows of a dead node move to the other firewall. A firewall without its
// device is a problem in status, and its flows move when the routes leave it out.
func TestAServiceChainOfImportedRoutes(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{nodes: 3, config: map[string]any{"liveness": "300ms"}})
	b.state.Nodes = b.nodesOf(false)
	for _, name := range []string{"fw1", "fw2"} {
		testprogram.Output(t, "ip netns add "+b.name+"-"+name)
		t.Cleanup(func() { netspace.Delete(b.name + "-" + name) }) // the test deletes fw2
	}
	x, y := chain(b, func(firewall string, side int) model.Attachment {
		return model.Attachment{Netns: b.name + "-" + firewall, Interface: fmt.Sprint("eth", side)}
	})
	for _, name := range []string{"fw1", "fw2"} {
		for line := range strings.Lines(strings.TrimSpace(firewallRoutes)) {
			testprogram.Output(t, "ip netns exec "+b.name+"-"+name+" "+line)
		}
	}
	forward(t, b, 1)
	awaitAllPass(t, x, y, "the firewalls forward")
	for _, version := range []int{4, 6} {
		checkTransfer(x, y, version, 4<<20)
		checkTransfer(y, x, version, 4<<20)
	}
	for i, port := range []string{"fw1-left", "fw2-right"} {
		if v := b.nodes[i+1].vif(port); v.RxPackets == 0 || v.TxPackets == 0 {
			t.Errorf("port %s has received %d packets and sent %d, want some of each", port, v.TxPackets, v.RxPackets)
		}
	}
	if out := b.nodes[0].run("trace", "--from", "x", "--to", "10.2.0.10"); !strings.Contains(out, "leak left 10.2.0.0/16") || !strings.Contains(out, "label 22") {
		t.Errorf("the trace does not show the route of network left, and its label:\n%s", out)
	}
	forward(t, b, 0)
	if err := datagram(x, y, 4, 64); err == nil {
		t.Error("a datagram has an answer, though no firewall forwards")
	}
	forward(t, b, 1)
	awaitAllPass(t, x, y, "the firewalls forward again")

	sw := b.handle(b.sw)
	link, err := sw.LinkByName("port2")
	b.must(err)
	b.must(sw.LinkSetDown(link))
	awaitAllPass(t, x, y, "the flows of the dead node take the other firewall")
	b.must(sw.LinkSetUp(link))
	soon(t, "both firewalls are in use again", func() error {
		sent := b.nodes[2].vif("fw2-left").TxPackets
		for range 32 {
			if err := datagram(x, y, 4, 64); err != nil {
				return err
			}
		}
		if now := b.nodes[2].vif("fw2-left").TxPackets; now == sent {
			return errors.New("fw2 gets no packets")
		}
		return nil
	})

	must.Succeed(t, netspace.Delete(b.name+"-fw2"))
	soon(t, "node c reports the port without its namespace", func() error {
		if out := b.nodes[2].run("status"); !strings.Contains(out, "fw2-left") {
			return errors.New(out)
		}
		return nil
	})
	b.nodes[2].forgetDrops()
	soon(t, "node c drops the packets to fw2, which the other nodes go on sending", func() error {
		datagram(x, y, 4, 64) // a flow to fw2 is not answered
		if dropped := b.nodes[2].drops(); dropped["reflected"] == 0 {
			return fmt.Errorf("it dropped %v", dropped)
		}
		return nil
	})
	for i := range b.state.Routes {
		b.state.Routes[i].Via = b.state.Routes[i].Via[:1]
	}
	b.apply()
	awaitAllPass(t, x, y, "the routes leave fw2 out")
}

// A firewall hangs: its devices stay, but it does not answer. Its node reports it, and the flows take the other firewall, on all
// nodes. When it answers again, it gets flows again.
func TestAServiceChainAvoidsAFirewallThatHangs(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := fleetBedOf(t, options{nodes: 3, config: map[string]any{"liveness": "300ms"}})
	b.runs = true
	b.state.Nodes = b.nodesOf(false)
	on := func(firewall, line string) {
		testprogram.Output(t, "ip netns exec "+b.name+"-"+firewall+" "+line)
	}
	for i, name := range []string{"fw1", "fw2"} {
		b.namespace(name)
		for side := range 2 {
			b.nodes[i+1].ip(fmt.Sprintf("link add tap%d type veth peer name eth%d netns %s-%s", side, side, b.name, name))
			on(name, fmt.Sprintf("ip link set eth%d address 02:09:0%d:00:00:0%d", side, side, i+1))
		}
	}
	connect := func(firewall string, host int) {
		for side := range 2 {
			on(firewall, fmt.Sprintf("sysctl -qw net.ipv6.conf.eth%d.disable_ipv6=0", side))
			on(firewall, fmt.Sprintf("ip address add 10.%d.0.%d/16 dev eth%d", side+3, host, side))
			on(firewall, fmt.Sprintf("ip address add fd00:%d::%d/64 dev eth%d nodad", side+3, host, side))
			on(firewall, fmt.Sprintf("ip link set eth%d mtu 1400 up", side))
		}
		for line := range strings.Lines(strings.TrimSpace(firewallRoutes)) {
			on(firewall, strings.TrimSpace(line))
		}
	}
	x, y := chain(b, func(_ string, side int) model.Attachment { return model.Attachment{Device: fmt.Sprint("tap", side)} })
	connect("fw1", 5)
	connect("fw2", 6)
	forward(t, b, 1)
	a, c := b.nodes[0], b.nodes[2]
	usesBoth := func() {
		t.Helper()
		soon(t, "both firewalls are in use", func() error {
			before := c.vif("fw2-left").TxPackets
			for range 32 {
				if err := datagram(x, y, 4, 64); err != nil {
					return err
				}
			}
			if c.vif("fw2-left").TxPackets < before+4 {
				return errors.New("fw2 gets few packets or none")
			}
			return nil
		})
	}
	usesBoth()
	soon(t, "both ports of fw2 have answered several tests", func() error {
		if n := c.drops()["arp_unknown"]; n < 16 {
			return fmt.Errorf("%d answers", n)
		}
		return nil
	})
	const problem = `port "fw2-left": its workload does not answer`
	if out := c.run("status"); strings.Contains(out, problem) {
		t.Errorf("the status has the problem of a workload that answers:\n%s", out)
	}
	hung := time.Now()
	for side := range 2 {
		on("fw2", fmt.Sprintf("ip address flush dev eth%d", side))
		on("fw2", fmt.Sprintf("sysctl -qw net.ipv6.conf.eth%d.disable_ipv6=1", side))
	}
	soon(t, "node c reports the firewall", func() error {
		if out := c.run("status"); !strings.Contains(out, problem) {
			return errors.New(out)
		}
		return nil
	})
	reported := time.Since(hung)
	awaitAllPass(t, x, y, "the flows take the other firewall")
	t.Logf("reported %s after the firewall hung; all flows pass at the latest %s after it", reported.Round(time.Millisecond), time.Since(hung).Round(time.Millisecond))
	for _, network := range []string{"left", "right"} {
		if out := a.run("route", "list"); !strings.Contains(out, "fw2-"+network) {
			t.Errorf("the route of network %s has lost its next hop:\n%s", network, out)
		}
	}
	connect("fw2", 6)
	usesBoth()
	if out := c.run("status"); strings.Contains(out, problem) {
		t.Errorf("the status has the problem of a workload that answers again:\n%s", out)
	}
}
