package reconcile

import (
	"maps"
	"net/netip"
	"slices"
)

// Avoid stops the use of routers outside the fleet in routes that have other next hops, without a pass: a pass
// compiles all routes. It only writes the composite nexthops, which many routes share. The next pass writes the tables
// of the routes that are left.
func (r *Reconciler) Avoid(routers map[netip.Addr]bool) {
	if r.ended || r.written == nil || len(routers) == 0 {
		return
	}
	without, differs := r.written.Without(routers)
	if !differs {
		return
	}
	changes, err := r.Plane().Update(without.Since(r.written))
	if err != nil {
		r.log.Error("cannot stop the use of routers that do not answer", "routers", slices.Collect(maps.Keys(routers)), "error", err)
		r.written = nil // the contents of the maps are not known
		return
	}
	r.written = without
	r.log.Info("tables written", "updated", changes.Updated, "deleted", changes.Deleted, "cause", "lost routers")
}
