package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// nodePorts are the networks to which node_access connects a node.
func (n *node) nodePorts() (networks []string) {
	n.bed.t.Helper()
	for _, p := range answer(n, (*api.Client).State).Ports {
		if p.Origin == model.NodeAccess && p.Node == n.name {
			networks = append(networks, p.Network)
		}
	}
	return networks
}

// A network without a free address gets no host port, and the other networks get theirs. It gets one as soon as an
// address is free.
func TestAFullNetworkDoesNotPreventThePortsOfOthers(t *testing.T) {
	t.Parallel()
	needs(t, "iptables")
	b := fleetBed(t, "10s")
	a := b.nodes[0]
	a.run("network", "create", "a-full", "--subnet", "10.3.0.0/24", "--range", "10.3.0.7/32", "--node-access")
	a.run("network", "create", "red", "--subnet", "10.1.0.0/16", "--node-access")
	b.connected("x", "a-full", 0)
	soon(t, "the log names the network", func() error {
		if log := a.log(); !strings.Contains(log, "network a-full: ") {
			return fmt.Errorf("the log is: %s", log)
		}
		return nil
	})
	expect := func(networks ...string) {
		t.Helper()
		soon(t, "the node has ports", func() error {
			if got := a.nodePorts(); fmt.Sprint(got) != fmt.Sprint(networks) {
				return fmt.Errorf("in %v, want %v", got, networks)
			}
			return nil
		})
	}
	b.connected("y", "red", 0)
	expect("red")
	a.run("network", "set", "a-full", "--range", "10.3.0.7-10.3.0.8")
	expect("a-full", "red")
}

// The node sends a workload's packet back into the workload's network, which makes its kernel send ICMP redirects.
// None may leave. The kernel's NAT drops redirects about connections that it tracks, so the node tracks none here.
func TestTheNodesPortSendsNoRedirects(t *testing.T) {
	t.Parallel()
	needs(t, "iptables", "ip6tables")
	b := fleetBed(t, "10s")
	a := b.nodes[0]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/16", "--subnet", "fd00:1::/64", "--node-access")
	x, z := b.connected("x", "red", 0), b.connected("z", "red", 0)
	soon(t, "the node is connected", func() error {
		if got := a.nodePorts(); len(got) != 1 {
			return fmt.Errorf("the node has the ports %v, want 1", got)
		}
		return nil
	})
	a.forgetDrops()
	h := b.handle(a.ns)
	all, err := h.LinkList()
	b.must(err)
	for program, text := range map[string]string{"iptables": "203.0.113.9", "ip6tables": "2001:db8:99::9"} {
		to := netip.MustParseAddr(text)
		for _, l := range all {
			if strings.HasPrefix(l.Attrs().Name, "vrh-") {
				r := &netlink.Route{Dst: ipNet(netip.PrefixFrom(to, to.BitLen())), LinkIndex: l.Attrs().Index}
				if to.Is4() {
					r.Gw = z.ip(4).AsSlice()
				}
				b.must(h.RouteAdd(r))
			}
		}
		a.exec(program + " -t raw -A PREROUTING -j CT --notrack")
		soon(t, "the kernel's redirect is dropped", func() error {
			if got, err := replied(x.ns, "udp", to, 7); err == nil {
				t.Fatalf("%s has replied: %s", to, got)
			}
			return a.filtered(program, "filter", "VROUTER-OUTPUT", "")
		})
	}
	if drops := a.drops(); drops["rogue_router"] > 0 {
		t.Errorf("redirects leave by the node's port: %v", drops)
	}
}
