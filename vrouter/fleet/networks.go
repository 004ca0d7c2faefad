package fleet

import (
	"context"
	"reflect"
	"slices"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// AddNetwork adds a network. It allocates the id and the VNI if they are 0. If an
// identical network exists, it returns that network.
func (f *Fleet) AddNetwork(ctx context.Context, n model.Network) (model.Network, error) {
	var made model.Network
	err := f.Change(ctx, exactly(Need{Networks: []string{n.Name}}), func(v *View) (store.Commit, error) {
		var err error
		if made, err = v.number(n); err != nil {
			return store.Commit{}, err
		}
		if is, ok := v.networks[n.Name]; ok {
			if reflect.DeepEqual(fillFrom(is, n), is) {
				made = is
				return store.Commit{}, nil
			}
			return store.Commit{}, refuse(Exists, "network %q already exists; choose another name, or change the network with `vrouter network set`", n.Name)
		}
		return v.putNetwork(made)
	})
	return made, err
}

// fillFrom fills the id and the VNI of a network, if they are 0, from another
// network, and sets the defaults.
func fillFrom(is, wanted model.Network) model.Network {
	if wanted.ID == 0 {
		wanted.ID = is.ID
	}
	if wanted.VNI == 0 {
		wanted.VNI = is.VNI
	}
	return model.State{Networks: []model.Network{wanted}}.WithDefaults().Networks[0]
}

// number allocates the smallest free id, and a VNI.
func (v *View) number(n model.Network) (model.Network, error) {
	ids, vnis := map[uint32]bool{}, map[uint32]bool{}
	for _, o := range v.networks {
		if o.Name != n.Name {
			ids[o.ID], vnis[o.VNI] = true, true
		}
	}
	for id := uint32(1); n.ID == 0; id++ {
		switch {
		case id > model.MaxNetworkID:
			return n, refuse(Full, "add network %q: all %d ids are in use; delete networks", n.Name, model.MaxNetworkID)
		case !ids[id]:
			n.ID = id
		}
	}
	for vni := n.ID; n.VNI == 0; vni++ {
		if !vnis[vni] {
			n.VNI = vni
		}
	}
	return fillFrom(n, n), nil
}

func (v *View) putNetwork(n model.Network) (store.Commit, error) {
	d := v.putChecked(inNetworks+n.Name, n, v.nearNetwork(n), func(s model.State) model.State {
		s.Networks = withElement(s.Networks, n, func(o model.Network) bool { return o.Name == n.Name })
		return s
	}).withinNetworks(append(v.overlapping(n), n.Name))
	return d.commit, d.refused
}

// withElement returns a copy of all with e. e replaces the first element for which
// matches returns true. If there is none, e is appended.
func withElement[E any](all []E, e E, matches func(E) bool) []E {
	all = slices.Clone(all)
	for i := range all {
		if matches(all[i]) {
			all[i] = e
			return all
		}
	}
	return append(all, e)
}

// UpdateNetwork changes a network by calling change. If the network has host ports, it also
// reads the ports of the networks that overlap with it; see View.overlapping.
func (f *Fleet) UpdateNetwork(ctx context.Context, name string, change func(*model.Network) error) (made model.Network, err error) {
	need := exactly(Need{Networks: []string{name}})
	for {
		var missed []string // other networks whose ports must be read first
		err = f.Change(ctx, need, func(v *View) (store.Commit, error) {
			is, ok := v.networks[name]
			if !ok {
				return store.Commit{}, missing("network", "networks", name, v.networks)
			}
			made, missed = is, nil
			if err := change(&made); err != nil {
				return store.Commit{}, err
			}
			if made.Name != name || made.ID != is.ID {
				return store.Commit{}, refuse(Invalid, "network %q: its name and id cannot change; delete it and create another", name)
			}
			if v.part && slices.ContainsFunc(v.members[name], func(p *model.CompactPort) bool { return p.Attach.Host }) {
				missed = slices.DeleteFunc(v.overlapping(made), func(o string) bool { return slices.Contains(need.Networks, o) })
			}
			if len(missed) > 0 {
				return store.Commit{}, nil
			}
			return v.putNetwork(made)
		})
		if err != nil || len(missed) == 0 {
			return made, err
		}
		need.Networks = append(need.Networks, missed...)
	}
}

// DeleteNetwork deletes a network that has no ports. The ports that connect nodes because of
// node_access do not count: it deletes them first.
func (f *Fleet) DeleteNetwork(ctx context.Context, name string) error {
	for left := true; left; {
		err := f.Change(ctx, exactly(Need{Networks: []string{name}}), func(v *View) (store.Commit, error) {
			if _, ok := v.networks[name]; !ok {
				return store.Commit{}, missing("network", "networks", name, v.networks)
			}
			var free []model.Port
			for _, p := range v.members[name] {
				if p.Origin == model.NodeAccess {
					free = append(free, p.Port())
				}
			}
			if n := len(v.members[name]); n > len(free) {
				return store.Commit{}, refuse(InUse, "delete network %q: it has %d ports, %s; delete them first", name, n, examples(v.members[name]))
			}
			if n := len(v.routes[name]); n > 0 {
				return store.Commit{}, refuse(InUse, "delete network %q: it has %d static routes; delete them first", name, n)
			}
			for _, g := range sorted(v.gateways) {
				if _, serves := g.Network(name); serves {
					return store.Commit{}, refuse(InUse, "delete network %q: gateway %q serves it; remove it from the gateway first", name, g.Name)
				}
			}
			if left = len(free) > 0; left {
				return v.releaseSome(free, f.store.MaxKeys())
			}
			return v.draft().object().within(inMACs + name + "/").delete(inNetworks + name).commit, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
