package fleet

import (
	"context"
	"errors"
	"slices"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Need says of which ports a reader needs to know. All other objects are in every View.
type Need struct {
	All      bool
	Networks []string // the ports of these networks
	Nodes    []string // the ports on these nodes
	Around   string   // name of a node: the ports of all networks that have ports on it; "": none
	exact    bool     // the view must have all changes up to its revision, also those of ports
}

// exactly returns a need for a commit that depends on ranges of keys of ports.
func exactly(n Need) Need {
	n.exact = true
	return n
}

// has reports whether the copy has the needed ports. The caller holds mu.
func (f *Fleet) has(n Need) bool {
	if !f.view.part {
		return true
	}
	if n.All || n.exact || n.Around != "" || slices.ContainsFunc(n.Nodes, func(node string) bool { return node != f.node }) ||
		slices.ContainsFunc(n.Networks, func(network string) bool { return f.view.listed[network][f.node] == 0 }) {
		return false
	}
	for p, created := range f.view.around(f.node) {
		if j := f.joined[p]; (slices.Contains(n.Networks, p.network) || slices.Contains(n.Nodes, p.node)) && (j == nil || j.created != created) {
			return false
		}
	}
	return true
}

// LookAt is Look for a reader that needs certain ports. If the copy does not have them, LookAt
// reads them from the store.
func (f *Fleet) LookAt(ctx context.Context, n Need, look func(*View)) error {
	has := false
	err := f.Look(ctx, func(v *View) {
		if has = f.has(n); has {
			look(v)
		}
	})
	if err != nil || has {
		return err
	}
	if err := f.refused(); err != nil {
		return err
	}
	v, err := f.readView(ctx, n)
	if err == nil {
		look(v)
	}
	return err
}

// readView reads the needed ports and all other objects from the store, at one revision.
func (f *Fleet) readView(ctx context.Context, n Need) (*View, error) {
	if n.All {
		return Read(ctx, f.store)
	}
	image, err := f.store.Read(ctx, 0, objects)
	if err != nil {
		return nil, err
	}
	v, err := newView(image)
	if err != nil {
		return nil, err
	}
	v.part = true
	if spans := v.spans(n); len(spans) > 0 {
		ports, err := f.store.Read(ctx, v.revision, spans...)
		if err != nil {
			return nil, err
		}
		v.apply(store.Changes{Put: ports.Entries})
	}
	return v, nil
}

// spans returns the spans of the needed ports.
func (v *View) spans(n Need) (all []store.Span) {
	for _, node := range n.Nodes {
		all = append(all, store.Under(inPorts+node+"/"))
	}
	places := v.around(n.Around)
	for _, network := range n.Networks {
		for node, created := range v.listed[network] {
			places[place{node, network}] = created
		}
	}
	for p := range places {
		if !slices.Contains(n.Nodes, p.node) {
			all = append(all, store.Under(p.ports()))
		}
	}
	return all
}

// needOf returns what a change of a port needs. If the copy does not have the port, needOf
// reads the port's key from the store.
func (f *Fleet) needOf(ctx context.Context, port string) (n Need, err error) {
	known := false
	err = f.Look(ctx, func(v *View) {
		if p := v.ports[port]; p != nil {
			n = Need{Networks: []string{p.Network}, Nodes: []string{p.Node}}
		}
		known = n.Nodes != nil || !v.part
	})
	if err != nil || known {
		return n, err
	}
	key := inNames + port
	image, err := f.store.Read(ctx, 0, store.Span{From: key, To: key + "\x00"})
	if err != nil || len(image.Entries) == 0 {
		return n, err
	}
	p := placeOfKey(string(image.Entries[0].Value))
	return Need{Networks: []string{p.network}, Nodes: []string{p.node}}, nil
}

// FindPort finds a port of the fleet.
func (f *Fleet) FindPort(ctx context.Context, name string) (p model.Port, known bool, err error) {
	n, err := f.needOf(ctx, name)
	if err == nil {
		err = f.LookAt(ctx, n, func(v *View) { p, known = v.Port(name) })
	}
	return p, known, err
}

// widen sets n.All if the change that failed must be decided again on a copy with all ports,
// and reports whether it must. v is the copy on which it was decided. A copy without some of the
// ports can neither explain why a state is invalid, nor whether an index key belongs to a port.
func (n *Need) widen(v *View, failed error, found map[string]int) bool {
	if !v.part || n.All {
		return false
	}
	var conflict *store.ConflictError
	if errors.As(failed, &conflict) {
		for _, key := range conflict.Keys {
			found[key]++
			n.All = n.All || isUnique(key) && found[key] > maxConflicts
		}
	} else {
		n.All = IsWhy(failed, Invalid)
	}
	return n.All
}

// maxConflicts is the number of conflicts because of one index key after which a change reads
// all ports.
const maxConflicts = 2
