package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

var leakTarget = []model.RouteTarget{{0, 2, 0xfc, 0, 0, 0, 0, 1}}

// sharingNetworks adds the networks red and blue, which import each other's routes: x of red and w of
// blue on node a, y of blue on node b.
func sharingNetworks(b *bed, blue model.Forwarding) (x, w, y *workload) {
	for i, name := range []string{"red", "blue"} {
		n := i + 1
		b.state.Networks = append(b.state.Networks, model.Network{
			Name: name, Tenant: name, ID: uint32(n), VNI: uint32(1000 + n), Subnets: subnets(fmt.Sprintf("10.%d.0.0/16", n), fmt.Sprintf("fd00:%d::/64", n)),
			Import: leakTarget, Export: leakTarget,
		})
	}
	b.state.Networks[1].Forwarding, b.state.Networks[1].Policies = blue, []string{"web"}
	b.state.Policies = []model.Policy{{Name: "web", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny, Protocol: "tcp", Ports: "81"}, {Direction: model.Ingress, Action: model.Allow}}}}
	return b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("w", "blue", 0, "10.2.0.9", "fd00:2::9"), b.workload("y", "blue", 1, "10.2.0.10", "fd00:2::10")
}

// checkSharing checks the traffic between networks, and their policies. way has the words of a trace that say how
// packets to y leave node a.
func checkSharing(t *testing.T, b *bed, x, w, y *workload, way string) {
	t.Helper()
	for _, version := range []int{4, 6} {
		for _, other := range []*workload{w, y} {
			checkTransfer(x, other, version, 4<<20)
			checkTransfer(other, x, version, 4<<20)
			must.Succeed(t, datagram(x, other, version, 1200))
		}
		for to, want := range map[*workload]string{
			y: "dropped on node b: policy (port y, rule 1 of policy web), unless it answers a flow of y", w: "dropped: policy (denied by policy): port w, rule 1 of policy web",
		} {
			address := to.ip(version).String()
			if out := b.nodes[0].run("trace", "--from", "x", "--to", address, "--proto", "tcp", "--dport", "81"); !strings.Contains(out, want) {
				t.Errorf("a trace to %s does not say %q:\n%s", address, want, out)
			}
			if conn, err := x.dialFor("tcp", netip.AddrPortFrom(to.ip(version), 81).String(), 300e6); err == nil {
				conn.Close()
				t.Errorf("x reaches port 81 of %s, which the policy of network blue denies", address)
			} else if strings.Contains(err.Error(), "refused") {
				t.Errorf("%s refuses the connection to port 81, want that the policy of network blue drops it: %v", address, err)
			}
		}
		if out := b.nodes[0].run("trace", "--from", "x", "--to", y.ip(version).String(), "--proto", "tcp", "--dport", "80"); !strings.Contains(out, way) || strings.Contains(out, "dropped") {
			t.Errorf("a trace to %s does not say %q:\n%s", y.ip(version), way, out)
		}
	}
	for reason, packets := range b.nodes[1].drops() {
		if !slices.Contains([]string{"policy", "link_local", "no_flood"}, reason) { // sent by devices that come up
			t.Errorf("node b dropped %d packets as %s", packets, reason)
		}
	}
}

// Workloads of two networks reach each other in both directions, on one node and on two, with every
// encapsulation. The policies of the destination's network apply.
func TestNetworksImportEachOthersRoutes(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := sharedBed(t, options{})
	for encap, label := range map[model.Encapsulation]string{model.MPLSoUDP: "label 20", model.MPLSoGRE: "label 20", model.VXLAN: "VNI 1002"} {
		for _, blue := range []model.Forwarding{model.L3, model.L2L3} {
			b.run(fmt.Sprintf("%s/%s", encap, blue), func(t *testing.T) {
				b.state.Nodes = b.nodesOf(blue == model.L2L3, encap)
				x, w, y := sharingNetworks(b, blue)
				b.up()
				checkSharing(t, b, x, w, y, fmt.Sprintf("forwarded to node b by %s, %s", encap, label))
			})
		}
	}
	b.run("direct", func(t *testing.T) {
		b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
		x, w, y := sharingNetworks(b, model.L3)
		b.up()
		b.nodes[0].awaitWays("b", "direct")
		b.nodes[1].awaitWays("a", "direct")
		checkSharing(t, b, x, w, y, "forwarded to node b by direct, network 2")
	})
}

// Nodes that translate the packets of a network send packets to another network by a tunnel.
func TestNetworksImportRoutesBetweenLinks(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{routed: true})
	b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
	for i, n := range b.nodes {
		b.state.Nodes[i].Locator = n.locator()
	}
	x, w, y := sharingNetworks(b, model.L3)
	v := b.workload("v", "blue", 1, "10.2.0.11", "fd00:2::11")
	b.up()
	for i, n := range b.nodes {
		n.awaitWays(b.nodes[1-i].name, "translated", "vxlan")
	}
	sent := b.nodes[0].sent(model.Translated)
	checkTransfer(w, v, 4, 1<<20)
	if now := b.nodes[0].sent(model.Translated); now-sent < 1<<20 {
		t.Errorf("node a sent %d bytes of network blue in translated packets, want at least 1 MiB", now-sent)
	}
	checkSharing(t, b, x, w, y, "forwarded to node b by vxlan, VNI 1002")
}

// If only one of two networks imports the other's routes, the other node refuses the packets: there is no
// route to their source.
func TestRoutesInOneDirectionCarryNoPacketsToAnotherNode(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	b.run("one direction", func(t *testing.T) {
		b.state.Nodes = b.nodesOf(false, model.VXLAN)
		x, _, y := sharingNetworks(b, model.L3)
		b.state.Networks[1].Import = nil
		b.up()
		if err := datagram(x, y, 4, 64); err == nil {
			t.Error("a datagram of red to blue has an answer, though blue does not import the routes of red")
		}
		if drops := answer(b.nodes[1], (*api.Client).Drops); !strings.Contains(fmt.Sprint(drops), "forged_source") {
			t.Errorf("node b dropped %v, want forged_source", drops)
		}
		b.state.Networks[1].Import = leakTarget
		b.apply()
		if err := datagram(x, y, 4, 64); err != nil {
			t.Errorf("blue imports the routes of red now: %v", err)
		}
	})
}

// If the tables are too small for the routes that a network imports, the network works without them.
func TestANetworkWorksWithoutTheRoutesThatDoNotFit(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	b.state.Nodes = b.nodesOf(false, model.VXLAN)
	x, _, y := sharingNetworks(b, model.L3)
	v := b.workload("v", "blue", 0, "10.2.0.8")
	for i := range 14 {
		b.state.Ports = append(b.state.Ports, model.Port{Name: fmt.Sprint("m", i), Network: "red", Node: "a", MAC: model.MAC{2, 8, 5: byte(i)}, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, 1, byte(i)})}})
	}
	b.up()
	must.Succeed(t, datagram(x, y, 4, 64))
	other := b.nodes[1] // it has ports of blue only
	other.kill(syscall.SIGKILL)
	other.config["limits"] = limits(map[string]int{"routes": 16})
	other.start()
	soon(t, "status says that blue imports no routes", func() error {
		if out := other.run("status"); !strings.Contains(out, `network "blue" imports no routes of other networks on this node: table hosts4`) {
			return errors.New(out)
		}
		return nil
	})
	if err := datagram(v, y, 4, 64); err != nil {
		t.Errorf("within blue: %v", err)
	}
}
