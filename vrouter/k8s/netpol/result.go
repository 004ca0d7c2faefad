package netpol

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"windtunnel/vrouter/fib"
)

// Result is what the data path of a node looks up.
type Result struct {
	fib.Grouping                   // of the pods on this node
	Unknown      []string          // ports on this node whose pods are not known: they are closed
	Problems     map[Name][]string // of policies
}

// closed is the group of ports whose pods the API server has not named yet.
var closed = fib.Group{Number: 1, In: true, Out: true}

// identity is a set of peers that select the same addresses: either peers that select pods, or ipBlocks. An
// address can have one identity of each kind. Egress rules with named ports depend on the pod at the address, so
// the identity of pods also has the pods' ports that such rules name, and the ipBlocks of these rules.
type identity struct {
	number uint32
	peers  map[*peer]bool
	ports  []Port
}

// compilation is the state of one call of Compile.
type compilation struct {
	*Compiler
	Result
	used       numbers
	taken      map[uint32]bool // numbers of this result and the last; nil: not known
	identities map[string]*identity
	ofPods     map[classAt]*identity
	ofRegion   map[*region]*identity
	byPeer     map[*peer][]*identity
	named      map[string][]*identity // identities with a named port
	done       map[uint32]bool        // groups
}

type classAt struct {
	*class
	*region
}

// Compile returns the result for the present objects.
func (c *Compiler) Compile() Result {
	b := compilation{
		Compiler: c, used: numbers{}, identities: map[string]*identity{}, ofPods: map[classAt]*identity{}, ofRegion: map[*region]*identity{}, byPeer: map[*peer][]*identity{}, named: map[string][]*identity{}, done: map[uint32]bool{},
		Result: Result{Grouping: fib.Grouping{Sets: fib.Sets{Identities: map[fib.RouteKey]fib.Identity{}, Allows: map[fib.Allow]bool{}}, Groups: map[string]fib.Group{}}, Problems: map[Name][]string{}},
	}
	c.regions.find()
	vrfs := map[uint32]bool{}
	for _, e := range c.endpoints {
		vrfs[e.VRF] = vrfs[e.VRF] || e.Local
	}
	for vrf, here := range vrfs {
		for p, r := range c.regions.all {
			if here {
				b.give(vrf, p, nil, r)
			}
		}
	}
	for _, e := range c.endpoints {
		if !vrfs[e.VRF] || e.Pod == (Name{}) {
			continue
		}
		k := c.class(e)
		for i, r := range c.regionsOf(e) {
			b.give(e.VRF, netip.PrefixFrom(e.IPs[i], e.IPs[i].BitLen()), k, r)
		}
	}
	for _, e := range c.endpoints {
		if !e.Local || e.Pod == (Name{}) {
			continue
		}
		if k := c.class(e); k == nil {
			b.Groups[e.Name], b.Unknown = closed, append(b.Unknown, e.Name)
		} else if len(k.policies) > 0 {
			b.Groups[e.Name] = b.group(k)
		}
	}
	slices.Sort(b.Unknown)
	b.findProblems()
	b.Revision = b.sum()
	c.numbers = b.used
	return b.Result
}

func (c *Compiler) regionsOf(e *endpoint) []*region {
	if e.version != c.regions.version {
		e.regions, e.version = e.regions[:0], c.regions.version
		for _, a := range e.IPs {
			e.regions = append(e.regions, c.regions.of(a))
		}
	}
	return e.regions
}

// give writes the identities of the addresses in a prefix. They are in the region r (nil: in no ipBlock), and
// belong to pods of the class k (nil: to no pod).
func (b *compilation) give(vrf uint32, p netip.Prefix, k *class, r *region) {
	var id fib.Identity
	if r != nil {
		of := b.ofRegion[r]
		if of == nil {
			of = b.identity("addresses\x00"+r.text, r.peers, nil, nil)
			b.ofRegion[r] = of
		}
		id.Block = of.number
	}
	if k != nil {
		of := b.ofPods[classAt{k, r}]
		if of == nil {
			of = b.podsIdentity(k, r)
			b.ofPods[classAt{k, r}] = of
		}
		id.Pods = of.number
	}
	b.Identities[fib.RouteKey{VRF: vrf, Prefix: p}] = id
}

func (b *compilation) podsIdentity(k *class, r *region) *identity {
	if k.text == "" {
		var text []string
		for p := range k.peers {
			text = append(text, p.text)
		}
		slices.Sort(text)
		k.text = "pods\x00" + strings.Join(text, "\x00")
	}
	var ports []Port
	text := k.text
	for _, p := range k.ports {
		if b.egressed[Port{Name: p.Name, Protocol: p.Protocol}] > 0 {
			ports = append(ports, p)
			text += "\x00:" + p.text()
		}
	}
	if len(ports) == 0 || r == nil {
		return b.identity(text, nil, k.peers, ports)
	}
	for _, p := range r.named {
		text += "\x00" + p.text
	}
	return b.identity(text, r.named, k.peers, ports)
}

// identity returns the identity with a text, and adds it if it is new.
func (b *compilation) identity(text string, blocks []*peer, pods map[*peer]bool, ports []Port) *identity {
	if known := b.identities[text]; known != nil {
		return known
	}
	id := &identity{number: b.number(text), peers: map[*peer]bool{}, ports: ports}
	maps.Copy(id.peers, pods)
	for _, p := range blocks {
		id.peers[p] = true
	}
	b.identities[text] = id
	for p := range id.peers {
		if pods == nil || p.pods != nil {
			b.byPeer[p] = append(b.byPeer[p], id)
		}
	}
	for _, p := range ports {
		name := Port{Name: p.Name, Protocol: p.Protocol}.text()
		b.named[name] = append(b.named[name], id)
	}
	return id
}

// numbers maps the text of an identity or a group to its number.
type numbers map[string]uint32

// number returns the number of a text. If the last result has none, it is derived from the text, so that another
// process computes the same numbers.
func (b *compilation) number(text string) uint32 {
	if n := cmp.Or(b.used[text], b.numbers[text]); n != 0 {
		b.used[text] = n
		return n
	}
	if b.taken == nil {
		b.taken = map[uint32]bool{0: true, closed.Number: true}
		for _, n := range b.numbers {
			b.taken[n] = true
		}
	}
	h := fnv.New32a()
	h.Write([]byte(text))
	n := h.Sum32()
	for b.taken[n] {
		n++
	}
	b.used[text], b.taken[n] = n, true
	return n
}

// group returns the group of the pods of a class, and writes its entries.
func (b *compilation) group(k *class) fib.Group {
	var g fib.Group
	var text []string
	names := false
	for p := range k.policies {
		text = append(text, p.name.Namespace+"/"+p.name.Name)
		g.In, g.Out = g.In || p.ingress, g.Out || p.egress
		names = names || len(p.ingressNames) > 0
	}
	slices.Sort(text)
	if names {
		for _, p := range k.ports {
			text = append(text, p.text())
		}
	}
	g.Number = b.number("group\x00" + strings.Join(text, "\x00"))
	if b.done[g.Number] {
		return g
	}
	b.done[g.Number] = true
	for p := range k.policies {
		for _, r := range p.rules {
			b.allow(g.Number, r, k)
		}
	}
	return g
}

// allow writes the entries of a rule.
func (b *compilation) allow(group uint32, r rule, k *class) {
	entry := fib.Allow{Group: group, Egress: r.egress}
	put := func(identity uint32, x portRange) {
		entry.Identity, entry.Protocol = identity, x.protocol
		if x.first == 0 {
			entry.Port, entry.PortBits = 0, 0
			b.Allows[entry] = true
			return
		}
		for first, last := uint32(x.first), uint32(x.last); first <= last; {
			size := min(bits.TrailingZeros32(first), bits.Len32(last-first+1)-1)
			entry.Port, entry.PortBits = uint16(first), uint8(16-size)
			b.Allows[entry] = true
			first += 1 << size
		}
	}
	ports := r.ports
	if len(ports) == 0 {
		ports = []portRange{{}}
	}
	for _, x := range ports {
		switch {
		case x.name == "" || !r.egress:
			for _, x := range x.resolve(k.ports) {
				if r.all {
					put(0, x)
				}
				for _, p := range r.peers {
					for _, id := range b.byPeer[p] {
						put(id.number, x)
					}
				}
			}
		default:
			for _, id := range b.named[Port{Name: x.name, Protocol: x.protocol}.text()] {
				if r.all || slices.ContainsFunc(r.peers, func(p *peer) bool { return id.peers[p] }) {
					for _, x := range x.resolve(id.ports) {
						put(id.number, x)
					}
				}
			}
		}
	}
}

// findProblems finds the names of ports in ingress rules that no selected pod has.
func (b *compilation) findProblems() {
	type named struct {
		*policy
		Port
	}
	has := map[named]bool{} // whether a selected pod has the port; only policies that select pods have entries
	for _, k := range b.classes {
		for p := range k.policies {
			for _, x := range p.ingressNames {
				key := named{p, Port{Name: x.name, Protocol: x.protocol}}
				has[key] = has[key] || len(x.resolve(k.ports)) > 0
			}
		}
	}
	for name, p := range b.policies {
		if len(p.problems) > 0 {
			b.Problems[name] = slices.Clone(p.problems)
		}
	}
	for of, found := range has {
		if !found {
			b.Problems[of.name] = append(b.Problems[of.name], fmt.Sprintf("no selected pod has a port with the name %q and the protocol of the rule, so the rule allows nothing", of.Port.Name))
		}
	}
}

// sum returns a checksum of the entries, which does not depend on their order.
func (b *compilation) sum() (sum uint32) {
	add := func(text []byte) {
		h := fnv.New32a()
		h.Write(text)
		sum += h.Sum32()
	}
	var buffer []byte
	for k, n := range b.Identities {
		a := k.Prefix.Addr().As16()
		buffer = append(append(buffer[:0], a[:]...), byte(k.Prefix.Bits()))
		for _, v := range []uint32{k.VRF, n.Pods, n.Block} {
			buffer = binary.LittleEndian.AppendUint32(buffer, v)
		}
		add(buffer)
	}
	for a := range b.Allows {
		buffer = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(buffer[:0], a.Group), a.Identity)
		buffer = strconv.AppendBool(binary.LittleEndian.AppendUint16(append(buffer, a.Protocol, a.PortBits), a.Port), a.Egress)
		add(buffer)
	}
	return sum
}
