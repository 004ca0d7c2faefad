package fleet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// complete allocates the addresses, the name and the MAC that a request omits.
func (v *View) complete(n model.Network, r model.PortRequest, how choice) (model.Port, error) {
	p := withInterface(r.Port)
	if is := v.ports[p.Name]; p.Name != "" && is != nil && len(p.IPs) == 0 {
		p.IPs = is.IPs // addPort compares p with the existing port
	}
	if len(p.IPs) == 0 {
		ips, err := v.allocate(n, r, how)
		if err != nil {
			return p, err
		}
		p.IPs = ips
	}
	if p.Attach.Host && len(p.Floating) == 0 && p.NATSlot == 0 {
		p.Floating, p.NATSlot = v.freeFloating(n, how), v.freeSlot(n, how)
	}
	if p.Name == "" {
		p.Name = model.PortName(p, func(name string) bool { return v.ports[name] != nil })
	}
	if p.MAC.IsZero() {
		p.MAC = model.PortMAC(p, func(m model.MAC) bool { return v.index.get(macOf(n.Name, m)) != nil || v.behindGateway(n.Name, m) })
	}
	return p, nil
}

func (v *View) behindGateway(network string, m model.MAC) bool {
	for _, g := range v.gateways {
		if gn, ok := g.Network(network); ok && slices.Contains(gn.MACs, m) {
			return true
		}
	}
	return false
}

// allocate chooses an address of each requested family.
func (v *View) allocate(n model.Network, r model.PortRequest, how choice) (ips []netip.Addr, err error) {
	taken := v.routedElsewhere(n.Name)
	for _, family := range []struct {
		name   string
		is     func(netip.Addr) bool
		wanted bool
	}{{"IPv4", netip.Addr.Is4, r.Four || !r.Six}, {"IPv6", netip.Addr.Is6, r.Six || !r.Four}} {
		pools := v.after(n.Name, model.Pools(n, r.From, family.is))
		if !family.wanted || len(pools) == 0 && !r.Four && !r.Six {
			continue
		}
		if len(pools) == 0 {
			return nil, refuse(Invalid, "allocate an address: network %q has no %s subnet; add one, or ask for the other family", n.Name, family.name)
		}
		a, ok := v.free(n, pools, how.spread, func(a netip.Addr) bool { return taken[a] || how.claimed[a] })
		if !ok {
			a, ok = v.free(n, pools, how.spread, func(a netip.Addr) bool { return taken[a] })
		}
		if !ok {
			return nil, refuse(Full, "allocate an address: network %q has no free %s address in %s; delete ports, or add a subnet", n.Name, family.name, join(model.Pools(n, r.From, family.is)))
		}
		ips = append(ips, a)
	}
	return ips, nil
}

func join(pools []model.Range) string {
	return strings.Join(lists.Map(pools, model.Range.String), ", ")
}

// routedElsewhere returns the addresses that the network's DNS, routes and gateways use.
func (v *View) routedElsewhere(network string) map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	host := func(p netip.Prefix) {
		if p.IsSingleIP() {
			taken[p.Addr()] = true
		}
	}
	for _, a := range v.networks[network].DNS {
		taken[a] = true
	}
	for p := range v.routes[network] {
		host(p)
	}
	for _, g := range v.gateways {
		gn, _ := g.Network(network)
		for _, p := range gn.Prefixes {
			host(p)
		}
	}
	return taken
}

// position has the addresses that a node last allocated in a network. Allocation continues after
// them, so that a freed address is not in use again at once: peers may still know it as the
// former workload's.
type position struct {
	revision int64
	last     []netip.Addr
}

func (v *View) keepPosition(p place, e store.Entry) error {
	if len(e.Value) > maxPortValue {
		return fmt.Errorf("the value has %d bytes, at most %d are allowed", len(e.Value), maxPortValue)
	}
	last, err := decode[[]netip.Addr](e.Value)
	if err == nil {
		v.last[p] = position{e.Revision, last}
	}
	return err
}

// after rotates pools so that they begin after the address in them that any node allocated last.
func (v *View) after(network string, pools []model.Range) []model.Range {
	var newest int64
	at, last := -1, netip.Addr{}
	for node := range v.listed[network] {
		p := v.last[place{node, network}]
		if p.revision <= newest {
			continue
		}
		for _, a := range p.last {
			if i := slices.IndexFunc(pools, func(r model.Range) bool { return r.Contains(a) }); i >= 0 {
				newest, at, last = p.revision, i, a
			}
		}
	}
	if at < 0 {
		return pools
	}
	rotated := slices.Concat(pools[at+1:], pools[:at], []model.Range{{First: pools[at].First, Last: last}})
	if last != pools[at].Last {
		rotated = slices.Insert(rotated, 0, model.Range{First: last.Next(), Last: pools[at].Last})
	}
	return rotated
}

// free returns an address of the pools, chosen at random among the first spread
// free addresses. It skips blocks in which every address has a port.
func (v *View) free(n model.Network, pools []model.Range, spread int, taken func(netip.Addr) bool) (netip.Addr, bool) {
	var next []netip.Addr
	for _, pool := range pools {
		for a := pool.First; len(next) < spread && pool.Contains(a); a = a.Next() {
			if b := v.fullBlock(n.Name, a); b.IsValid() {
				a = model.LastAddress(b)
			} else if v.index.get(addressOf(n.Name, a)) == nil && !taken(a) {
				next = append(next, a)
			}
		}
	}
	if len(next) == 0 {
		return netip.Addr{}, false
	}
	return next[rand.IntN(len(next))], true
}

// fullBlock returns the largest block that contains an address and has no free address;
// zero: there is none.
func (v *View) fullBlock(network string, a netip.Addr) netip.Prefix {
	for _, bits := range blockBits {
		if b := blockOf(a, bits); v.blocks[network][b] == 1<<bits {
			return b
		}
	}
	return netip.Prefix{}
}

// freeFloating returns a free IPv4 and a free IPv6 address of a network's pool, without those that the pool lacks.
// With nat_ports, nodes share addresses, and it returns none.
func (v *View) freeFloating(n model.Network, how choice) (all []netip.Addr) {
	if n.NATPorts > 0 {
		return nil
	}
	for _, family := range []func(netip.Addr) bool{netip.Addr.Is4, netip.Addr.Is6} {
		var pools []model.Range
		for _, p := range n.NATPool {
			if family(p.Addr()) {
				pools = append(pools, model.RangeOf(p))
			}
		}
		if a, ok := v.free(n, pools, max(1, how.spread), func(a netip.Addr) bool { return how.claimed[a] }); ok {
			all = append(all, a)
		}
	}
	return all
}

// freeSlot returns a free share of a network's pool; 0: there is none, or the nodes do not share the pool.
func (v *View) freeSlot(n model.Network, how choice) uint16 {
	if n.NATSlots() == 0 {
		return 0
	}
	all := []model.Range{{First: model.SlotAddress(1), Last: model.SlotAddress(n.NATSlots())}}
	a, ok := v.free(n, all, max(1, how.spread), func(a netip.Addr) bool { return how.claimed[a] })
	if !ok {
		return 0
	}
	return model.SlotOf(a)
}
