package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Retire deletes the alive key of a removed node and the node's ports, with their
// addresses, and removes the ports from all routes. If record is true, it also deletes the
// node. If the node's role may not write the routes that use its ports, Retire keeps these
// ports and the node, and returns an error. It returns the number of deleted ports.
func (f *Fleet) Retire(ctx context.Context, node string, record bool) (ports int, err error) {
	revision, err := f.commit(ctx, leaving(node))
	if err != nil {
		return 0, err
	}
	f.awaitCommit(ctx, leaving(node), revision)
	if err := f.unroute(ctx, node); err != nil && !errors.Is(err, store.ErrDenied) {
		return 0, err
	}
	ports, used, err := f.releaseOn(ctx, node, func(storedPort) bool { return true })
	if err != nil {
		return ports, err
	}
	if len(used) > 0 {
		return ports, refuse(InUse, "delete the ports of node %q: static routes use the ports %v, and the node's role may not change routes; run `vrouter node delete %s --ports` on the node of an operator", node, used, node)
	}
	if record {
		err = f.DeleteNode(ctx, node, false)
	} else {
		err = f.unlist(ctx, node)
	}
	if IsWhy(err, NotFound) {
		err = nil
	}
	return ports, err
}

// unroute removes the ports of a node from all routes, in as many commits as needed. A route
// without another next hop then discards packets, as it does while the node is gone: a less
// specific route must not carry them elsewhere.
func (f *Fleet) unroute(ctx context.Context, node string) error {
	for left := true; left; {
		err := f.Change(ctx, Need{Nodes: []string{node}}, func(v *View) (store.Commit, error) {
			d := v.draft()
			left = false
			for _, r := range v.Routes() {
				via := slices.DeleteFunc(slices.Clone(r.Via), func(w model.Via) bool { p, _ := v.Port(w.Port); return p.Node == node })
				if len(via) == len(r.Via) {
					continue
				}
				if left = len(d.commit.Put) >= f.store.MaxKeys()/2; left {
					break
				}
				r.Via, r.Discard = via, len(via) == 0
				d.object().put(routeKey(r), r)
			}
			return d.commit, nil
		})
		if err != nil {
			return fmt.Errorf("remove the next hops on node %q from the routes: %w", node, err)
		}
	}
	return nil
}

// releaseOn deletes ports of a node, in as many commits as needed. It returns the number of
// deleted ports, and the ports that it keeps because static routes use them.
func (f *Fleet) releaseOn(ctx context.Context, node string, which func(storedPort) bool) (ports int, used []string, err error) {
	for some := 1; some > 0; ports += some {
		err = f.Change(ctx, Need{Nodes: []string{node}}, func(v *View) (c store.Commit, err error) {
			var free []model.Port
			used, some = nil, 0
			for _, p := range v.portsOn(node) {
				if !which(*v.ports[p.Name]) {
					continue
				}
				if CheckUnused(p.Name, maps.Values(v.routes[p.Network])) != nil {
					used = append(used, p.Name)
				} else {
					free = append(free, p)
				}
			}
			if len(free) > 0 {
				c, err = v.releaseSome(free, f.store.MaxKeys())
				some = len(slices.DeleteFunc(slices.Clone(c.Delete), func(key string) bool { return !isPort(key) }))
			}
			return c, err
		})
		if err != nil {
			return ports, used, err
		}
	}
	return ports, used, nil
}

// install is the last known start of a node's agent.
type install struct {
	Instance string `json:"instance"`
	Boot     string `json:"boot"`
}

// releaseLost deletes the ports that a node had before it was installed again: the host has
// booted, and the agent has a new state directory. The workloads of these ports no longer
// exist. Ports of a document stay. Ports that were created after the revision before stay
// too, because they belong to the new installation.
func (f *Fleet) releaseLost(ctx context.Context, node string, me Alive, before int64) {
	if me.Boot == "" {
		return
	}
	now := install{me.Instance, me.Boot}
	var was install
	err := f.Look(ctx, func(v *View) { was = v.installs[node] })
	if err != nil || was == now {
		return
	}
	if was.Instance != "" && was.Instance != now.Instance && was.Boot != now.Boot {
		var ports int
		ports, _, err = f.releaseOn(ctx, node, func(p storedPort) bool { return p.Origin != model.Applied && p.created <= before })
		if ports > 0 {
			f.log.Info("this node was installed again; deleted its former ports, so their addresses are free", "node", node, "ports", ports)
		}
	}
	if err == nil {
		_, err = f.commit(ctx, store.Commit{Put: map[string][]byte{inInstalls + node: encode(now)}})
	}
	if err != nil && ctx.Err() == nil {
		f.log.Warn("delete the ports that this node had before it was installed again: their addresses stay in use until the next start of the agent", "node", node, "error", err)
	}
}
