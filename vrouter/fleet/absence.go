package fleet

import (
	"strings"
	"time"

	"windtunnel/vrouter/store"
)

// absence knows which nodes are not there. A lease that ends while the store is
// heard of is a node that died. One that is missing when the store is read, or
// comes back, may be that of a node which lost the store as well, and is given
// the time of a lease to return.
type absence struct {
	lease time.Duration
	since map[string]time.Time // from when on a node counts as gone
}

// read looks at a view that came as a whole.
func (a *absence) read(v *View, now time.Time) {
	for node := range v.nodes {
		if _, there := v.alive[node]; there {
			delete(a.since, node)
		} else if _, known := a.since[node]; !known {
			a.since[node] = now.Add(a.lease)
		}
	}
}

// back gives every node that is missing its time again.
func (a *absence) back(v *View, now time.Time) {
	if v == nil {
		return
	}
	for node := range a.since {
		a.since[node] = now.Add(a.lease)
	}
	a.read(v, now)
}

// change looks at what changed while the store was heard of.
func (a *absence) change(v *View, ch store.Changes, now time.Time) {
	for _, key := range ch.Deleted {
		if node, is := strings.CutPrefix(key, inAlive); is {
			a.since[node] = now
		}
	}
	for _, e := range ch.Put {
		if node, is := strings.CutPrefix(e.Key, inAlive); is {
			delete(a.since, node)
		} else if node, is := strings.CutPrefix(e.Key, inNodes); is {
			if _, there := v.alive[node]; there {
				continue
			}
			if _, known := a.since[node]; !known {
				a.since[node] = now.Add(a.lease)
			}
		}
	}
}

// gone are the nodes that count as gone, and how long until the next one does; 0
// for none.
func (a *absence) gone(v *View, now time.Time) (gone map[string]bool, next time.Duration) {
	gone = map[string]bool{}
	for node, since := range a.since {
		switch left := since.Sub(now); {
		case v.nodes[node].Name == "": // it was deleted
		case left <= 0:
			gone[node] = true
		case next == 0 || left < next:
			next = left
		}
	}
	return gone, next
}
