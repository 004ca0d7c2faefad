package fleet

import (
	"strings"
	"time"

	"windtunnel/vrouter/store"
)

// absence tracks the nodes that are gone. If a lease ends while the store is
// reachable, the node is gone at once. If a node is missing when the store is read
// or reachable again, the node may have lost the store too. It then has the time
// of one lease to return.
type absence struct {
	lease time.Duration
	since map[string]time.Time // time from which a node counts as gone
}

// read handles a view that was read as a whole.
func (a *absence) read(v *View, now time.Time) {
	for node := range v.nodes {
		if _, there := v.alive[node]; there {
			delete(a.since, node)
		} else if _, known := a.since[node]; !known {
			a.since[node] = now.Add(a.lease)
		}
	}
}

// reconnected restarts the waiting time of every missing node.
func (a *absence) reconnected(v *View, now time.Time) {
	if v == nil {
		return
	}
	for node := range a.since {
		a.since[node] = now.Add(a.lease)
	}
	a.read(v, now)
}

// change handles a commit.
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

// gone returns the nodes that count as gone, and the time until the next one does
// (0: none is missing).
func (a *absence) gone(v *View, now time.Time) (gone map[string]bool, next time.Duration) {
	gone = map[string]bool{}
	for node, since := range a.since {
		switch left := since.Sub(now); {
		case v.nodes[node].Name == "": // the node was deleted
		case left <= 0:
			gone[node] = true
		case next == 0 || left < next:
			next = left
		}
	}
	return gone, next
}
