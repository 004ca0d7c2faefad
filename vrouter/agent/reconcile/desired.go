package reconcile

import (
	"cmp"
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
	model.Slice                      // valid, with defaults filled in; Ports has the ports of this node
	given       model.Slice          // the whole slice, with the parts that Slice leaves out
	omitted     []*model.CompactPort // ports of given that Slice leaves out
	wrong       error                // reason why Slice leaves out parts of given; nil: Slice has all parts
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
		slice.All = slices.DeleteFunc(slices.Clone(slice.All), func(p *model.CompactPort) bool { return p.Node == node && slices.Contains(leaving, p.Name) })
		slice.Hops = maps.Clone(slice.Hops)
		maps.DeleteFunc(slice.Hops, func(name string, _ *model.CompactPort) bool { return slices.Contains(leaving, name) })
	}
	d := &Desired{Node: node, given: slice, ids: ids}
	check, known := slice.All, []model.Port(nil)
	if former != nil && reflect.DeepEqual(slice.State, former.given.State) {
		if slices.Equal(slice.All, former.given.All) {
			return former
		}
		if former.Overfull == nil {
			check, known = d.toCheck(former)
		}
	}
	d.omit(check, known)
	d.named = make(map[string]int, len(d.Ports))
	for i, p := range d.Ports {
		d.named[p.Name] = i
	}
	return d
}

// toCheck divides the ports after a change from the state former. It returns in all the ports that
// must be checked:
//   - new and changed ports
//   - ports that former left out
//   - ports that are next hops of routes
//   - ports of this node that are attached at the same point as one of these
//
// It returns in known the other ports of this node. If no port of this node differs from former,
// known is nil, and d.Ports is former.Ports.
func (d *Desired) toCheck(former *Desired) (all []*model.CompactPort, known []model.Port) {
	check := map[*model.CompactPort]bool{}
	different := map[string]bool{} // ports of this node, by name
	differs := func(p *model.CompactPort) {
		if p.Node == d.Node {
			different[p.Name] = true
		}
	}
	model.DiffPorts(former.given.All, d.given.All, func(was, is *model.CompactPort) {
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
	if len(different) == 0 {
		d.Ports = former.Ports
	} else {
		known = d.known(former, different, check)
	}
	return slices.SortedFunc(maps.Keys(check), model.ComparePorts), known
}

// known returns the ports of this node that are valid in the state former and need no check. A
// port that is attached at the same point as a port in check needs a check: known adds it to check.
// different has the names of the ports that differ from former.
func (d *Desired) known(former *Desired, different map[string]bool, check map[*model.CompactPort]bool) []model.Port {
	points := map[model.AttachPoint]bool{}
	for c := range check {
		p := c.Port()
		if p.Node == d.Node {
			different[p.Name] = true
		}
		if at, attached := p.AttachPoint(); attached {
			points[at] = true
		}
	}
	known := make([]model.Port, 0, len(former.Ports)+len(check)) // capacity for the ports of check, which merged adds
	for i := range former.Ports {
		p := &former.Ports[i]
		if different[p.Name] {
			continue
		}
		if at, _ := p.AttachPoint(); !points[at] {
			known = append(known, *p)
		} else if at, has := slices.BinarySearchFunc(d.given.All, &model.CompactPort{Name: p.Name, Place: &model.Place{Network: p.Network, Node: p.Node}}, model.ComparePorts); has {
			check[d.given.All[at]] = true
		}
	}
	return known
}

// omit sets the valid slice: the given slice without the parts that are not valid. It checks
// the ports in check. known are the valid ports of this node that are not in check. omit
// does not check how ports on other nodes are attached, because those nodes check it.
func (d *Desired) omit(check []*model.CompactPort, known []model.Port) {
	state := model.Slice{State: d.given.State, All: check}.Whole()
	for i := range state.Ports {
		if p := &state.Ports[i]; p.Node != d.Node {
			p.Attach = model.Attachment{}
		}
	}
	state, d.wrong = state.Sound()
	valid := make(map[string]bool, len(state.Ports))
	var local []model.Port
	for _, p := range state.Ports {
		valid[p.Name] = true
		if p.Node == d.Node {
			local = append(local, p)
		}
	}
	if d.Ports == nil {
		d.Ports = merged(known, local)
	}
	omitted := map[*model.CompactPort]bool{}
	for _, p := range check {
		if !valid[p.Name] {
			d.omitted = append(d.omitted, p)
			omitted[p] = true
		}
	}
	state.Ports = d.Ports
	d.Slice = model.Slice{State: state, All: d.given.All, Hops: d.given.Hops}
	if len(omitted) > 0 {
		d.All = slices.DeleteFunc(slices.Clone(d.All), func(p *model.CompactPort) bool { return omitted[p] })
	}
}

// merged returns the ports of two lists of this node as one list. All three lists have the order of ComparePorts. merged can
// overwrite a.
func merged(a, b []model.Port) []model.Port {
	n := len(a)
	all := slices.Grow(a, len(b))[:n+len(b)]
	for i := len(b) - 1; i >= 0; i-- { // from the end of the list, so that each port of a is moved at most once
		at, _ := slices.BinarySearchFunc(a[:n], &b[i], func(q model.Port, p *model.Port) int {
			return cmp.Or(cmp.Compare(q.Network, p.Network), cmp.Compare(q.Name, p.Name))
		})
		copy(all[at+i+1:], a[at:n])
		all[at+i], n = b[i], at
	}
	return all
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
