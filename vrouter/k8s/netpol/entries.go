package netpol

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math/bits"
	"slices"
	"strconv"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

// allowIdentity adds or deletes the entries of an identity for all groups.
func (t *tables) allowIdentity(id *identity, present bool) {
	for _, g := range t.groups {
		for _, p := range g.policies {
			for _, r := range p.rules {
				t.allow(g, r, id, present)
			}
		}
	}
}

// allowGroup adds or deletes the entries of a group.
func (t *tables) allowGroup(g *group, present bool) {
	for _, p := range g.policies {
		for _, r := range p.rules {
			t.allow(g, r, nil, present)
			for _, x := range r.peers {
				for _, id := range t.byPeer[x] {
					t.allow(g, r, id, present)
				}
			}
			for _, x := range r.ports {
				if x.name != "" {
					for _, id := range t.named[x.port()] {
						t.allow(g, r, id, present)
					}
				}
			}
		}
	}
}

// allow adds or deletes the entries of a rule of a group for an identity; nil: for any address.
func (t *tables) allow(g *group, r rule, id *identity, present bool) {
	entry := fib.Allow{Group: g.Number, Egress: r.egress}
	if id != nil {
		entry.Identity = id.number
	}
	for _, n := range r.allowed(g.ports, id) {
		entry.Protocol = n.protocol
		n.prefixes(func(port uint16, bits uint8) {
			entry.Port, entry.PortBits = port, bits
			t.setAllow(entry, present)
		})
	}
}

// allowed returns the ports of destinations that the rule allows between pods with these named ports and the addresses
// of an identity; nil: any address. The zero portRange is all ports of all protocols.
func (r rule) allowed(named []Port, id *identity) (all []portRange) {
	ports := r.ports
	if len(ports) == 0 {
		ports = []portRange{{}}
	}
	selected := id == nil && r.all || id != nil && slices.ContainsFunc(r.peers, func(p *peer) bool { return id.peers[p] })
	for _, x := range ports {
		switch {
		case x.name != "" && r.egress:
			if id != nil && (r.all || selected || slices.ContainsFunc(r.peers, func(p *peer) bool { return slices.Contains(id.blocks, p) })) {
				all = append(all, x.resolve(id.ports)...)
			}
		case selected:
			all = append(all, x.resolve(named)...)
		}
	}
	return all
}

// prefixes calls f for prefixes of port numbers that together are the range.
func (x portRange) prefixes(f func(port uint16, bits uint8)) {
	if x.first == 0 { // all ports
		f(0, 0)
		return
	}
	for first, last := uint32(x.first), uint32(x.last); first <= last; {
		size := min(bits.TrailingZeros32(first), bits.Len32(last-first+1)-1)
		f(uint16(first), uint8(16-size))
		first += 1 << size
	}
}

// own returns the grouping. It copies the grouping first if a Result that was returned has it too.
func (t *tables) own() *fib.Grouping {
	if t.shared.grouping {
		g := *t.grouping
		t.grouping, t.shared.grouping = &g, false
	}
	return t.grouping
}

// owned returns a map. It copies the map first if a Result that was returned has it too.
func owned[K comparable, V any](m *map[K]V, shared *bool) map[K]V {
	if *shared {
		*m, *shared = maps.Clone(*m), false
	}
	return *m
}

// reset gives the addresses of a prefix the identity of their ipBlocks, and none of pods.
func (t *tables) reset(k fib.RouteKey) {
	var value layout.Identity
	if r := t.c.regions.all[k.Prefix]; r != nil {
		value.Block = t.ofRegions[r].number
	}
	t.set(k, value)
}

// set writes the identity of a prefix into the map Identities, or deletes it if value is zero.
func (t *tables) set(k fib.RouteKey, value layout.Identity) {
	none := layout.Identity{}
	was := t.grouping.Identities[k]
	if was == value {
		return
	}
	g := t.own()
	all := owned(&g.Identities, &t.shared.identities)
	if was != none {
		g.Revision -= sumOfIdentity(k, was)
	}
	if value == none {
		delete(all, k)
		return
	}
	all[k] = value
	g.Revision += sumOfIdentity(k, value)
}

func (t *tables) setAllow(a fib.Allow, present bool) {
	if t.grouping.Allows[a] == present {
		return
	}
	g := t.own()
	if all := owned(&g.Allows, &t.shared.allows); present {
		all[a] = true
		g.Revision += sumOfAllow(a)
	} else {
		delete(all, a)
		g.Revision -= sumOfAllow(a)
	}
}

func (t *tables) setGroup(name string, p endpointEntries) {
	var is fib.Group
	delete(t.unknown, name)
	switch {
	case p.closed:
		is = closed
		t.unknown[name] = true
	case p.group != nil:
		is = p.group.Group
	}
	if t.grouping.Groups[name] == is {
		return
	}
	g := t.own()
	if all := owned(&g.Groups, &t.shared.groups); is == (fib.Group{}) {
		delete(all, name)
	} else {
		all[name] = is
	}
}

// The revision is the sum of the checksums of all entries, so it does not depend on their order.

func sumOfIdentity(k fib.RouteKey, n layout.Identity) uint32 {
	a := k.Prefix.Addr().As16()
	buffer := append(a[:], byte(k.Prefix.Bits()))
	for _, v := range []uint32{k.VRF, n.Pods, n.Block} {
		buffer = binary.LittleEndian.AppendUint32(buffer, v)
	}
	return sum(buffer)
}

func sumOfAllow(a fib.Allow) uint32 {
	buffer := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, a.Group), a.Identity)
	return sum(strconv.AppendBool(binary.LittleEndian.AppendUint16(append(buffer, a.Protocol, a.PortBits), a.Port), a.Egress))
}

func sum(text []byte) uint32 {
	h := fnv.New32a()
	h.Write(text)
	return h.Sum32()
}
