package reconcile

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// settle is the maximum time for which the first pass waits for the tests of links.
const settle = 100 * time.Millisecond

// link is the state of an address of another node: an underlay address on a common link, or
// the address in the node's locator.
type link struct {
	state   fib.Link
	tested  direct.State
	ifindex int    // device on which the address is tested; 0: an address in a locator
	last    uint32 // highest network whose label the node receives
}

// testLinks tests the links to all nodes that offer direct in the desired state, or offered it
// until a short time ago. It also tests the paths to the locators of nodes. It returns the
// states by the address that was tested.
func (p *Pass) testLinks() map[netip.Addr]link {
	targets, own := map[netip.Addr]direct.Target{}, map[netip.Addr]int{}
	for _, l := range p.ethernet {
		own[l.Source] = l.Ifindex
		for _, n := range p.Want.State.Nodes {
			if n = p.other(n); n.Name == p.Want.Node || !slices.Contains(n.Encapsulations, model.Direct) {
				continue
			}
			for _, a := range n.Underlay {
				if l.Subnet.Contains(a) {
					targets[a] = direct.Target{Source: l.Source, Ifindex: l.Ifindex, Since: p.r.Offers.Since(n.Name, model.Direct)}
				}
			}
		}
	}
	p.testLocators(targets, own)
	p.r.Tester.Set(targets, own, p.Labels.Received())
	if p.cause == Starting {
		// If the previous agent sent packets directly, this must not stop.
		p.r.Tester.Settle(settle)
	}
	states := make(map[netip.Addr]link, len(targets))
	for a, t := range targets {
		s := p.r.Tester.State(a)
		states[a] = link{stateOf(s), s, t.Ifindex, p.r.Tester.Last(a)}
	}
	return states
}

// testLocators adds the addresses in the locators of other nodes to targets, and the address
// in this node's locator to own. It adds nothing if this node cannot translate.
func (p *Pass) testLocators(targets map[netip.Addr]direct.Target, own map[netip.Addr]int) {
	self := p.self()
	if !self.Translates() || p.facts.refusal != "" {
		return
	}
	own[self.LocatorAddress()] = 0
	for _, n := range p.Want.State.Nodes {
		if n = p.other(n); n.Name != p.Want.Node && n.Translates() {
			targets[n.LocatorAddress()] = direct.Target{Source: self.LocatorAddress(), Since: p.r.Offers.Since(n.Name, model.Translated)}
		}
	}
}

// keepLocator adds the address and the route of this node's locator to the kernel. If the
// node does not translate, keepLocator removes them. If the pass is partial and the locator
// has not changed, it does nothing, or retries after a failure. A failure is mild: the node
// uses tunnels, and the state may derive the locators of all nodes, also of nodes without IPv6.
func (p *Pass) keepLocator() {
	self := p.self()
	if !self.Translates() {
		self.Locator = netip.Prefix{}
	}
	p.locator = self.Locator
	var before netip.Prefix
	if last := p.r.Last; last != nil {
		before = last.locator
		if p.isPartial() && before == p.locator && (p.waits(theLocator) || !last.failed(theLocator)) {
			p.facts.refusal = last.facts.refusal
			return
		}
	}
	if err := netdev.KeepLocator(p.r.space, self, before); err != nil {
		p.facts.refusal = err.Error() + "; until then this node does not use direct between links"
		p.fail(theLocator, errors.New(p.facts.refusal))
	}
}

// stateOf returns the state of a link for the tables. A link that has stopped counts as
// untested: packets use a tunnel, and the workloads keep their MTU. The other node may be
// down for a short time, and this must not change the MTU of other nodes' workloads.
func stateOf(s direct.State) fib.Link {
	switch s {
	case direct.Works:
		return fib.LinkWorks
	case direct.Bridges:
		return fib.LinkBridges
	case direct.Fails:
		return fib.LinkFails
	}
	return fib.LinkUntested
}

func (p *Pass) fabricLinks() (links []netlink.Link) {
	for _, f := range p.Fabric {
		links = append(links, f.Link)
	}
	return links
}

// Links returns the states of the tested addresses of other nodes: underlay addresses on common
// links, and addresses in locators.
func (p *Pass) Links() map[netip.Addr]direct.State {
	all := map[netip.Addr]direct.State{}
	for a, l := range p.facts.links {
		all[a] = l.tested
	}
	return all
}

// Reasons why XDP must not be attached to a fabric device.
const (
	noXDPWhereMerged = "no tunnel of this node uses MPLS, and the kernel merges VXLAN packets itself (device " + netdev.GRODevice + "); XDP would decapsulate them before that"
	noXDPUnderVLAN   = "XDP does not see the VLAN tag that a driver keeps beside the frame, and would decapsulate packets of fabric device "
	noXDPWhereDirect = "all nodes are reached directly, by translation or by VXLAN packets that the kernel merges itself, so XDP has few or no tunnel packets to decapsulate"
)

// unwantedXDP returns the reason why XDP must not be attached to f; empty: it may be attached.
// Nexthops say what XDP has to decapsulate, because both ends of a tunnel choose the same
// encapsulation. Packets of other encapsulations are decapsulated in tc.
//
// Some NICs lose their link for seconds when XDP is attached or detached. Then all tests of
// links fail, and XDP would be attached again. To end this cycle, XDP stays attached after it was
// detached because of direct and attached again.
func (p *Pass) unwantedXDP(f *FabricDevice) string {
	for _, other := range p.Fabric {
		if vlan, ok := other.Link.(*netlink.Vlan); ok && vlan.ParentIndex == f.Link.Attrs().Index {
			return noXDPUnderVLAN + vlan.Name
		}
	}
	direct, fallback := false, map[uint32]bool{}
	for _, n := range p.Tables.Nexthops {
		fallback[n.Fallback] = true // few packets need this tunnel
	}
	for id, n := range p.Tables.Nexthops {
		switch {
		case n.Type != layout.Tunnel || fallback[id]:
		case n.Encapsulation() == model.Direct, n.Encapsulation() == model.Translated:
			direct = true
		case n.Encapsulation() == model.VXLAN && p.merges:
		default:
			return ""
		}
	}
	switch {
	case p.r.xdpAgain:
		return ""
	case direct:
		return noXDPWhereDirect
	case p.merges:
		return noXDPWhereMerged
	}
	return ""
}
