package fleet

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// PortRequest asks for a port. What is empty is chosen.
type PortRequest struct {
	model.Port
	// From are prefixes of the network's subnets from which addresses are
	// chosen; empty: from all of them.
	From []netip.Prefix
	// Four and Six ask for an address of that family alone; neither: of each
	// that the network has a subnet of.
	Four, Six bool
	// Replaces are ports in whose place this one comes.
	Replaces []string
}

// AddPort gives a port its addresses, and makes it known to the fleet. One that
// is there already exactly so is returned as it is, and is not new.
func (f *Fleet) AddPort(ctx context.Context, r PortRequest) (port model.Port, isNew bool, err error) {
	attempt := 0
	release := func() { f.claims.release(r.Network, port.IPs) }
	err = f.Change(ctx, func(v *View) (c store.Commit, err error) {
		release()
		f.claims.choose(r.Network, func(claimed map[netip.Addr]bool) []netip.Addr {
			port, c, err = v.addPort(r, pick{spread(attempt), claimed})
			return port.IPs
		})
		isNew = len(c.Put) > 0
		attempt++
		return c, err
	})
	release()
	return port, isNew, err
}

// pick is how a free address is chosen: among so many of the next ones, and of
// those that are claimed only where no other is free.
type pick struct {
	spread  int
	claimed map[netip.Addr]bool
}

// spread is among how many of the next free addresses one is chosen at random:
// the first one is fine until others want it too.
func spread(attempt int) int {
	if attempt == 0 {
		return 1
	}
	return 4 << min(attempt, 10)
}

func (v *View) addPort(r PortRequest, how pick) (model.Port, store.Commit, error) {
	n, ok := v.networks[r.Network]
	if !ok {
		return model.Port{}, store.Commit{}, missing("network", "networks", r.Network, v.networks)
	}
	p, err := v.complete(n, r, how)
	if err != nil {
		return model.Port{}, store.Commit{}, err
	}
	if is := v.ports[p.Name]; is != nil {
		if same(*is, p, r) {
			return *is, nothing(), nil
		}
		return model.Port{}, store.Commit{}, refuse(Exists, "there is a port %q already, on node %s in network %s; choose another name", p.Name, is.Node, is.Network)
	}
	replaced, err := v.replaced(r)
	if err != nil {
		return model.Port{}, store.Commit{}, err
	}
	if err := v.fits(p, replaced...); err != nil {
		return model.Port{}, store.Commit{}, err
	}
	d := v.draft().exact(inNetworks+n.Name, inNodes+p.Node, portKey(n.Name, p.Name))
	d.within(inNodes, inGateways, inRoutes+n.Name+"/")
	for _, policy := range slices.Concat(p.Policies, n.Policies) {
		d.exact(inPolicies + policy)
	}
	for _, o := range replaced {
		d.release(o)
	}
	return p, d.claim(p).commit, nil
}

// replaced are the ports in whose place another comes.
func (v *View) replaced(r PortRequest) (all []model.Port, err error) {
	for _, name := range r.Replaces {
		p := v.ports[name]
		if p == nil {
			return nil, missing("port", "ports", name, v.ports)
		}
		if p.Origin != r.Origin {
			return nil, refuse(Exists, "port %q was made by %v", name, p.Origin)
		}
		all = append(all, *p)
	}
	return all, nil
}

// same tells whether a port is what was asked for: what was left open may be
// anything.
func same(is, wanted model.Port, r PortRequest) bool {
	if len(r.IPs) == 0 {
		wanted.IPs = is.IPs
	}
	if r.MAC.IsZero() {
		wanted.MAC = is.MAC
	}
	return named(is).Equal(named(wanted))
}

// named is a port with the name of its workload's device filled in.
func named(p model.Port) model.Port {
	if p.Attach.Netns != "" && p.Attach.Interface == "" {
		p.Attach.Interface = model.DefaultInterface
	}
	return p
}

// claim writes a port with the keys that are its own, which nobody may have but
// ports that the same change releases.
func (d *draft) claim(p model.Port) *draft {
	for _, e := range portEntries(p) {
		d.commit.Put[e.key] = e.value
	}
	for _, key := range own(p) {
		if at := slices.Index(d.commit.Delete, key); at >= 0 {
			d.commit.Delete = slices.Delete(d.commit.Delete, at, at+1)
		} else {
			d.commit.Exact[key] = 0
		}
	}
	return d
}

// own are the keys that only one port may have: its name first.
func own(p model.Port) []string {
	keys := []string{inNames + p.Name, macKey(p.Network, p.MAC)}
	for _, a := range p.IPs {
		keys = append(keys, addressKey(p.Network, a))
	}
	return keys
}

// fits refuses a port that makes the state invalid. What it could contradict is
// looked at, which is little.
func (v *View) fits(p model.Port, replaced ...model.Port) error {
	s := v.around(p)
	s.Ports = slices.DeleteFunc(s.Ports, func(o model.Port) bool {
		return slices.ContainsFunc(replaced, func(r model.Port) bool { return r.Name == o.Name })
	})
	return valid(s)
}

// around is the part of the state by which a port is judged: its network with
// its routes and gateways, and of its network's ports those that have what it
// wants, that routes lead to, and one of each node.
func (v *View) around(p model.Port) model.State {
	s := model.State{Settings: v.settings, Policies: sorted(v.policies), Routes: v.routesOf(p.Network)}
	if n, ok := v.networks[p.Network]; ok {
		s.Networks = []model.Network{n}
	}
	for _, g := range sorted(v.gateways) {
		if g = serving(g, map[string]int{p.Network: 1}); len(g.Networks) > 0 {
			s.Gateways = append(s.Gateways, g)
		}
	}
	near := map[string]bool{v.macs[p.Network][p.MAC]: true}
	for _, a := range p.IPs {
		near[v.owners[p.Network][a]] = true
	}
	for _, r := range s.Routes {
		for _, w := range r.Via {
			near[w.Port] = true
		}
	}
	nodes := map[string]bool{p.Node: true}
	for _, o := range v.members[p.Network] {
		here := o.Node == p.Node && o.Attach != (model.Attachment{}) && o.Attach == p.Attach
		if !nodes[o.Node] || here {
			nodes[o.Node] = true
			near[o.Name] = true
		}
	}
	delete(near, p.Name)
	for _, name := range slices.Sorted(maps.Keys(near)) {
		if o := v.ports[name]; o != nil {
			s.Ports = append(s.Ports, *o)
			nodes[o.Node] = true
		}
	}
	s.Ports = append(s.Ports, p)
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if n, ok := v.nodes[name]; ok {
			s.Nodes = append(s.Nodes, n)
		}
	}
	return s
}

// UpdatePort changes a port with change, which may set where it is, its
// policies and its allowed sources; and its node, when it moves.
func (f *Fleet) UpdatePort(ctx context.Context, name string, change func(*model.Port) error) (model.Port, error) {
	var made model.Port
	err := f.Change(ctx, func(v *View) (store.Commit, error) {
		is := v.ports[name]
		if is == nil {
			return store.Commit{}, missing("port", "ports", name, v.ports)
		}
		made = *is
		if err := change(&made); err != nil {
			return store.Commit{}, err
		}
		if made.Equal(*is) {
			return nothing(), nil
		}
		if made.Name != is.Name || made.Network != is.Network || made.MAC != is.MAC || !slices.Equal(made.IPs, is.IPs) {
			return store.Commit{}, refuse(Invalid, "port %q: its name, network and addresses stay; delete it and add another", name)
		}
		if err := v.fits(made); err != nil {
			return store.Commit{}, err
		}
		d := v.draft().exact(portKey(is.Network, name), inNodes+made.Node).within(inNodes)
		for _, policy := range made.Policies {
			d.exact(inPolicies + policy)
		}
		return d.put(portKey(is.Network, name), made).commit, nil
	})
	return made, err
}

// DeletePort takes a port away, and gives its addresses free. It returns what it
// was.
func (f *Fleet) DeletePort(ctx context.Context, name string) (model.Port, error) {
	var was model.Port
	err := f.Change(ctx, func(v *View) (store.Commit, error) {
		is := v.ports[name]
		if is == nil {
			return store.Commit{}, missing("port", "ports", name, v.ports)
		}
		was = *is
		for _, r := range v.routesOf(is.Network) {
			if slices.Contains(r.Via, model.Via{Port: name}) {
				return store.Commit{}, refuse(InUse, "port %q: the route to %s in network %s leads through it; delete the route first", name, r.Prefix, r.Network)
			}
		}
		return v.draft().release(was).within(inRoutes + is.Network + "/").commit, nil
	})
	return was, err
}

// release deletes a port with the keys that are its own.
func (d *draft) release(p model.Port) *draft {
	key := portKey(p.Network, p.Name)
	return d.exact(key).delete(key).delete(own(p)...)
}
