package fleet

import (
	"context"
	"strings"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Retire deletes what the fleet has of a node that is removed: its alive key, its
// ports with their addresses, and, if record is true, the node. Ports that static
// routes use stay, and so does then the node. It returns the number of deleted
// ports.
func (f *Fleet) Retire(ctx context.Context, node string, record bool) (ports int, err error) {
	revision, err := f.leave(ctx, node)
	if err != nil {
		return 0, err
	}
	f.awaitRevision(ctx, revision)
	var left []string // ports that routes use
	for some := 1; some > 0; ports += some {
		err := f.Change(ctx, func(v *View) (store.Commit, error) {
			var free []model.Port
			left = nil
			for _, p := range v.portsOn(node) {
				if _, route := v.routeVia(p.Name); route != "" {
					left = append(left, p.Name)
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
	if len(left) > 0 {
		return ports, refuse(InUse, "static routes use the ports %v of node %q; delete the routes, then `vrouter node delete %s --ports`", left, node, node)
	}
	if record {
		err = f.DeleteNode(ctx, node, false)
	}
	if IsWhy(err, NotFound) {
		err = nil
	}
	return ports, err
}

func deletedPorts(c store.Commit) (n int) {
	for _, key := range c.Delete {
		if strings.HasPrefix(key, inNames) {
			n++
		}
	}
	return n
}
