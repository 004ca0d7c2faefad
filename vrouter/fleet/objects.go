package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// examples lists the names of up to three ports.
func examples(ports []*model.Port) string {
	var names []string
	for _, p := range ports[:min(3, len(ports))] {
		names = append(names, p.Name)
	}
	if len(names) < len(ports) {
		return fmt.Sprintf("such as %s", strings.Join(names, ", "))
	}
	return strings.Join(names, ", ")
}

// putChecked validates the whole state and puts one object. The commit depends
// on every part of the state. Conflicts are unlikely, since such changes are
// rare.
func (v *View) putChecked(key string, object any, with func(model.State) model.State) (store.Commit, error) {
	if err := validWith(v.State(), with); err != nil {
		return store.Commit{}, err
	}
	d := v.draft().exact(key).within(inNodes, inNetworks, inGateways, inPolicies, inRoutes, inPorts, inFlat)
	return d.put(key, object).commit, nil
}

// PutNode adds or changes a node.
func (f *Fleet) PutNode(ctx context.Context, n model.Node) error {
	return f.Change(ctx, func(v *View) (store.Commit, error) {
		return v.putChecked(inNodes+n.Name, n, func(s model.State) model.State {
			s.Nodes = withElement(s.Nodes, n, func(o model.Node) bool { return o.Name == n.Name })
			return s
		})
	})
}

// DeleteNode deletes a node whose agent does not run. With withPorts it first
// deletes the node's ports, in as many commits as needed.
func (f *Fleet) DeleteNode(ctx context.Context, name string, withPorts bool) error {
	for {
		left := 0
		err := f.Change(ctx, func(v *View) (store.Commit, error) {
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
			return v.draft().exact(inNodes+name, inAlive+name).within(inPorts, inFlat).delete(inNodes + name).commit, nil
		})
		if err != nil || left == 0 {
			return err
		}
	}
}

// releaseSome deletes as many ports as fit into one commit.
func (v *View) releaseSome(ports []model.Port, maxKeys int) (store.Commit, error) {
	d := v.draft().within(inRoutes)
	for _, p := range ports {
		if len(d.commit.Delete)+len(uniqueKeys(p))+1 > maxKeys {
			break
		}
		if network, route := v.routeVia(p.Name); route != "" {
			return store.Commit{}, refuse(InUse, "delete port %q: the route to %s in network %s uses it; delete the route first", p.Name, route, network)
		}
		d.release(p)
	}
	return d.commit, nil
}

func (v *View) routeVia(port string) (network, prefix string) {
	p := v.ports[port]
	for _, r := range v.routes[p.Network] {
		if slices.Contains(r.Via, model.Via{Port: port}) {
			return r.Network, r.Prefix.String()
		}
	}
	return "", ""
}

// portsOn returns the ports on a node, sorted by name.
func (v *View) portsOn(node string) (all []model.Port) {
	for network := range v.hosts[node] {
		for _, p := range v.members[network] {
			if p.Node == node {
				all = append(all, *p)
			}
		}
	}
	slices.SortFunc(all, func(a, b model.Port) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// PutPolicy adds or changes a policy.
func (f *Fleet) PutPolicy(ctx context.Context, p model.Policy) error {
	return f.Change(ctx, func(v *View) (store.Commit, error) {
		return v.putChecked(inPolicies+p.Name, p, func(s model.State) model.State {
			s.Policies = withElement(s.Policies, p, func(o model.Policy) bool { return o.Name == p.Name })
			return s
		})
	})
}

// DeletePolicy deletes a policy that no network or port uses.
func (f *Fleet) DeletePolicy(ctx context.Context, name string) error {
	return f.Change(ctx, func(v *View) (store.Commit, error) {
		if _, ok := v.policies[name]; !ok {
			return store.Commit{}, missing("policy", "policies", name, v.policies)
		}
		for _, n := range sorted(v.networks) {
			if slices.Contains(n.Policies, name) {
				return store.Commit{}, refuse(InUse, "delete policy %q: network %q uses it; remove it from the network first", name, n.Name)
			}
		}
		for _, p := range v.ports {
			if slices.Contains(p.Policies, name) {
				return store.Commit{}, refuse(InUse, "delete policy %q: port %q uses it; remove it from the port first", name, p.Name)
			}
		}
		return v.draft().exact(inPolicies+name).within(inNetworks, inPorts, inFlat).delete(inPolicies + name).commit, nil
	})
}

// PutGateway adds or changes a gateway.
func (f *Fleet) PutGateway(ctx context.Context, g model.Gateway) error {
	return f.Change(ctx, func(v *View) (store.Commit, error) {
		return v.putChecked(inGateways+g.Name, g, func(s model.State) model.State {
			s.Gateways = withElement(s.Gateways, g, func(o model.Gateway) bool { return o.Name == g.Name })
			return s
		})
	})
}

// DeleteGateway deletes a gateway that no route uses.
func (f *Fleet) DeleteGateway(ctx context.Context, name string) error {
	return f.Change(ctx, func(v *View) (store.Commit, error) {
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
		return v.draft().exact(inGateways + name).within(inRoutes).delete(inGateways + name).commit, nil
	})
}

// PutRoute adds or changes a static route.
func (f *Fleet) PutRoute(ctx context.Context, r model.Route) error {
	return f.Change(ctx, func(v *View) (store.Commit, error) {
		err := validWith(v.State(), func(s model.State) model.State {
			s.Routes = withElement(s.Routes, r, func(o model.Route) bool { return o.Network == r.Network && o.Prefix == r.Prefix })
			return s
		})
		if err != nil {
			return store.Commit{}, err
		}
		d := v.draft().exact(routeKey(r), inNetworks+r.Network).within(inRoutes+r.Network+"/", inGateways)
		for _, w := range r.Via {
			if w.Port != "" {
				d.exact(v.places[w.Port].key)
			} else {
				d.exact(inGateways + w.Gateway)
			}
		}
		if r.Prefix.IsSingleIP() {
			d.commit.Exact[addressKey(r.Network, r.Prefix.Addr())] = 0
		}
		return d.put(routeKey(r), r).commit, nil
	})
}

// DeleteRoute deletes a static route.
func (f *Fleet) DeleteRoute(ctx context.Context, r model.Route) error {
	return f.Change(ctx, func(v *View) (store.Commit, error) {
		if _, ok := v.routes[r.Network][r.Prefix]; !ok {
			return store.Commit{}, refuse(NotFound, "there is no route to %s in network %q", r.Prefix, r.Network)
		}
		return v.draft().exact(routeKey(r)).delete(routeKey(r)).commit, nil
	})
}
