package fleet

import (
	"context"
	"strings"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Retire deletes the alive key of a removed node and the node's ports, with their
// addresses. If record is true, it also deletes the node. It keeps ports that static
// routes use. If there are such ports, it keeps the node too, and returns an error. It
// returns the number of deleted ports.
func (f *Fleet) Retire(ctx context.Context, node string, record bool) (ports int, err error) {
	revision, err := f.leave(ctx, node)
	if err != nil {
		return 0, err
	}
	f.awaitRevision(ctx, revision)
	var used []string // ports that static routes use
	for some := 1; some > 0; ports += some {
		err := f.Change(ctx, func(v *View) (store.Commit, error) {
			var free []model.Port
			used = nil
			for _, p := range v.portsOn(node) {
				if _, route := v.routeVia(p.Name); route.IsValid() {
					used = append(used, p.Name)
				} else {
					free = append(free, p)
				}
			}
			c, err := v.releaseSome(free, f.store.MaxKeys())
			some = deletedPorts(c)
			return c, err
		})
		if err != nil {
			return ports, err
		}
	}
	if len(used) > 0 {
		return ports, refuse(InUse, "delete the ports of node %q: static routes use the ports %v; delete these routes, then run `vrouter node delete %s --ports`", node, used, node)
	}
	if record {
		err = f.DeleteNode(ctx, node, false)
	}
	if IsWhy(err, NotFound) {
		err = nil
	}
	return ports, err
}

// deletedPorts counts the ports that a commit deletes.
func deletedPorts(c store.Commit) (n int) {
	for _, key := range c.Delete {
		if strings.HasPrefix(key, inNames) {
			n++
		}
	}
	return n
}
