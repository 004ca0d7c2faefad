package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// handOver records changes of the nodes' encapsulations, and looks up which changes are under
// way. It runs before the steps that use the encapsulations.
func (p *Pass) handOver() {
	r, now := p.r, time.Now()
	if nodes := p.Want.State.Nodes; !reflect.DeepEqual(nodes, r.noted) {
		r.Offers, r.noted = r.Offers.Next(nodes, p.Want.Node, p.reached, now), nodes
	}
	p.facts.handovers, r.handover = r.Offers.Handovers(now)
	forgetMoved(p.facts.handovers, p.Want.State.Nodes, p.Want.Node)
}

// forgetMoved removes from the handovers the former locators that a node has now. If they are not
// the whole locator of the same node, the handover of translated packets ends: the nodes use their
// new locators. node is the name of this node.
func forgetMoved(handovers map[string]fib.Handover, nodes []model.Node, node string) {
	if len(handovers) == 0 {
		return
	}
	owners := model.OwnersOfLocators(nodes)
	for name, h := range handovers {
		for former, of := range map[*netip.Prefix]string{&h.Own: node, &h.Other: name} {
			owner := ""
			if former.IsValid() {
				owner = owners.Overlapping(*former)
			}
			if owner == "" {
				continue
			}
			if owner != of || !owners.Has(*former) {
				h.Accept = slices.DeleteFunc(slices.Clone(h.Accept), func(e model.Encapsulation) bool { return e == model.Translated })
			}
			*former = netip.Prefix{}
		}
		handovers[name] = h
	}
}

// reached reports whether the last tables sent packets to another node. If this agent has not
// written tables yet, they may have sent packets.
func (p *Pass) reached(n model.Node) bool {
	last := p.r.Last
	if last == nil || !last.compiled {
		return true
	}
	return slices.ContainsFunc(append(slices.Clone(n.Underlay), n.Locator.Addr()), func(a netip.Addr) bool {
		return last.Tables.Remotes[layout.AddressOf(a)].Nexthop != 0
	})
}

// untilHandover returns the time until the next change of the handovers, at most longest.
func (r *Reconciler) untilHandover(longest time.Duration) time.Duration {
	if r.handover.IsZero() {
		return longest
	}
	return min(longest, max(time.Until(r.handover), time.Millisecond))
}

// self returns this node with the settings that direct still needs because of handovers: Direct
// among its encapsulations, and its former locator.
func (p *Pass) self() model.Node {
	self, _ := p.Want.Self()
	own := formerOwn(p.facts.handovers)
	for _, h := range p.facts.handovers {
		self = withFormer(self, h, own)
	}
	return self
}

// findForeign finds the other nodes whose locators contain an address of this host. Such a locator is
// the prefix of a link. If this node translated to it, the programs would drop the packets of this
// host to other hosts on the link. A partial pass for the same nodes finds nothing new. If
// findForeign cannot list the addresses, it finds the same nodes as the last pass.
func (p *Pass) findForeign() {
	if last := p.r.Last; last != nil && last.Want != nil && p.isPartial() && reflect.DeepEqual(last.Want.State.Nodes, p.Want.State.Nodes) {
		p.facts.foreign = last.facts.foreign
	} else {
		p.facts.foreign = p.foreignNow()
	}
	for _, name := range slices.Sorted(maps.Keys(p.facts.foreign)) {
		p.block(theLocator, p.facts.foreign[name])
	}
}

func (p *Pass) foreignNow() map[string]string {
	others := slices.DeleteFunc(slices.Clone(p.Want.State.Nodes), func(n model.Node) bool { return n.Name == p.Want.Node || !n.Locator.IsValid() })
	if len(others) == 0 {
		return nil
	}
	last := p.r.Last
	own, err := netdev.Addresses6(p.r.space)
	former := map[netip.Prefix]bool{} // locators of this node: the next step may remove their addresses
	switch {
	case last != nil:
		former[last.locator] = true
	case err == nil && len(own) > 0: // not on a kernel without IPv6
		former, err = netdev.KeptLocators(p.r.space)
	}
	if err != nil {
		if p.fail(theLocator, err); last == nil {
			return nil
		}
		return last.facts.foreign
	}
	for l := range former {
		own = slices.DeleteFunc(own, func(a netip.Addr) bool { return a == model.Node{Locator: l}.LocatorAddress() })
	}
	foreign := map[string]string{}
	for _, n := range others {
		i := slices.IndexFunc(own, func(a netip.Addr) bool { return a.IsGlobalUnicast() && n.Locator.Contains(a) })
		if i >= 0 {
			foreign[n.Name] = fmt.Sprintf("locator: the locator %s of node %s contains the address %s of this host; give node %s a prefix that no link uses; until then this node does not translate packets to it", n.Locator, n.Name, own[i], n.Name)
		}
	}
	return foreign
}

// formerOwn returns the locator that this node keeps because of handovers; zero: none. If the
// locator changed several times, the handovers may have different ones.
func formerOwn(handovers map[string]fib.Handover) (own netip.Prefix) {
	for _, h := range handovers {
		if h.Own.IsValid() && (!own.IsValid() || h.Own.Addr().Less(own.Addr())) {
			own = h.Own
		}
	}
	return own
}

// other returns another node with the settings that direct still needs because of handovers. A
// locator that is not used counts as none.
func (p *Pass) other(n model.Node) model.Node {
	h := p.facts.handovers[n.Name]
	if n = withFormer(n, h, h.Other); p.facts.foreign[n.Name] != "" {
		n.Locator = netip.Prefix{}
	}
	return n
}

func withFormer(n model.Node, h fib.Handover, locator netip.Prefix) model.Node {
	if h.Accepts(model.Direct) && !slices.Contains(n.Encapsulations, model.Direct) {
		n.Encapsulations = append(slices.Clone(n.Encapsulations), model.Direct)
	}
	n.Locator = cmp.Or(locator, n.Locator)
	return n
}

// nodes returns the nodes for the tables. A node whose locator is not in the desired state any
// more keeps it during a handover, also if it has another one by then. If the kernel refuses this
// node's locator, this node has none: then the tables do not translate in either direction.
func (f *facts) nodes(want *Desired) []model.Node {
	all, own := slices.Clone(want.State.Nodes), formerOwn(f.handovers)
	for i := range all {
		n := &all[i]
		if n.Name != want.Node {
			if n.Locator = cmp.Or(f.handovers[n.Name].Other, n.Locator); f.foreign[n.Name] != "" {
				n.Locator = netip.Prefix{}
			}
			continue
		}
		n.Locator = cmp.Or(own, n.Locator)
		if f.refusal != "" {
			n.Locator = netip.Prefix{}
		}
	}
	return all
}

// sameHandovers reports whether the handovers equal those of older facts.
func (f *facts) sameHandovers(older facts) bool {
	return reflect.DeepEqual(f.handovers, older.handovers)
}
