package reconcile

import (
	"maps"
	"reflect"
	"slices"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Desired is the desired state of this node: its slice of the fleet's state, with
// the ids of objects. It is immutable.
type Desired struct {
	Node        string
	model.Slice               // valid, with defaults filled in; Ports has the ports of this node
	given       model.Slice   // the whole slice, with the parts that Slice leaves out
	omitted     []*model.Port // ports of given that Slice leaves out
	wrong       error         // reason why Slice leaves out parts of given; nil: Slice has all parts
	// Overfull has the errors of the networks that do not fit, by name.
	Overfull map[string]error
	ids      *fib.IDs
	named    map[string]int // index in Ports by name
}

// NewDesired makes the desired state. leaving: ports that are deleted on this node but are
// still in the store. NewDesired leaves out these ports and all parts that are not valid. No
// two ports of the slice may have the same name, or the same MAC or address in a network.
//
// former is an earlier desired state, or nil. If only ports have changed since former,
// NewDesired checks only the changed ports. If nothing has changed, it returns former.
func NewDesired(node string, slice model.Slice, ids *fib.IDs, former *Desired, leaving ...string) *Desired {
	if slice.Ports = nil; len(leaving) > 0 {
		slice.All = slices.DeleteFunc(slices.Clone(slice.All), func(p *model.Port) bool { return p.Node == node && slices.Contains(leaving, p.Name) })
		slice.Hops = maps.Clone(slice.Hops)
		maps.DeleteFunc(slice.Hops, func(name string, _ *model.Port) bool { return slices.Contains(leaving, name) })
	}
	d := &Desired{Node: node, given: slice, ids: ids, named: map[string]int{}}
	check := slice.All
	if former != nil && reflect.DeepEqual(slice.State, former.given.State) {
		if slices.Equal(slice.All, former.given.All) {
			return former
		}
		if former.Overfull == nil {
			check = d.toCheck(former)
		}
	}
	d.omit(check)
	for i, p := range d.Ports {
		d.named[p.Name] = i
	}
	return d
}

// toCheck returns the ports that must be checked after a change from the state former: the
// new and changed ports, the ports that former left out, and the next hops of
// routes. If a port of this node differs, it returns all ports of this node, because two ports
// cannot use one device. Otherwise d gets the checked ports of this node from former.
func (d *Desired) toCheck(former *Desired) []*model.Port {
	check := map[*model.Port]bool{}
	localDiffers := false
	differs := func(p *model.Port) { localDiffers = localDiffers || p.Node == d.Node }
	model.DiffPorts(former.given.All, d.given.All, func(was, is *model.Port) {
		if was != nil {
			differs(was)
		}
		if is != nil {
			differs(is)
			check[is] = true
		}
	})
	for _, p := range former.omitted {
		differs(p)
		if at, has := slices.BinarySearchFunc(d.given.All, p, model.ComparePorts); has {
			check[d.given.All[at]] = true
		}
	}
	for _, p := range d.given.Hops {
		check[p] = true
	}
	if d.Ports = former.Ports; localDiffers {
		d.Ports = nil
		for _, n := range d.given.Networks {
			for _, p := range d.given.On(n.Name, d.Node) {
				check[p] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(check), model.ComparePorts)
}

// omit sets the valid slice: the given slice without the parts that are not valid. It checks
// the ports in check. The other ports are known to be valid. The attachments of ports on other nodes are not checked: they concern these nodes.
func (d *Desired) omit(check []*model.Port) {
	state := model.Slice{State: d.given.State, All: check}.Whole()
	for i := range state.Ports {
		if p := &state.Ports[i]; p.Node != d.Node {
			p.Attach = model.Attachment{}
		}
	}
	checked := d.Ports == nil
	state, d.wrong = state.Sound()
	valid := make(map[string]bool, len(state.Ports))
	for _, p := range state.Ports {
		valid[p.Name] = true
		if checked && p.Node == d.Node {
			d.Ports = append(d.Ports, p)
		}
	}
	omitted := map[*model.Port]bool{}
	for _, p := range check {
		if !valid[p.Name] {
			d.omitted = append(d.omitted, p)
			omitted[p] = true
		}
	}
	state.Ports = d.Ports
	d.Slice = model.Slice{State: state, All: d.given.All, Hops: d.given.Hops}
	if len(omitted) > 0 {
		d.All = slices.DeleteFunc(slices.Clone(d.All), func(p *model.Port) bool { return omitted[p] })
	}
}

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
