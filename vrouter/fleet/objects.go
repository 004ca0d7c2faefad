package fleet

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// examples lists the names of up to three ports.
func examples(ports []*model.CompactPort) string {
	names := lists.Map(ports[:min(3, len(ports))], func(p *model.CompactPort) string { return p.Name })
	if len(names) < len(ports) {
		return fmt.Sprintf("such as %s", strings.Join(names, ", "))
	}
	return strings.Join(names, ", ")
}

// putChecked refuses an object that makes the state invalid. with adds the object to
// a state. The whole state is read only for the text of an error. If ports that other clients
// add at the same time can contradict the object, call within too.
func (v *View) putChecked(key string, object any, near *neighbours, with func(model.State) model.State) *draft {
	d := v.draft().object().put(key, object)
	if valid(with(near.state())) != nil {
		d.refused = validWith(v.State(), with)
	}
	return d
}

// put makes a commit that putChecked returns.
func (f *Fleet) put(ctx context.Context, need Need, make func(*View) *draft) error {
	return f.Change(ctx, exactly(need), func(v *View) (store.Commit, error) {
		d := make(v)
		return d.commit, d.refused
	})
}

// withinNetworks makes the commit fail if a port was added to one of the networks after
// the view.
func (d *draft) withinNetworks(names []string) *draft {
	if len(names) > maxRanges {
		return d.within(inMACs)
	}
	for _, name := range names {
		d.within(inMACs + name + "/")
	}
	return d
}

// maxRanges is below the maximum number of conditions of a commit.
const maxRanges = 50

// PutNode adds or changes a node. If n has no BGP, the node keeps its present BGP; PutBGP changes it.
func (f *Fleet) PutNode(ctx context.Context, n model.Node) error {
	return f.put(ctx, Need{Around: n.Name}, func(v *View) *draft { return v.putNode(v.withBGP(n)) })
}

func (v *View) withBGP(n model.Node) model.Node {
	n.BGP = cmp.Or(n.BGP, v.nodes[n.Name].BGP)
	return n
}

// PutBGP sets the BGP of a node; nil removes it.
func (f *Fleet) PutBGP(ctx context.Context, node string, b *model.BGP) error {
	return f.put(ctx, Need{Around: node}, func(v *View) *draft {
		n, has := v.nodes[node]
		if !has {
			d := v.draft()
			d.refused = missing("node", "nodes", node, v.nodes)
			return d
		}
		n.BGP = b
		return v.putNode(n)
	})
}

func (v *View) putNode(n model.Node) *draft {
	return v.putChecked(inNodes+n.Name, n, v.nearNode(n), func(s model.State) model.State {
		s.Nodes = withElement(s.Nodes, n, func(o model.Node) bool { return o.Name == n.Name })
		return s
	}).within(inPorts + n.Name + "/").withinNetworks(slices.Collect(maps.Keys(v.hosts[n.Name])))
}

// DeleteNode deletes a node whose agent does not run. With withPorts it first removes the
// node's ports from all routes and deletes them, in as many commits as needed.
func (f *Fleet) DeleteNode(ctx context.Context, name string, withPorts bool) error {
	if withPorts {
		if err := f.unroute(ctx, name); err != nil {
			return err
		}
	}
	for {
		left := 0
		err := f.Change(ctx, exactly(Need{Nodes: []string{name}}), func(v *View) (store.Commit, error) {
			if _, ok := v.nodes[name]; !ok {
				return store.Commit{}, missing("node", "nodes", name, v.nodes)
			}
			if alive, there := v.alive[name]; there && !alive.Stopped {
				return store.Commit{}, refuse(InUse, "delete node %q: its agent is running; run `vrouter remove` on the node first", name)
			}
			ports := v.portsOn(name)
			left = len(ports)
			if left > 0 && !withPorts {
				return store.Commit{}, refuse(InUse, "delete node %q: it has %d ports, such as %s; delete them first, or use --ports", name, left, ports[0].Name)
			}
			if left > 0 {
				return v.releaseSome(ports, f.store.MaxKeys())
			}
			if places := v.emptyPlaces(name); len(places) > 0 {
				left = len(places)
				return v.draft().unlist(places).commit, nil
			}
			return v.draft().object().exact(inAlive+name).within(inPorts+name+"/").delete(inNodes+name, inInstalls+name).commit, nil
		})
		if err != nil || left == 0 {
			return err
		}
	}
}

// releaseSome deletes as many ports as fit into one commit.
func (v *View) releaseSome(ports []model.Port, maxKeys int) (store.Commit, error) {
	d := v.draft()
	for _, p := range ports {
		if len(d.commit.Delete)+len(uniqueKeys(p))+1 > maxKeys {
			break
		}
		if err := CheckUnused(p.Name, maps.Values(v.routes[p.Network])); err != nil {
			return store.Commit{}, err
		}
		d.release(p)
	}
	return d.commit, nil
}

// CheckUnused returns an error if a route uses a port. Such a port must not be deleted.
func CheckUnused(port string, routes iter.Seq[model.Route]) error {
	for r := range routes {
		if slices.Contains(r.Via, model.Via{Port: port}) {
			return refuse(InUse, "delete port %q: the route to %s in network %s uses it; delete the route first", port, r.Prefix, r.Network)
		}
	}
	return nil
}

// portsOn returns the ports on a node, sorted by name.
func (v *View) portsOn(node string) []model.Port {
	var all []*model.CompactPort
	for network := range v.hosts[node] {
		all = append(all, v.membersOn(network, node)...)
	}
	return copiesByName(all)
}

// PutPolicy adds or changes a policy.
func (f *Fleet) PutPolicy(ctx context.Context, p model.Policy) error {
	return f.put(ctx, Need{All: true}, func(v *View) *draft {
		d := v.putChecked(inPolicies+p.Name, p, v.nearPolicy(p), func(s model.State) model.State {
			s.Policies = withElement(s.Policies, p, func(o model.Policy) bool { return o.Name == p.Name })
			return s
		})
		if is, exists := v.policies[p.Name]; exists && len(p.Rules) > len(is.Rules) { // ports may have too many rules then
			d.within(inPorts)
		}
		return d
	})
}

// DeletePolicy deletes a policy that no network or port uses.
func (f *Fleet) DeletePolicy(ctx context.Context, name string) error {
	return f.Change(ctx, Need{All: true}, func(v *View) (store.Commit, error) {
		if _, ok := v.policies[name]; !ok {
			return store.Commit{}, missing("policy", "policies", name, v.policies)
		}
		for _, n := range sorted(v.networks) {
			if slices.Contains(n.Policies, name) {
				return store.Commit{}, refuse(InUse, "delete policy %q: network %q uses it; remove it from the network first", name, n.Name)
			}
		}
		for port := range v.users[name] {
			return store.Commit{}, refuse(InUse, "delete policy %q: port %q uses it; remove it from the port first", name, port)
		}
		return v.draft().object().within(inPorts).delete(inPolicies + name).commit, nil
	})
}

// PutGateway adds or changes a gateway.
func (f *Fleet) PutGateway(ctx context.Context, g model.Gateway) error {
	networks := lists.Map(g.Networks, func(n model.GatewayNetwork) string { return n.Network })
	return f.put(ctx, Need{All: true}, func(v *View) *draft {
		return v.putChecked(inGateways+g.Name, g, v.nearGateway(g), func(s model.State) model.State {
			s.Gateways = withElement(s.Gateways, g, func(o model.Gateway) bool { return o.Name == g.Name })
			return s
		}).withinNetworks(networks)
	})
}

// DeleteGateway deletes a gateway that no route uses.
func (f *Fleet) DeleteGateway(ctx context.Context, name string) error {
	return f.Change(ctx, Need{}, func(v *View) (store.Commit, error) {
		if _, ok := v.gateways[name]; !ok {
			return store.Commit{}, missing("gateway", "gateways", name, v.gateways)
		}
		for network := range v.routes {
			for _, r := range v.routes[network] {
				if slices.Contains(r.Via, model.Via{Gateway: name}) {
					return store.Commit{}, refuse(InUse, "delete gateway %q: the route to %s in network %s uses it; delete the route first", name, r.Prefix, network)
				}
			}
		}
		return v.draft().object().delete(inGateways + name).commit, nil
	})
}

// PutRoute adds or changes a static route.
func (f *Fleet) PutRoute(ctx context.Context, r model.Route) error {
	return f.put(ctx, Need{Networks: []string{r.Network}}, func(v *View) *draft {
		d := v.putChecked(routeKey(r), r, v.nearRoute(r), func(s model.State) model.State {
			s.Routes = withElement(s.Routes, r, func(o model.Route) bool { return o.Network == r.Network && o.Prefix == r.Prefix })
			return s
		})
		for _, w := range r.Via {
			if p := v.ports[w.Port]; p != nil {
				d.exact(portKey(p.Port()))
			}
		}
		if r.Prefix.IsSingleIP() {
			d.commit.Exact[addressKey(r.Network, r.Prefix.Addr())] = 0
		}
		return d
	})
}

// DeleteRoute deletes a static route.
func (f *Fleet) DeleteRoute(ctx context.Context, r model.Route) error {
	return f.Change(ctx, Need{}, func(v *View) (store.Commit, error) {
		if _, ok := v.routes[r.Network][r.Prefix]; !ok {
			return store.Commit{}, refuse(NotFound, "there is no route to %s in network %q", r.Prefix, r.Network)
		}
		return v.draft().object().delete(routeKey(r)).commit, nil
	})
}

// PutNodeFromPool is like PutNode, but the fleet chooses the locator. A node keeps the locator
// that it has if avoid does not refuse it. Otherwise it gets a free one from the pool
// settings.locators. Every commit of a node depends on all other nodes, so two nodes never get
// the same locator. avoid refuses locators that the node's host cannot have; nil: it refuses none.
func (f *Fleet) PutNodeFromPool(ctx context.Context, n model.Node, avoid func(netip.Prefix) error) error {
	return f.put(ctx, Need{Around: n.Name}, func(v *View) *draft {
		n := v.withBGP(n)
		if n.Locator = v.nodes[n.Name].Locator; n.Locator.IsValid() && (avoid == nil || avoid(n.Locator) == nil) {
			return v.putNode(n)
		}
		free, err := model.State{Settings: v.settings, Nodes: v.Nodes(), Gateways: v.Gateways()}.FreeLocator(avoid)
		if err != nil {
			d := v.draft()
			why := Invalid
			if v.settings.Locators.IsValid() {
				why = Full
			}
			d.refused = &Refusal{why, err}
			return d
		}
		n.Locator = free
		return v.putNode(n)
	})
}
