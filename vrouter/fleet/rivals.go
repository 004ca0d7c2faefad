package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"windtunnel/vrouter/model"
)

// rival is a port whose name, MAC or address an older port has. The programs of
// a fleet do not write such a port. A node may, under its own keys. The older
// port keeps what it has, and each reader comes to the same result.
type rival struct {
	port model.Port
	place
	why error
}

// place is where a port is in the store.
type place struct {
	key     string
	created int64 // revision of the commit that created the key
}

// keyFor returns the key to write a port to.
func (v *View) keyFor(p model.Port) string {
	if v.schema.Version == flatSchema {
		return flatKey(p)
	}
	return portKey(p)
}

// dropKey removes the port with a key.
func (v *View) dropKey(key string, t *Touched) {
	delete(v.rivals, key)
	if name := path.Base(key); v.places[name].key == key {
		v.dropPort(name, t)
	}
}

// older returns the ports that have a port's name, MAC or addresses, and the
// reason why they exclude the port.
func (v *View) older(p model.Port) (ports []string, why error) {
	add := func(name, what string) {
		if name != "" && !slices.Contains(ports, name) {
			ports = append(ports, name)
			why = fmt.Errorf("port %q of node %q has %s of the older port %q of node %q", p.Name, p.Node, what, name, v.ports[name].Node)
		}
	}
	if v.ports[p.Name] != nil {
		add(p.Name, "the name")
	}
	add(v.macs[p.Network][p.MAC], "the MAC "+p.MAC.String())
	for _, a := range p.IPs {
		add(v.owners[p.Network][a], "the address "+a.String())
	}
	return ports, why
}

// settle adds ports. Of ports that exclude each other the oldest counts, and the
// others become rivals. Rivals get another chance.
func (v *View) settle(t *Touched, added ...rival) {
	if len(v.rivals) == 0 && len(added) == 1 {
		if ports, _ := v.older(added[0].port); len(ports) == 0 {
			v.insertPort(added[0].port, added[0].place, t)
			return
		}
	}
	all := slices.AppendSeq(added, maps.Values(v.rivals))
	clear(v.rivals)
	for _, r := range all[:len(all):len(all)] {
		ports, _ := v.older(r.port)
		for _, name := range ports {
			all = append(all, rival{*v.ports[name], v.places[name], nil})
			v.dropPort(name, t)
		}
	}
	slices.SortFunc(all, func(a, b rival) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.key, b.key))
	})
	for _, r := range all {
		ports, why := v.older(r.port)
		if len(ports) == 0 {
			v.insertPort(r.port, r.place, t)
			continue
		}
		r.why = why
		v.rivals[r.key] = r
	}
}
