package fleet

import (
	"strings"
	"time"

	"windtunnel/vrouter/store"
)

// absence tracks which nodes count as gone. A node whose lease ends while the
// store is reachable is gone at once. A node that is missing when the store is
// read, or reachable again, may have lost the store too. It counts as gone if
// it does not return within the time of one lease.
type absence struct {
	lease time.Duration
	since map[string]time.Time // time from which a node counts as gone
}

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

// gone returns the nodes that count as gone, and the time until the next
// missing node counts as gone (0: no other node is missing).
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
