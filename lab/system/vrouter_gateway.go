package system

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"windtunnel/lab/program"
)

// VRouterGateway connects the workloads of the first node to hosts outside by vrouter. The second node is a router,
// and its containers are the hosts behind it.
type VRouterGateway struct{ Way string }

// Ways out of the virtual network.
const (
	ByNAT    = "nat"    // the node's kernel forwards the packets, and vrouter translates their addresses to one of its pool
	ByKernel = "routed" // the same without NAT
	ByEVPN   = "evpn"   // FRR on the second node and vrouter exchange routes by BGP EVPN, and packets are in VXLAN
)

const (
	vrouterVNI    = 1
	vrouterBridge = "br1" // FRR needs a bridge for each VNI
)

// vrouterPool has the addresses to which vrouter translates. It is in no node's subnet.
var vrouterPool = netip.MustParsePrefix("10.31.255.0/28")

// inside is vrouter on the first node.
func (g VRouterGateway) inside() VRouter {
	if g.Way == ByEVPN {
		return VRouter{Encap: "vxlan"}
	}
	return VRouter{Encap: "direct"}
}

func (g VRouterGateway) Name() string { return "vrouter-" + g.Way }

func (g VRouterGateway) About() About {
	about := About{Gateway: true, IPv4Only: g.Way != ByEVPN, OneLink: true, Overhead: g.inside().About().Overhead, SetUp: g.inside().About().SetUp}
	switch g.Way {
	case ByNAT:
		about.Title, about.Description = "vrouter with NAT", "containers on vrouter, which translates their addresses, to hosts behind a router"
	case ByKernel:
		about.Title, about.Description = "vrouter without NAT", "containers on vrouter, whose packets the node's kernel routes, to hosts behind a router"
	default:
		about.Title, about.Description = "vrouter with an EVPN gateway", "containers on vrouter, VXLAN to FRR and the kernel (BGP EVPN), which route to the hosts behind them"
		about.SetUp = EVPN{}.About().SetUp
	}
	return about
}

func (g VRouterGateway) Needs() ([]string, []program.Program) {
	features, programs := []string{"veth", "bridge"}, []program.Program(nil)
	switch g.Way {
	case ByNAT:
		programs = []program.Program{iptablesProgram}
	case ByEVPN:
		features, programs = EVPN{}.Needs()
	}
	return append(features, "bpf", "vrouter"), programs
}

func (g VRouterGateway) Attach(n *Node) error {
	if n.Index == gatewayNode {
		return g.gateway(n)
	}
	if n.Index > 0 {
		return nil
	}
	router := n.Underlay[gatewayNode]
	if err := g.network(n); err != nil {
		return err
	}
	return g.connect(n, router)
}

// network brings up vrouter with a network that only this node has.
func (g VRouterGateway) network(n *Node) error {
	if g.Way != ByEVPN {
		if err := routeOutside(n); err != nil {
			return err
		}
	}
	v4, v6 := routedSubnets(n.Index)
	n.Underlay, n.Everywhere = n.Underlay[:1], nil
	for i := range n.Endpoints {
		e := &n.Endpoints[i]
		e.V4, e.V6 = netip.PrefixFrom(e.V4.Addr(), v4.Bits()), netip.PrefixFrom(e.V6.Addr(), v6.Bits())
		n.Everywhere = append(n.Everywhere, NodeEndpoint{n.Index, e.Name, e.V4, e.V6, e.MAC})
	}
	if err := g.inside().Attach(n); err != nil {
		return err
	}
	for _, e := range n.Endpoints {
		for _, subnet := range []netip.Prefix{v4, v6} {
			if err := routeAll(e.Space, gateway(subnet).Addr()); err != nil {
				return err
			}
		}
	}
	return nil
}

// connect connects the network to the hosts behind a router.
func (g VRouterGateway) connect(n *Node, router netip.Addr) error {
	path, err := program.Beside(vrouterProgram)
	if err != nil {
		return err
	}
	v4, v6 := routedSubnets(gatewayNode)
	as := strconv.Itoa(evpnAS)
	for _, args := range map[string][][]string{
		ByNAT: {{"network", "nat", "lab", "--pool", vrouterPool.String()}},
		// The policy makes flows, as NAT does.
		ByKernel: {
			{"policy", "create", "out", "--rule", "ingress allow", "--rule", "egress allow"},
			{"port", "add", "--network", "lab", "--name", "out", "--host", "--policy", "out", "--allow-source", v4.String()},
			{"route", "add", "lab", v4.String(), "--port", "out"},
		},
		ByEVPN: {
			{"network", "set", "lab", "--route-target", as + ":" + strconv.Itoa(vrouterVNI)},
			{"bgp", "enable", "--asn", as, "--router-id", n.Underlay[0].String(), "--neighbor", router.String()},
		},
	}[g.Way] {
		if err := vrouterRun(path, append([]string{"--socket", vrouterSocket(n)}, args...)...); err != nil {
			return err
		}
	}
	switch g.Way {
	case ByNAT:
		return nil
	case ByKernel:
		return n.Space.Sysctl("net.ipv4.ip_forward", "1")
	}
	return awaitVRouter(path, n, "has no routes to the hosts behind "+router.String(), func(routes string) bool {
		return strings.Contains(routes, v4.String()) && strings.Contains(routes, v6.String())
	}, "rt", "list")
}

// gateway makes the node a router with hosts behind it.
func (g VRouterGateway) gateway(n *Node) error {
	if err := connectRouted(n, n.MTU); err != nil {
		return err
	}
	switch g.Way {
	case ByNAT:
		return routeVia(n.Space, n.Underlay[0], vrouterPool)
	case ByKernel:
		inside, _ := routedSubnets(0)
		return routeVia(n.Space, n.Underlay[0], inside)
	}
	if err := addBridge(n, vrouterBridge, MTU(g, n.MTU)); err != nil {
		return err
	}
	// FRR also routes IPv6 over this bridge.
	if err := n.Space.DeviceSysctl("ipv6", vrouterBridge, "disable_ipv6", "0"); err != nil {
		return err
	}
	if err := addEVPNTunnel(n, vrouterBridge, vrouterVNI, MTU(g, n.MTU)); err != nil {
		return err
	}
	v4, v6 := routedSubnets(n.Index)
	return startFRR(n, fmt.Sprintf("vni %d\n", vrouterVNI), bgpConfig(n.Underlay[n.Index], n.Underlay[:1])+bgpPrefixes(v4, v6))
}

// bgpPrefixes continues bgpConfig: bgpd announces these networks as EVPN prefixes (RFC 9136).
func bgpPrefixes(v4, v6 netip.Prefix) string {
	return fmt.Sprintf(` address-family l2vpn evpn
  advertise ipv4 unicast
  advertise ipv6 unicast
 exit-address-family
 address-family ipv4 unicast
  network %s
 exit-address-family
 address-family ipv6 unicast
  network %s
 exit-address-family
`, v4, v6)
}

func (g VRouterGateway) Detach(n *Node) error {
	if n.Index != gatewayNode {
		return errors.Join(g.inside().Detach(n), removeRoutes(n))
	}
	return errors.Join(n.stopDaemons(), disconnectRouted(n), n.Space.Remove(vxlanDevice), n.Space.Remove(vrouterBridge), removeRoutes(n))
}

func (g VRouterGateway) Devices(n *Node) []Device {
	switch {
	case n.Index != gatewayNode:
		return g.inside().Devices(n)
	case g.Way != ByEVPN:
		return Bridge{}.Devices(n)
	}
	return VXLAN{}.Devices(n)
}
