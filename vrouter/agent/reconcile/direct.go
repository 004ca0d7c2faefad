package reconcile

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// settle is the longest wait for the tests of links when the agent starts.
const settle = 100 * time.Millisecond

// link is the state of another node's underlay address on a common link.
type link struct {
	state   fib.Link
	ifindex int // of the tested device
}

// testLinks tests the links to the nodes of the desired state that offer direct. It
// returns the states of their underlay addresses on common links.
func (p *Pass) testLinks() map[netip.Addr]link {
	targets, own := map[netip.Addr]direct.Target{}, map[netip.Addr]int{}
	for _, l := range p.ethernet {
		own[l.Source] = l.Ifindex
		for _, n := range p.Want.State.Nodes {
			if n.Name == p.Want.Node || !slices.Contains(n.Encapsulations, model.Direct) {
				continue
			}
			for _, a := range n.Underlay {
				if l.Subnet.Contains(a) {
					targets[a] = direct.Target{Source: l.Source, Ifindex: l.Ifindex}
				}
			}
		}
	}
	p.r.Tester.Set(targets, own, p.localNetworks())
	if p.cause == Starting {
		// The programs of an earlier agent may forward directly: they should go on.
		p.r.Tester.Settle(settle)
	}
	states := make(map[netip.Addr]link, len(targets))
	for a, t := range targets {
		states[a] = link{stateOf(p.r.Tester.State(a)), t.Ifindex}
	}
	return states
}

// stateOf returns the state of a link for the tables. A link that has worked counts as
// one under test: packets take a tunnel, and the workloads keep their MTU. The other node
// may only be down, and the MTU of a whole fleet must not depend on one node.
func stateOf(s direct.State) fib.Link {
	switch s {
	case direct.Works:
		return fib.LinkWorks
	case direct.Fails:
		return fib.LinkFails
	}
	return fib.LinkUntested
}

// localNetworks returns the ids of the networks that route and have ports on this node,
// sorted.
func (p *Pass) localNetworks() []uint32 {
	ids := map[uint32]bool{}
	for _, port := range p.Want.Ports {
		if n, ok := p.Want.Network(port.Network); ok && n.Routes() {
			ids[n.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// receiveLabels prepares the fabric devices for packets that come directly.
func (p *Pass) receiveLabels() {
	self, _ := p.Want.Self()
	if err := p.r.labels.Keep(p.fabricLinks(), self.Underlay, p.ethernet, p.localNetworks(), p.cause != asked); err != nil {
		p.fail("", err)
	}
}

func (p *Pass) fabricLinks() (links []netlink.Link) {
	for _, f := range p.Fabric {
		links = append(links, f.Link)
	}
	return links
}

// Links tells which of the other nodes' underlay addresses on common links are reached
// directly.
func (p *Pass) Links() map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for a, l := range p.facts.links {
		all[a] = l.state == fib.LinkWorks
	}
	return all
}

// Reasons why XDP is not wanted on a fabric device.
const (
	noXDPWhereMerged = "the kernel merges VXLAN packets by itself (device " + netdev.GRODevice + "), which XDP would come before"
	noXDPWhereDirect = "all nodes are reached directly, so that no packet has tunnel headers"
)

// unwantedXDP returns why XDP is not wanted; empty if it is. Some NICs lose their link
// for seconds when XDP is attached or detached, so that all tests of links fail. So the
// agent detaches XDP only once because of direct.
func (p *Pass) unwantedXDP() string {
	if p.merges {
		return noXDPWhereMerged
	}
	if p.r.xdpAgain {
		return ""
	}
	direct := false
	for _, n := range p.Tables.Nexthops {
		switch {
		case n.Type != fib.Tunnel:
		case n.Encapsulation == model.Direct:
			direct = true
		default:
			return ""
		}
	}
	if direct {
		return noXDPWhereDirect
	}
	return ""
}
