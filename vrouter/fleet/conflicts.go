package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// storedPort is a port as the store has it.
//
// Two stored ports conflict if they have the same name, or the same MAC or address in one
// network. vrouter does not write such ports, but the store lets a node write any
// port under the node's keys. Every reader then uses the older port and ignores the newer
// port, so that all readers have the same ports.
//
// The age of a port is the age of its key. The key contains the MAC and the addresses of the
// port. So if a port gets other addresses, it counts as a new port.
//
// A copy that lacks the ports of some networks cannot see that two networks have ports with
// one name. That does no harm, since only commands use the name of a port on another node.
type storedPort struct {
	model.CompactPort
	created  int64 // revision of the commit that created the port's key
	revision int64 // of the commit that wrote the key
}

// name returns the port's name; "": p is nil.
func (p *storedPort) name() string {
	if p == nil {
		return ""
	}
	return p.Name
}

// hasKey reports whether key is the key of p.
func (p *storedPort) hasKey(key string) bool {
	port := p.Port()
	return hasKey(&port, key)
}

// compare orders ports by age.
func (p *storedPort) compare(o *storedPort) int {
	order := cmp.Or(cmp.Compare(p.created, o.created), model.ComparePorts(&p.CompactPort, &o.CompactPort))
	if order == 0 { // only ports that a node wrote without vrouter
		order = cmp.Compare(portKey(p.Port()), portKey(o.Port()))
	}
	return order
}

// dropKey removes the port that is stored under a key.
func (v *View) dropKey(key string, t *Touched) {
	delete(v.ignored, key)
	if p := v.ports[portOfKey(key)]; p != nil && p.hasKey(key) {
		v.dropPort(p.Name, t)
		v.freed = true
	}
}

// conflicts returns the names of the used ports that conflict with a port. conflict
// describes the last of them.
func (v *View) conflicts(p *model.CompactPort) (names []string, conflict string) {
	add := func(name, what string) {
		if !slices.Contains(names, name) {
			names, conflict = append(names, name), what
		}
	}
	if v.ports[p.Name] != nil {
		add(p.Name, "the name")
	}
	if o := v.index.get(macOf(p.Network, p.MAC)); o != nil {
		add(o.Name, "the MAC "+p.MAC.String())
	}
	for _, a := range p.Addresses() {
		if o := v.index.get(addressOf(p.Network, a)); o != nil {
			add(o.Name, "the address "+a.String())
		}
	}
	return names, conflict
}

// explain returns the reason why a port is ignored; nil: no used port conflicts with it.
func (v *View) explain(p *model.CompactPort) error {
	names, what := v.conflicts(p)
	if len(names) == 0 {
		return nil
	}
	name := names[len(names)-1]
	return fmt.Errorf("port %q of node %q has %s of the older port %q of node %q", p.Name, p.Node, what, name, v.ports[name].Node)
}

// resolve adds the ports in v.added. If ports conflict, it uses the oldest port and
// ignores the others. A node can write very many ports that are ignored, so resolve checks
// the ignored ports again only if a used port was removed.
func (v *View) resolve(t *Touched) {
	all := v.added
	v.added = nil
	addIgnored := func() {
		all = slices.AppendSeq(all, maps.Values(v.ignored))
		clear(v.ignored)
	}
	if v.freed {
		addIgnored()
	}
	for i := 0; i < len(all); i++ {
		names, _ := v.conflicts(&all[i].CompactPort)
		for _, name := range names {
			if used := v.ports[name]; all[i].compare(used) < 0 {
				all = append(all, used)
				v.dropPort(name, t)
				addIgnored()
			}
		}
	}
	v.freed = false
	if len(v.ports) == 0 {
		v.ports = make(map[string]*storedPort, len(all))
	}
	v.index.grow(2 * len(all)) // a MAC and an address of each
	slices.SortFunc(all, (*storedPort).compare)
	for _, p := range all {
		if names, _ := v.conflicts(&p.CompactPort); len(names) > 0 {
			v.ignored[portKey(p.Port())] = p
		} else {
			v.insertPort(p, t)
		}
	}
}

// overwrite lets a commit replace index keys that belong to no port. vrouter writes a port
// and its index keys in one commit. But a node's role also lets the node write an index key
// without a port, and such a key must not reserve a name or an address. found has the
// revisions of the keys because of which the store refused earlier attempts of the commit.
// If the copy may lack the port of such a key, the commit fails if a port is newer than the
// copy. A copy that lacks ports overwrites nothing.
func (v *View) overwrite(c *store.Commit, found map[string]int64) {
	if v.part {
		return
	}
	for key, revision := range c.Exact {
		at := found[key]
		if revision != 0 || at == 0 || !isUnique(key) || v.isUsed(key) {
			continue
		}
		c.Exact[key] = at
		if at > v.revision {
			if c.Ranges == nil {
				c.Ranges = map[string]int64{}
			}
			c.Ranges[inPorts] = v.revision
		}
	}
}

// isUsed reports whether an index key belongs to a port, which may be an ignored port.
func (v *View) isUsed(index string) bool {
	has := func(p model.Port) bool { return slices.Contains(uniqueKeys(p), index) }
	kind, rest, _ := strings.Cut(strings.TrimPrefix(index, store.Unique), "/")
	network, value, _ := strings.Cut(rest, "/")
	name := rest
	switch store.Unique + kind + "/" {
	case inAddresses:
		a, _ := netip.ParseAddr(value)
		name = v.index.get(addressOf(network, a)).name()
	case inMACs:
		if m, err := model.ParseMAC(value); err == nil {
			name = v.index.get(macOf(network, m)).name()
		}
	}
	if p := v.ports[name]; p != nil && has(p.Port()) {
		return true
	}
	for _, p := range v.ignored {
		if has(p.Port()) {
			return true
		}
	}
	return false
}
