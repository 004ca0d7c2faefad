package fleet

import (
	"strings"
	"time"

	"windtunnel/vrouter/store"
)

// absence tracks which nodes are silent, and which count as gone. A node whose alive
// key ends while the store is reachable is silent at once: routes with other next
// hops avoid it. It is gone when it has been silent for the time of one lease: it
// may still forward while it cannot reach the store. A node that is missing when
// the store is read, or reachable again, may have lost the store too. Its time
// begins then.
type absence struct {
	lease time.Duration
	since map[string]time.Time // time from which a node counts as gone
}

// aliveTime is the time after which the alive key of a dead node ends, at most. It
// is shorter than the lease, since routes with other next hops lose nothing when
// they avoid a node. A node renews its key each third of the time.
const aliveTime = 15 * time.Second

// ttl is the time to live of alive keys.
func (a *absence) ttl() time.Duration { return min(aliveTime, a.lease) }

// read updates the tracking after the whole store has been read.
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

// change updates the tracking after a commit.
func (a *absence) change(v *View, ch store.Changes, now time.Time) {
	for _, key := range ch.Deleted {
		if node, is := strings.CutPrefix(key, inAlive); is {
			a.since[node] = now.Add(a.lease - a.ttl())
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

// gone returns the silent nodes, with true if they count as gone, and the time until
// this changes (0: no node is about to become silent or gone).
func (a *absence) gone(v *View, now time.Time) (gone map[string]bool, next time.Duration) {
	gone = map[string]bool{}
	for node, since := range a.since {
		if v.nodes[node].Name == "" { // the node was deleted
			continue
		}
		left := since.Sub(now)
		if left <= 0 {
			gone[node] = true
			continue
		}
		if silent := left - (a.lease - a.ttl()); silent <= 0 {
			gone[node] = false
		} else {
			left = silent
		}
		if next == 0 || left < next {
			next = left
		}
	}
	for node, alive := range v.alive {
		if alive.Stopped {
			gone[node] = false
		}
	}
	return gone, next
}
