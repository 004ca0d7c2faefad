package agent

import (
	"reflect"
	"slices"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// desired is the desired state of this node: its slice of the fleet's state, with
// the ids of objects. It is immutable.
type desired struct {
	node  string
	state model.State // with defaults filled in
	ids   *fib.IDs
	ports []model.Port   // this node's
	named map[string]int // index in ports by name
}

// newDesired makes the desired state, without the leaving ports: those are deleted
// here but still in the store.
func newDesired(node string, slice model.State, ids *fib.IDs, leaving ...string) *desired {
	d := &desired{node: node, state: slice.WithDefaults(), ids: ids, named: map[string]int{}}
	if len(leaving) > 0 {
		d.state.Ports = slices.DeleteFunc(d.state.Ports, func(p model.Port) bool { return slices.Contains(leaving, p.Name) })
	}
	for _, p := range d.state.Ports {
		if p.Node == node {
			d.named[p.Name] = len(d.ports)
			d.ports = append(d.ports, p)
		}
	}
	return d
}

// equal reports whether two desired states are equal.
func (d *desired) equal(o *desired) bool { return reflect.DeepEqual(d.state, o.state) }

// hasNode reports whether the state has this node.
func (d *desired) hasNode() bool {
	_, ok := d.self()
	return ok
}

func (d *desired) self() (model.Node, bool) { return d.state.Node(d.node) }

// isEmpty reports whether the state has no nodes and no networks.
func (d *desired) isEmpty() bool { return len(d.state.Nodes) == 0 && len(d.state.Networks) == 0 }

// port finds a port of this node by name.
func (d *desired) port(name string) (p model.Port, has bool) {
	i, has := d.named[name]
	if has {
		p = d.ports[i]
	}
	return p, has
}

func (d *desired) network(name string) (model.Network, bool) { return d.state.Network(name) }

// networks are the names of the state's networks.
func (d *desired) networks() map[string]bool {
	all := make(map[string]bool, len(d.state.Networks))
	for _, n := range d.state.Networks {
		all[n.Name] = true
	}
	return all
}
