package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/store"
)

// maxPlaces is the maximum number of places that a copy watches one by one. A copy that needs
// more watches the ports of all networks.
const maxPlaces = 400

// joined is a place whose ports the copy has and watches.
type joined struct {
	created  int64 // revision that created the place's key
	revision int64 // the copy has all changes of the place's ports up to this revision
	end      context.CancelFunc
}

// errManyPlaces ends the watches of a copy that needs more than maxPlaces places.
var errManyPlaces = errors.New("the node needs the ports of too many places")

// errFewPlaces ends the watch of all ports if the node needs at most half of maxPlaces places.
var errFewPlaces = errors.New("the node needs the ports of few places")

// watches are the watches of a connection to the store.
type watches struct {
	*Fleet
	ctx  context.Context
	fail func(error) // ends all watches
	wait sync.WaitGroup
}

// join keeps the watched places equal to those around the node.
func (w *watches) join() {
	w.mu.Lock()
	for p, j := range w.joined {
		w.watch(p, j)
	}
	w.mu.Unlock()
	for {
		if err := w.joinOnce(); err != nil {
			w.fail(err)
			return
		}
		select {
		case <-w.moved:
		case <-w.ctx.Done():
			return
		}
	}
}

// joinOnce forgets the places that the node no longer needs, reads the ports of the new ones at
// one revision, and begins to watch these.
func (w *watches) joinOnce() error {
	missing := w.leave()
	if len(missing) == 0 {
		return nil
	}
	if len(missing)+len(w.joined) > w.maxPlaces {
		return errManyPlaces
	}
	var spans []store.Span
	for p := range missing {
		spans = append(spans, store.Under(p.ports()))
	}
	image, err := w.store.Read(w.ctx, 0, spans...)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var t Touched
	var ports []store.Entry
	now := w.view.around(w.node)
	for p, created := range missing {
		if now[p] != created {
			delete(missing, p) // its key has changed; joinOnce runs again
			continue
		}
		w.joined[p] = &joined{created: created, revision: image.Revision}
		w.watch(p, w.joined[p])
		t.network(p.network)
	}
	for _, e := range image.Entries {
		if _, is := missing[placeOfKey(e.Key)]; is {
			ports = append(ports, e)
		}
	}
	t.merge(w.view.apply(store.Changes{Put: ports}))
	w.notify(t)
	return nil
}

// leave forgets the places that the node no longer needs, and returns those that it does not
// have yet.
func (w *watches) leave() (missing map[place]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var t Touched
	missing = w.view.around(w.node)
	for p, j := range w.joined {
		if missing[p] == j.created {
			delete(missing, p)
			continue
		}
		j.end()
		delete(w.joined, p)
		w.view.forget(p, &t)
	}
	t.merge(w.view.apply(store.Changes{}))
	if !t.IsZero() {
		w.notify(t)
	}
	return missing
}

// watch follows the ports of a place. The caller holds mu.
func (w *watches) watch(p place, j *joined) {
	ctx, end := context.WithCancel(w.ctx)
	j.end = end
	revision := j.revision
	w.wait.Go(func() {
		defer end()
		err := w.store.Watch(ctx, store.Under(p.ports()), revision, func(ch store.Changes) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.joined[p] != j {
				return
			}
			if j.revision = max(j.revision, ch.Revision); ch.IsEmpty() {
				w.wake()
				return
			}
			ch.Revision = 0 // the other objects are not of this revision
			w.notify(w.view.apply(ch))
		}, nil)
		if ctx.Err() == nil {
			w.fail(err)
		}
	})
}

// readSlice replaces the copy with the objects and the ports around the node.
func (f *Fleet) readSlice(ctx context.Context) error {
	v, err := f.readView(ctx, Need{Around: f.node})
	if err != nil {
		return err
	}
	places := map[place]*joined{}
	for p, created := range v.around(f.node) {
		places[p] = &joined{created: created, revision: v.revision}
	}
	if len(places) > f.maxPlaces {
		return errManyPlaces
	}
	return f.replace(v, places)
}

// emptyPlaces returns the places of a node that have no ports, not even ports that are not
// used.
func (v *View) emptyPlaces(node string) (all []place) {
	for network, nodes := range v.listed {
		p := place{node, network}
		is := func(key string) bool { return strings.HasPrefix(key, p.ports()) }
		if nodes[node] != 0 && v.hosts[node][network] == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(v.ignored)), is) && !slices.ContainsFunc(slices.Collect(maps.Keys(v.broken)), is) {
			all = append(all, p)
		}
	}
	return all
}

// unlist deletes the keys, and the positions, of some places without ports. The commit fails if a port was added.
func (d *draft) unlist(places []place) *draft {
	for _, p := range places[:min(len(places), maxRanges-5)] {
		d.exact(p.key()).delete(p.key()).within(p.ports())
		if d.view.revisions[p.last()] != 0 {
			d.delete(p.last())
		}
	}
	return d
}

// unlist deletes the keys of a node's places that have no ports.
func (f *Fleet) unlist(ctx context.Context, node string) error {
	for left := 1; left > 0; {
		err := f.Change(ctx, exactly(Need{Nodes: []string{node}}), func(v *View) (store.Commit, error) {
			places := v.emptyPlaces(node)
			if left = len(places); left == 0 {
				return store.Commit{}, nil
			}
			return v.draft().unlist(places).commit, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// contains reports whether the copy has a commit. The caller holds mu.
func (f *Fleet) contains(c store.Commit, revision int64) bool {
	if f.view == nil || !f.view.part {
		return f.view != nil && f.view.revision >= revision
	}
	has := func(key string, put bool) bool {
		if isUnique(key) || !isPort(key) {
			return isUnique(key) || f.view.revision >= revision
		}
		p := placeOfKey(key)
		if j := f.joined[p]; j != nil {
			return j.revision >= revision
		}
		return !put || !f.concerns(p)
	}
	for key := range c.Put {
		if !has(key, true) {
			return false
		}
	}
	return !slices.ContainsFunc(c.Delete, func(key string) bool { return f.view.revisionOf(key) != 0 && !has(key, false) })
}

// unlistTime is the time after which the agent of a node deletes the key of a place without
// ports, so that other agents need not watch the place. A workload that restarts within this
// time costs the others nothing.
const unlistTime = 30 * time.Second

// tidy deletes the keys of the node's places that have no ports for unlistTime, until ctx
// ends.
func (f *Fleet) tidy(ctx context.Context) {
	var before []place
	for pause.For(ctx, unlistTime) == nil {
		var empty []place
		f.Peek(func(v *View) {
			if f.has(Need{Nodes: []string{f.node}}) {
				empty = v.emptyPlaces(f.node)
			}
		})
		if slices.ContainsFunc(empty, func(p place) bool { return slices.Contains(before, p) }) {
			if err := f.unlist(ctx, f.node); err != nil && !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
				f.log.Warn("tell the other nodes that this node has no ports in a network: they keep watching its ports", "error", err)
			}
		}
		before = empty
	}
}
