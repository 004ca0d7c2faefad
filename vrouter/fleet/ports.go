package fleet

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// AddPort allocates a port's addresses and adds it to the fleet. If an identical
// port exists, AddPort returns that port and isNew is false.
func (f *Fleet) AddPort(ctx context.Context, r model.PortRequest) (port model.Port, isNew bool, err error) {
	defer f.first(place{r.Node, r.Network})()
	attempt := 0
	release := func() { f.claims.release(r.Network, port.Addresses()) }
	err = f.Change(ctx, Need{Networks: []string{r.Network}, Nodes: []string{r.Node}}, func(v *View) (c store.Commit, err error) {
		release()
		f.claims.choose(r.Network, func(claimed map[netip.Addr]bool) []netip.Addr {
			port, c, err = v.addPort(r, choice{candidates(attempt), claimed})
			return port.Addresses()
		})
		isNew = len(c.Put) > 0
		attempt++
		return c, err
	})
	release()
	return port, isNew, err
}

// choice restricts the choice of free addresses.
type choice struct {
	spread  int // number of next free addresses to choose from at random
	claimed map[netip.Addr]bool
}

// candidates returns the number of free addresses from which an attempt chooses one at
// random. The first two attempts take the next free address: if the store refuses the first
// attempt because of an index key without a port, the second attempt overwrites that key.
// After each further conflict the number doubles, up to 4096.
func candidates(attempt int) int {
	if attempt < 2 {
		return 1
	}
	return 2 << min(attempt, 11)
}

func (v *View) addPort(r model.PortRequest, how choice) (model.Port, store.Commit, error) {
	n, ok := v.networks[r.Network]
	if !ok {
		return model.Port{}, store.Commit{}, missing("network", "networks", r.Network, v.networks)
	}
	p, err := v.complete(n, r, how)
	if err != nil {
		return model.Port{}, store.Commit{}, err
	}
	if is := v.ports[p.Name]; is != nil {
		if matches(is.Port(), p, r) {
			return is.Port(), store.Commit{}, nil
		}
		return model.Port{}, store.Commit{}, refuse(Exists, "port %q already exists, on node %s in network %s; choose another name", p.Name, is.Node, is.Network)
	}
	replaced, err := v.replaced(r)
	if err != nil {
		return model.Port{}, store.Commit{}, err
	}
	if err := v.fits(p, replaced...); err != nil {
		if v.conflictsExcept(p, replaced) {
			err = &Refusal{Exists, err}
		}
		return model.Port{}, store.Commit{}, err
	}
	d := v.draft().exact(portKey(p))
	for _, o := range replaced {
		d.release(o)
	}
	d.claim(p)
	if len(r.IPs) == 0 && len(p.IPs) > 0 {
		d.put(placeOf(p).last(), p.IPs)
	}
	return p, d.commit, nil
}

// conflictsExcept reports whether a port has the name, the MAC or an address of a port that
// is not in replaced.
func (v *View) conflictsExcept(p model.Port, replaced []model.Port) bool {
	c := p.Compact(&model.Place{Network: p.Network, Node: p.Node})
	names, _ := v.conflicts(&c)
	return slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(replaced, func(r model.Port) bool { return r.Name == name })
	})
}

// replaced returns the ports that a request replaces.
func (v *View) replaced(r model.PortRequest) (all []model.Port, err error) {
	for _, name := range r.Replaces {
		p := v.ports[name]
		if p == nil {
			return nil, missing("port", "ports", name, v.ports)
		}
		if p.Origin != r.Origin {
			return nil, refuse(Exists, "port %q was created by %v and cannot be replaced", name, p.Origin)
		}
		all = append(all, p.Port())
	}
	return all, nil
}

// matches reports whether a port is identical to the requested port. Addresses
// and a MAC that were not requested may differ.
func matches(current, wanted model.Port, r model.PortRequest) bool {
	if len(r.IPs) == 0 {
		wanted.IPs = current.IPs
	}
	if wanted.Attach.Host && len(r.Floating) == 0 {
		wanted.Floating, wanted.NATSlot = current.Floating, current.NATSlot
	}
	if r.MAC.IsZero() {
		wanted.MAC = current.MAC
	}
	return withInterface(current).Equal(withInterface(wanted))
}

// withInterface fills in the default name of the workload's device.
func withInterface(p model.Port) model.Port {
	if p.Attach.Netns != "" && p.Attach.Interface == "" {
		p.Attach.Interface = model.DefaultInterface
	}
	return p
}

// claim writes a port with its unique keys. The commit fails if another port
// has one of these keys, unless it deletes that port.
func (d *draft) claim(p model.Port) *draft {
	d.list(placeOf(p))
	for _, e := range portEntries(&p, true) {
		d.commit.Put[e.key] = e.value
	}
	for _, key := range uniqueKeys(p) {
		if at := slices.Index(d.commit.Delete, key); at >= 0 {
			d.commit.Delete = slices.Delete(d.commit.Delete, at, at+1)
		} else {
			d.commit.Exact[key] = 0
		}
	}
	return d
}

// uniqueKeys returns the keys that only one port can have. The first is the
// name's.
func uniqueKeys(p model.Port) []string {
	keys := []string{inNames + p.Name, macKey(p.Network, p.MAC)}
	for _, a := range p.Addresses() {
		keys = append(keys, addressKey(p.Network, a))
	}
	return keys
}

// fits refuses a port that makes the state invalid. It validates only the objects
// that the port can contradict.
func (v *View) fits(p model.Port, replaced ...model.Port) error {
	with := func(s model.State) model.State {
		s.Ports = append(slices.Clip(s.Ports), p)
		return s
	}
	near := v.nearPort(p, replaced)
	if valid(with(near.state())) == nil {
		return nil
	}
	s := near.state()
	s.Policies = v.Policies() // an error suggests the name of a policy
	return validWith(s, with)
}

// changePort is Change for an existing port.
func (f *Fleet) changePort(ctx context.Context, name string, decide func(*View) (store.Commit, error)) error {
	need, err := f.needOf(ctx, name)
	if err != nil {
		return err
	}
	return f.Change(ctx, need, decide)
}

// UpdatePort changes a port by calling change. It can set the attachment, the
// policies, the allowed sources and the node.
func (f *Fleet) UpdatePort(ctx context.Context, name string, change func(*model.Port) error) (model.Port, error) {
	var made model.Port
	err := f.changePort(ctx, name, func(v *View) (store.Commit, error) {
		is := v.ports[name]
		if is == nil {
			return store.Commit{}, missing("port", "ports", name, v.ports)
		}
		made = is.Port()
		if err := change(&made); err != nil {
			return store.Commit{}, err
		}
		if made.Equal(is.Port()) {
			return store.Commit{}, nil
		}
		if made.Name != is.Name || made.Network != is.Network || made.MAC != is.MAC || !slices.Equal(made.Addresses(), is.Addresses()) {
			return store.Commit{}, refuse(Invalid, "port %q: its name, network and addresses cannot change; delete it and add another", name)
		}
		if err := v.fits(made); err != nil {
			return store.Commit{}, err
		}
		key, next := portKey(is.Port()), portKey(made)
		d := v.draft().exact(key, next)
		if next != key { // the port moves to another node
			d.list(placeOf(made)).delete(key)
			d.commit.Put[inNames+name] = []byte(next)
		}
		return d.put(next, made).commit, nil
	})
	return made, err
}

// DeletePort deletes a port and frees its addresses. It returns the deleted port. allow may
// refuse the deletion; nil: it is allowed.
func (f *Fleet) DeletePort(ctx context.Context, name string, allow func(model.Port) error) (model.Port, error) {
	var was model.Port
	err := f.changePort(ctx, name, func(v *View) (store.Commit, error) {
		is := v.ports[name]
		if is == nil {
			return store.Commit{}, missing("port", "ports", name, v.ports)
		}
		if was = is.Port(); allow != nil {
			if err := allow(was); err != nil {
				return store.Commit{}, err
			}
		}
		if err := CheckUnused(name, maps.Values(v.routes[was.Network])); err != nil {
			return store.Commit{}, err
		}
		return v.draft().release(was).commit, nil
	})
	return was, err
}

// release deletes a port with its unique keys.
func (d *draft) release(p model.Port) *draft {
	key := portKey(p)
	return d.exact(key).delete(key).delete(uniqueKeys(p)...)
}
