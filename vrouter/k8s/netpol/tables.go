package netpol

import (
	"net/netip"
	"slices"
	"strings"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

// tables are the maps of a result. They count the users of identities and groups, so that they can change with
// single endpoints. A change of policies, namespaces or ipBlocks needs new tables.
type tables struct {
	c          *Compiler
	grouping   *fib.Grouping
	shared     shared               // with the last Result
	identities map[uint32]*identity // by number
	ofRegions  map[*region]*identity
	byPeer     map[*peer][]*identity
	named      map[Port][]*identity       // identities of pods with a named port; the number is 0
	groups     map[string]*group          // by text
	written    map[string]endpointEntries // by endpoint
	unknown    map[string]bool            // local endpoints whose pods are not known
}

// shared says which maps the tables and the last Result have in common. These are copied before a change.
type shared struct{ grouping, identities, allows, groups bool }

// identity is a set of peers that select the same addresses: either peers that select pods, or ipBlocks. An
// address can have one identity of each kind. Egress rules with named ports depend on the pod at the address, so
// the identity of pods also has the pods' ports that such rules name, and the ipBlocks of these rules.
type identity struct {
	text   string
	number uint32
	users  int // endpoints, or the region
	peers  map[*peer]bool
	blocks []*peer // of egress rules with named ports
	ports  []Port
}

// group is a set of policies that select the same local endpoints.
type group struct {
	fib.Group
	text     string
	users    int // endpoints
	policies []*policy
	ports    []Port // of the pods, if ingress rules have named ports
}

// endpointEntries is what the tables have for an endpoint.
type endpointEntries struct {
	entries []placed
	group   *group // nil: none
	closed  bool   // the endpoint is local, and its pod is not known
}

type placed struct {
	key   fib.RouteKey
	id    *identity // of the pod
	value layout.Identity
}

func newTables(c *Compiler) *tables {
	return &tables{
		c: c, grouping: &fib.Grouping{Sets: fib.Sets{Identities: map[fib.RouteKey]layout.Identity{}, Allows: map[fib.Allow]bool{}}, Groups: map[string]fib.Group{}},
		identities: map[uint32]*identity{}, ofRegions: map[*region]*identity{}, byPeer: map[*peer][]*identity{}, named: map[Port][]*identity{},
		groups: map[string]*group{}, written: map[string]endpointEntries{}, unknown: map[string]bool{},
	}
}

// update computes the entries of endpoints again. It uses the new identities and groups before it drops the old
// ones, so that those that stay keep their entries.
func (t *tables) update(endpoints map[string]bool) {
	type change struct {
		name    string
		was, is endpointEntries
	}
	all := make([]change, 0, len(endpoints))
	for name := range endpoints {
		was, is := t.written[name], t.entriesOf(name)
		if was.equal(is) {
			t.release(is)
		} else {
			all = append(all, change{name, was, is})
		}
	}
	for _, c := range all {
		for _, e := range c.was.entries {
			t.reset(e.key)
		}
	}
	for _, c := range all {
		for _, e := range c.is.entries {
			t.set(e.key, e.value)
		}
		t.setGroup(c.name, c.is)
		if t.written[c.name] = c.is; c.is.equal(endpointEntries{}) {
			delete(t.written, c.name)
		}
		t.release(c.was)
	}
}

func (p endpointEntries) equal(o endpointEntries) bool {
	return slices.Equal(p.entries, o.entries) && p.group == o.group && p.closed == o.closed
}

// entriesOf returns the entries of an endpoint, and counts the endpoint as a user.
func (t *tables) entriesOf(name string) (p endpointEntries) {
	e := t.c.endpoints[name]
	if e == nil || t.c.local[e.VRF] == 0 || e.Pod == (Name{}) {
		return p
	}
	k := t.c.class(e)
	if k == nil {
		p.closed = e.Local
		return p
	}
	for i, r := range t.c.regionsOf(e) {
		if id := t.podsIdentity(k, r); id != nil {
			id.users++
			value := layout.Identity{Pods: id.number}
			if r != nil {
				value.Block = t.ofRegions[r].number
			}
			p.entries = append(p.entries, placed{fib.RouteKey{VRF: e.VRF, Prefix: netip.PrefixFrom(e.IPs[i], e.IPs[i].BitLen())}, id, value})
		}
	}
	if e.Local && len(k.policies) > 0 {
		p.group = t.group(k)
		p.group.users++
	}
	return p
}

// release drops the identities and the group of former entries if they have no other user.
func (t *tables) release(p endpointEntries) {
	for _, e := range p.entries {
		if e.id.users--; e.id.users == 0 {
			t.drop(e.id)
		}
	}
	if g := p.group; g != nil {
		if g.users--; g.users == 0 {
			t.allowGroup(g, false)
			delete(t.groups, g.text)
			t.c.numbers.free(g.text)
		}
	}
}

// podsIdentity returns the identity of the pods of a class in a region (nil: in no ipBlock); nil: no rule depends
// on it.
func (t *tables) podsIdentity(k *class, r *region) *identity {
	if k.tables != t {
		k.tables, k.identities = t, map[*region]*identity{}
	}
	if id := k.identities[r]; id != nil && id.users > 0 {
		return id
	}
	var ports []Port
	text := k.textOfPeers()
	for _, p := range k.ports {
		if t.c.egressed[Port{Name: p.Name, Protocol: p.Protocol}] > 0 {
			ports = append(ports, p)
			text += "\x00:" + p.text()
		}
	}
	if len(k.peers)+len(ports) == 0 {
		return nil
	}
	var blocks []*peer
	if r != nil && len(ports) > 0 {
		blocks = r.named
	}
	for _, p := range blocks {
		text += "\x00" + p.text
	}
	id := t.identity(text, k.peers, blocks, ports)
	k.identities[r] = id
	return id
}

func (k *class) textOfPeers() string {
	if k.text == "" {
		var text []string
		for p := range k.peers {
			text = append(text, p.text)
		}
		slices.Sort(text)
		k.text = "pods\x00" + strings.Join(text, "\x00")
	}
	return k.text
}

// identity returns the identity with a text. If it is new, identity adds its entries.
func (t *tables) identity(text string, peers map[*peer]bool, blocks []*peer, ports []Port) *identity {
	number := t.c.numbers.of(text)
	if known := t.identities[number]; known != nil {
		return known
	}
	id := &identity{text: text, number: number, peers: peers, blocks: blocks, ports: ports}
	t.identities[number] = id
	for p := range peers {
		t.byPeer[p] = append(t.byPeer[p], id)
	}
	for _, p := range ports {
		name := Port{Name: p.Name, Protocol: p.Protocol}
		t.named[name] = append(t.named[name], id)
	}
	t.allowIdentity(id, true)
	return id
}

// of returns the identities of an address: any address (nil), and those of its pod and its ipBlocks.
func (t *tables) of(vrf uint32, a netip.Addr) []*identity {
	value, known := t.grouping.Identities[fib.RouteKey{VRF: vrf, Prefix: netip.PrefixFrom(a, a.BitLen())}]
	if r := t.c.regions.of(a); r != nil && !known {
		value.Block = t.ofRegions[r].number
	}
	all := []*identity{nil}
	for _, n := range []uint32{value.Pods, value.Block} {
		if id := t.identities[n]; id != nil {
			all = append(all, id)
		}
	}
	return all
}

// drop deletes an identity and its entries.
func (t *tables) drop(id *identity) {
	t.allowIdentity(id, false)
	for p := range id.peers {
		remove(t.byPeer, p, id)
	}
	for _, p := range id.ports {
		remove(t.named, Port{Name: p.Name, Protocol: p.Protocol}, id)
	}
	delete(t.identities, id.number)
	t.c.numbers.free(id.text)
}

func remove[K comparable](m map[K][]*identity, k K, id *identity) {
	if m[k] = slices.DeleteFunc(m[k], func(o *identity) bool { return o == id }); len(m[k]) == 0 {
		delete(m, k)
	}
}

// group returns the group of the pods of a class. If it is new, group adds its entries.
func (t *tables) group(k *class) *group {
	g := &group{}
	var text []string
	names := false
	for p := range k.policies {
		text = append(text, p.name.Namespace+"/"+p.name.Name)
		names = names || len(p.ingressNames) > 0
	}
	slices.Sort(text)
	if names {
		g.ports = k.ports
		for _, p := range k.ports {
			text = append(text, p.text())
		}
	}
	g.text = "group\x00" + strings.Join(text, "\x00")
	if known := t.groups[g.text]; known != nil {
		return known
	}
	g.Number = t.c.numbers.of(g.text)
	for p := range k.policies {
		g.policies = append(g.policies, p)
		g.In, g.Out = g.In || p.ingress, g.Out || p.egress
	}
	t.groups[g.text] = g
	t.allowGroup(g, true)
	return g
}

// numbers has the numbers of identities and groups by their texts. A number is derived from the text, so
// another process computes the same numbers, unless two texts have the same hash.
type numbers struct {
	known map[string]uint32
	taken map[uint32]bool // by known and freed
	freed []uint32        // since begin: the data path may still have entries with them
}

func newNumbers() numbers {
	return numbers{known: map[string]uint32{}, taken: map[uint32]bool{0: true, closed.Number: true}}
}

// begin begins a new result.
func (n *numbers) begin() {
	for _, x := range n.freed {
		delete(n.taken, x)
	}
	n.freed = nil
}

// of returns the number of a text.
func (n *numbers) of(text string) uint32 {
	if x, known := n.known[text]; known {
		return x
	}
	x := sum([]byte(text))
	for n.taken[x] {
		x++
	}
	n.known[text], n.taken[x] = x, true
	return x
}

// free forgets the number of a text that is no longer used.
func (n *numbers) free(text string) {
	n.freed = append(n.freed, n.known[text])
	delete(n.known, text)
}
