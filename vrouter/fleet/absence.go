package fleet

import (
	"strings"
	"time"

	"windtunnel/vrouter/store"
)

// absence tracks which nodes are silent and which nodes are gone. A node is missing if
// it has no alive key.
//
// An alive key ends after ttl without renewal. The node is then silent: routes with
// other next hops avoid it. After a whole lease without renewal the node is gone. It is
// not gone earlier, because it may forward while it cannot reach the store.
//
// The store may have been unreachable for the missing node too. So when this agent reads
// the whole store, or reaches the store again, both times begin anew.
type absence struct {
	lease time.Duration
	since map[string]time.Time // time from which a node counts as gone
}

// aliveTime is the maximum time until the alive key of a dead node ends. It can be
// shorter than the lease, because a route with other next hops can avoid a node at no
// cost. A node renews its key after each third of this time.
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

// gone returns the silent nodes; the value is true if the node is also gone. next is the
// time until another node becomes silent or gone; 0: no node is missing.
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
