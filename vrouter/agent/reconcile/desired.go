package reconcile

import (
	"reflect"
	"slices"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Desired is the desired state of this node: its slice of the fleet's state, with
// the ids of objects. It is immutable.
type Desired struct {
	Node  string
	State model.State // with defaults filled in
	given model.State // the whole slice, with the parts that State leaves out
	wrong error       // reason why State leaves out parts of given; nil: State has all parts
	// Overfull has the errors of the networks that do not fit, by name.
	Overfull map[string]error
	ids      *fib.IDs
	Ports    []model.Port   // the ports of this node
	named    map[string]int // index in ports by name
}

// NewDesired makes the desired state. leaving: ports that are deleted on this node but are
// still in the store. NewDesired leaves out these ports and all parts that are not valid.
func NewDesired(node string, slice model.State, ids *fib.IDs, leaving ...string) *Desired {
	if len(leaving) > 0 {
		slice.Ports = slices.DeleteFunc(slices.Clone(slice.Ports), func(p model.Port) bool { return slices.Contains(leaving, p.Name) })
	}
	sound, wrong := slice.Sound()
	return desiredOf(node, slice, sound, wrong, ids)
}

// desiredOf makes the desired state from part, the valid part of the slice given.
func desiredOf(node string, given, part model.State, wrong error, ids *fib.IDs) *Desired {
	d := &Desired{Node: node, State: part, given: given, wrong: wrong, ids: ids, named: map[string]int{}}
	for _, p := range d.State.Ports {
		if p.Node == node {
			d.named[p.Name] = len(d.Ports)
			d.Ports = append(d.Ports, p)
		}
	}
	return d
}

// Equal reports whether two desired states are equal.
func (d *Desired) Equal(o *Desired) bool { return reflect.DeepEqual(d.given, o.given) }

// HasNode reports whether the state has this node.
func (d *Desired) HasNode() bool {
	_, ok := d.Self()
	return ok
}

// Self is this node.
func (d *Desired) Self() (model.Node, bool) { return d.State.Node(d.Node) }

// isEmpty reports whether the state has no nodes and no networks.
func (d *Desired) isEmpty() bool { return len(d.State.Nodes) == 0 && len(d.State.Networks) == 0 }

// Port finds a port of this node by name.
func (d *Desired) Port(name string) (p model.Port, has bool) {
	i, has := d.named[name]
	if has {
		p = d.Ports[i]
	}
	return p, has
}

// Network finds a network by name.
func (d *Desired) Network(name string) (model.Network, bool) { return d.State.Network(name) }

// Networks are the names of the state's networks.
func (d *Desired) Networks() map[string]bool {
	all := make(map[string]bool, len(d.State.Networks))
	for _, n := range d.State.Networks {
		all[n.Name] = true
	}
	return all
}
