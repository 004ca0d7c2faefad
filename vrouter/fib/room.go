package fib

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
)

// room computes the MTU of each network's ports: the largest packet that fits into
// the tunnels to all other nodes, or that can be translated. For a node without a tunnel, room assumes the
// fabric's MTU. So the MTU of a workload does not change when peers are added or
// deleted.
func (c *compiler) room() {
	others, small := c.others(), map[*network]error{}
	for i := range c.state.Networks {
		n := c.here[c.state.Networks[i].Name]
		if n == nil {
			continue
		}
		least := c.leastRoom(n, others)
		n.mtu = clampMTU(least.inner)
		if err := checkRoom(n, least); err != nil {
			small[n] = err
		}
	}
	for _, each := range c.state.Networks {
		n := c.here[each.Name]
		err := small[n]
		if err == nil {
			continue
		}
		if len(small) == len(c.here) { // the underlay is too small for every network
			c.errs = append(c.errs, err)
			continue
		}
		// Below this MTU the kernel would remove the addresses of the workloads' devices.
		n.mtu = clampMTU(leastMTU(n))
		c.refuse(n, err)
	}
}

// leastMTU returns the smallest MTU that IP allows in a network.
func leastMTU(n *network) int {
	if n.speaks6() {
		return leastMTU6
	}
	return leastMTU4
}

// room is the largest outer and inner packet of the tunnel to a node or gateway, in bytes.
type room struct {
	to           string
	encap        model.Encapsulation
	outer, inner int
}

// named describes the far end of a tunnel in errors: node "b" or gateway "g".
func named(name string) string {
	if gateway, ok := strings.CutPrefix(name, "gateway "); ok {
		return fmt.Sprintf("gateway %q", gateway)
	}
	return fmt.Sprintf("node %q", name)
}

// others returns a tunnel for every other node. Nodes without a tunnel get one that
// is not written to the tables.
func (c *compiler) others() map[string]*tunnel {
	all := make(map[string]*tunnel, len(c.state.Nodes))
	for i := range c.state.Nodes {
		n := &c.state.Nodes[i]
		if t := c.peers[n.Name]; t != nil {
			all[n.Name] = t
			for ; t != nil; t = t.beyond {
				t.plain = c.plain(n, t.formats)
			}
			continue
		}
		common, recent := c.sendable(n)
		pairs := parallel(c.self.Underlay, n.Underlay)
		if n.Name == c.self.Name || len(common) == 0 || len(pairs) == 0 {
			continue
		}
		link, locator := c.link(pairs), c.locatorLink(n)
		for _, state := range []*Link{&link, &locator} {
			if *state == LinkFails {
				*state = LinkUntested // a node that is down must not change this node's MTU
			}
		}
		if f, ok := choose(common, recent, link, locator); ok {
			all[n.Name] = &tunnel{formats: f, v6: pairs[0].source.Is6(), mtu: c.facts.MTU, plain: c.plain(n, f)}
		}
	}
	return all
}

// plain returns the value for tunnel.plain.
func (c *compiler) plain(n *model.Node, f formats) int {
	if !f.translates && !f.awaited {
		return 0
	}
	_, mtu := c.ways([]pair{{c.self.LocatorAddress(), n.LocatorAddress()}})
	return cmp.Or(mtu, c.facts.MTU) - Overhead(model.Translated, false, false)
}

func (c *compiler) leastRoom(n *network, others map[string]*tunnel) room {
	alone := VifMTU(c.facts.MTU, *c.self, n.Network)
	least := room{inner: alone, outer: c.facts.MTU}
	if c.self.BGP != nil && len(n.Import) > 0 { // routers can announce routes at any time
		least.to = "other routers"
	}
	consider := func(name string, t *tunnel) {
		inner := t.inner(n.Bridges())
		switch {
		case t.later && !n.Bridges():
			inner = t.mtu
		case t.plain > 0 && !n.Bridges(): // few packets cannot be translated; they may be too large for the tunnel
			inner = t.plain
		}
		if least.to == "" || inner < least.inner {
			least = room{to: named(name), encap: t.of(n.Bridges()), outer: t.mtu, inner: inner}
		}
	}
	for i := range c.state.Nodes {
		name := c.state.Nodes[i].Name
		if t := others[name].in(n); t != nil {
			consider(name, t)
		}
	}
	for _, g := range c.state.Gateways {
		if _, serves := g.Network(n.Name); serves && c.foreign[g.Name] != nil {
			consider(gatewayName(g.Name), c.foreign[g.Name])
		}
	}
	return least
}

// checkRoom returns an error if the MTU of a network is too small for IP.
func checkRoom(n *network, s room) error {
	least, family := leastMTU(n), "IPv4"
	if n.speaks6() {
		family = "IPv6"
	}
	if s.inner >= least {
		return nil
	}
	headers := "the longest headers of this node's encapsulations"
	if s.encap != "" {
		headers = fmt.Sprintf("the headers of %s to %s", s.encap, s.to)
	}
	return fmt.Errorf("network %q: the underlay MTU of %d is too small: after %s, %d bytes remain for inner packets, but %s needs %d; raise the underlay's MTU to %d",
		n.Name, s.outer, headers, s.inner, family, least, least+s.outer-s.inner)
}

// VifMTU returns the MTU of a workload's device before other nodes are known, in
// bytes: the fabric's MTU minus the longest headers of the node's encapsulations.
func VifMTU(fabric int, node model.Node, n model.Network) int {
	v6 := !slices.ContainsFunc(node.Underlay, netip.Addr.Is4)
	longest := 0
	for _, e := range node.Encapsulations {
		longest = max(longest, Overhead(e, v6, n.Bridges()))
	}
	if node.Locator.IsValid() {
		longest = max(longest, Overhead(model.Translated, v6, false))
	}
	return fabric - longest
}

// Header lengths in bytes.
const (
	ethernetHeader = 14
	ipv4Header     = 20 // RFC 791, without options
	ipv6Header     = 40 // RFC 8200
	udpHeader      = 8
	greHeader      = 4 // RFC 2784, without options
	labelEntry     = 4 // RFC 3032
	vxlanHeader    = 8 // RFC 7348
)

// Smallest MTUs of IP.
const (
	leastMTU4 = 576  // RFC 791: every host accepts packets of this size
	leastMTU6 = 1280 // RFC 8200
)

// Overhead returns the number of bytes that an encapsulation adds to an inner IP
// packet, with the outer IP header. VXLAN always carries an inner Ethernet header.
func Overhead(e model.Encapsulation, underlay6, ethernet bool) int {
	if e == model.Direct {
		return 0
	}
	if e == model.Translated {
		return ipv6Header - ipv4Header
	}
	n := ipv4Header
	if underlay6 {
		n = ipv6Header
	}
	switch e {
	case model.MPLSoGRE:
		n += greHeader + labelEntry
	case model.MPLSoUDP:
		n += udpHeader + labelEntry
	case model.VXLAN:
		n += udpHeader + vxlanHeader
		ethernet = true
	}
	if ethernet {
		n += ethernetHeader
	}
	return n
}
