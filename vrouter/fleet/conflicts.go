package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"windtunnel/vrouter/model"
)

// storedPort is a port as the store has it.
//
// Two stored ports conflict if they have the same name, or the same MAC or address in one
// network. vrouter does not write such ports, but the store lets a node write any
// port under the node's keys. Every reader then uses the older port and ignores the newer
// port, so that all readers have the same ports.
type storedPort struct {
	port model.Port
	place
	conflict error // why the port is ignored; nil: it is used
}

// place is the key of a port in the store.
type place struct {
	key     string
	created int64 // revision of the commit that created the key
}

// keyFor returns the key under which to write a port.
func (v *View) keyFor(p model.Port) string {
	if v.schema.Version == flatSchema {
		return flatKey(p)
	}
	return portKey(p)
}

// dropKey removes the port that is stored under a key.
func (v *View) dropKey(key string, t *Touched) {
	delete(v.ignored, key)
	if name := path.Base(key); v.places[name].key == key {
		v.dropPort(name, t)
	}
}

// conflicts returns the names of the used ports that conflict with a port. conflict
// describes the last of them.
func (v *View) conflicts(p model.Port) (names []string, conflict error) {
	add := func(name, what string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
			conflict = fmt.Errorf("port %q of node %q has %s of the older port %q of node %q", p.Name, p.Node, what, name, v.ports[name].Node)
		}
	}
	if v.ports[p.Name] != nil {
		add(p.Name, "the name")
	}
	add(v.macs[p.Network][p.MAC], "the MAC "+p.MAC.String())
	for _, a := range p.IPs {
		add(v.owners[p.Network][a], "the address "+a.String())
	}
	return names, conflict
}

// resolve adds ports, and checks again all ports that are ignored. If ports conflict, it
// uses the oldest port and ignores the others.
func (v *View) resolve(t *Touched, added ...storedPort) {
	if len(v.ignored) == 0 && len(added) == 1 {
		if names, _ := v.conflicts(added[0].port); len(names) == 0 {
			v.insertPort(added[0].port, added[0].place, t)
			return
		}
	}
	all := slices.AppendSeq(added, maps.Values(v.ignored))
	clear(v.ignored)
	for _, p := range all[:len(all):len(all)] {
		names, _ := v.conflicts(p.port)
		for _, name := range names {
			all = append(all, storedPort{*v.ports[name], v.places[name], nil})
			v.dropPort(name, t)
		}
	}
	slices.SortFunc(all, func(a, b storedPort) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.key, b.key))
	})
	for _, p := range all {
		names, conflict := v.conflicts(p.port)
		if len(names) == 0 {
			v.insertPort(p.port, p.place, t)
			continue
		}
		p.conflict = conflict
		v.ignored[p.key] = p
	}
}
