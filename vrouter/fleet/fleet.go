// Package fleet is the desired state that the hosts of a fleet share. It defines
// the store's keys and the rules of changes, and keeps a copy of the state.
//
// A change is computed from the copy. Its commit depends on the revisions of all
// keys that the computation used. So two hosts can never both allocate the same
// address. See Commit in package store.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/store"
)

// Fleet is a copy of the shared state that follows the store. Several goroutines
// can use it at the same time.
type Fleet struct {
	store store.Store
	log   *slog.Logger
	node  string // the node whose agent this is; "": none
	whole bool   // the copy always has the ports of all networks, not only those around node
	stale bool   // the copy is too old for a watch; only Run uses stale
	known string // Options.Store
	used  bool   // Options.Used

	claims    claims
	maxPlaces int
	moved     chan struct{} // receives after a change of the places

	mu       sync.RWMutex
	view     *View             // nil: the store has not been read yet
	joined   map[place]*joined // empty if the copy has the ports of all networks
	absence  absence
	began    time.Time     // when New was called
	heard    time.Time     // when the store last answered; zero: never
	problem  error         // why the store does not answer; nil: it answers
	wentBack string        // when and how the store last went back to an older revision; "": never
	isBack   bool          // the store went back, and the copy is of before
	lost     error         // why the store must not be used: it lost its content, or is another store
	changed  chan struct{} // closed and replaced on each change
	watchers map[*Watcher]bool

	silent        atomic.Pointer[[]string] // argument of the last SetSilent
	silentChanged chan struct{}            // receives after SetSilent
}

// Options of a Fleet.
type Options struct {
	// Lease is the time after which a silent node counts as gone.
	Lease  time.Duration
	Logger *slog.Logger // nil: no log
	// Node is the node whose agent this is; "": none. The copy has only the ports of the
	// networks that have ports on this node, unless Whole is set.
	Node  string
	Whole bool
	// Used says that the node has ports from a store. A store that is empty, or has another id than
	// Store, is then refused, because it does not have these ports. Store "": the id is unknown.
	Used  bool
	Store string

	maxPlaces int // 0: the constant maxPlaces
}

// DefaultLease is longer than usual outages of a store. A node without the store
// keeps forwarding, so the other nodes should keep sending to it.
const DefaultLease = 90 * time.Second

// New makes the copy of a store. Run fills it and keeps it up to date.
func New(s store.Store, o Options) *Fleet {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Fleet{
		began: time.Now(), store: s, log: o.Logger, node: o.Node, whole: o.Whole || o.Node == "", known: o.Store, used: o.Used, maxPlaces: cmp.Or(o.maxPlaces, maxPlaces), moved: make(chan struct{}, 1), changed: make(chan struct{}), watchers: map[*Watcher]bool{},
		claims:  claims{of: map[string]map[netip.Addr]bool{}},
		absence: absence{lease: o.Lease, since: map[string]time.Time{}}, silentChanged: make(chan struct{}, 1),
	}
}

// Times between attempts to reach a store.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// readShare times the number of nodes is the period over which the nodes spread their
	// reads of the whole store after ErrCompacted.
	readShare = 10 * time.Millisecond
)

// Run follows the store until ctx ends. It reconnects to a store that was
// unreachable. It reads the whole store again if the store no longer has the
// missed commits. Its only error is a *SchemaError.
func (f *Fleet) Run(ctx context.Context) error {
	if f.node != "" {
		var tidying sync.WaitGroup
		defer tidying.Wait()
		ctx, end := context.WithCancel(ctx)
		defer end()
		tidying.Go(func() { f.tidy(ctx) })
	}
	wait := firstRetry
	for {
		err := f.follow(ctx, func() { wait = firstRetry })
		var other *SchemaError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &other):
			f.setProblem(err)
			return err
		case errors.Is(err, errManyPlaces), errors.Is(err, errFewPlaces):
			f.stale = true
			continue
		case !errors.Is(err, store.ErrCompacted):
			f.setProblem(err)
		}
		f.noteBack(err)
		// Random, so that hosts do not all reconnect or read at the same moment.
		delay := wait/2 + rand.N(wait)
		if f.stale {
			f.Peek(func(v *View) { delay += rand.N(1 + time.Duration(len(v.nodes))*readShare) })
		}
		if pause.For(ctx, delay) != nil {
			return nil
		}
		wait = min(2*wait, lastRetry)
	}
}

// follow reads the store, unless the copy is recent enough, and then watches it.
func (f *Fleet) follow(ctx context.Context, reached func()) error {
	if !f.Health().Read || f.stale {
		if err := f.read(ctx); err != nil {
			return err
		}
		f.stale = false
		reached()
	}
	ctx, end := context.WithCancelCause(ctx)
	w := &watches{Fleet: f, ctx: ctx, fail: end}
	defer w.wait.Wait()
	defer end(nil)
	watched, part := store.All, false
	f.Peek(func(v *View) { part = v.part })
	if part {
		watched = objects
		w.wait.Go(w.join)
	}
	changed := func(ch store.Changes) {
		if err := f.change(ch); err != nil {
			end(err)
		}
	}
	err := f.store.Watch(ctx, watched, f.Health().Revision, changed, func() { reached(); f.noteAnswer() })
	f.stale = errors.Is(err, store.ErrCompacted)
	return err
}

// read replaces the copy with the content of the store. The copy has the ports of all networks
// if the node needs too many places now.
func (f *Fleet) read(ctx context.Context) error {
	if !f.whole {
		err := f.readSlice(ctx)
		if !errors.Is(err, errManyPlaces) {
			return err
		}
		f.log.Info("watching the ports of all networks", "reason", err, "limit", f.maxPlaces)
	}
	view, err := Read(ctx, f.store)
	if err == nil {
		err = f.replace(view, nil)
	}
	return err
}

// replace returns an error for a store that lost its content, or is another store, because the
// agent would remove all ports. Other nodes may have written to the store since then.
func (f *Fleet) replace(view *View, places map[place]*joined) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	used, known, had := f.used, f.known, false
	if f.view != nil && !f.view.IsNew() {
		used, known = true, f.view.id
		_, had = f.view.Node(f.node)
	}
	_, has := view.Node(f.node)
	f.lost = nil
	switch {
	case used && view.IsNew():
		f.lost = errors.New("the store lost its content: it is empty")
	case used && (known != "" || f.view != nil) && view.id != known:
		f.lost = fmt.Errorf("another store has the address of the store: its id is %q, and the id of the store that this node used is %q", view.id, known)
	case f.isBack && had && !has:
		f.lost = fmt.Errorf("the store lost its content: it has no node %q", f.node)
	}
	if f.lost != nil {
		f.lost = fmt.Errorf("%w (revision %d); this node keeps its ports, and the last copy of the state stays in use; restore the former store or a backup, or start the agent once with --new-store, which removes the ports that this store does not have", f.lost, view.revision)
		return f.lost
	}
	f.view, f.joined, f.isBack = view, places, false
	f.absence.read(view, time.Now())
	f.noteAnswerLocked()
	f.notify(Touched{All: true})
	return nil
}

// noteBack records that the store went back to an older revision, if this is the error.
func (f *Fleet) noteBack(err error) {
	var back *store.WentBackError
	if !errors.As(err, &back) {
		return
	}
	f.log.Warn("the store is read again", "error", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isBack = true
	f.wentBack = fmt.Sprintf("at %s %v", time.Now().UTC().Format(time.RFC3339), err)
	f.notify(Touched{})
}

// change applies a commit to the copy. It returns a *SchemaError if another version
// has written the store, and errFewPlaces if a copy of all ports is no longer necessary.
func (f *Fleet) change(ch store.Changes) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ch.IsEmpty() {
		f.view.revision = max(f.view.revision, ch.Revision)
		f.wake()
		return nil
	}
	touched := f.view.apply(ch)
	if touched.leaks || slices.ContainsFunc(touched.hosts, f.concerns) {
		pause.Wake(f.moved)
	}
	f.absence.change(f.view, ch, time.Now())
	f.noteAnswerLocked()
	f.notify(touched)
	if !f.whole && !f.view.part && (touched.leaks || len(touched.hosts) > 0) && len(f.view.around(f.node)) <= f.maxPlaces/2 {
		return errFewPlaces
	}
	return f.view.known()
}

// concerns reports whether a place is around the node, or was until its key was deleted.
func (f *Fleet) concerns(p place) bool {
	return p.node == f.node || f.view.isAround(p.network, f.node)
}

func (f *Fleet) noteAnswer() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noteAnswerLocked()
}

// noteAnswerLocked records that the store answers. The caller holds mu.
func (f *Fleet) noteAnswerLocked() {
	if f.problem != nil {
		last := f.heard
		if last.IsZero() {
			last = f.began
		}
		f.log.Info("the store is reachable again", "silent_for", time.Since(last).Round(time.Millisecond))
		f.problem = nil
		f.absence.reconnected(f.view, time.Now())
		f.notify(Touched{})
	}
	f.heard = time.Now()
}

// wake wakes all goroutines in await. The caller holds mu.
func (f *Fleet) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// notify wakes all waiting goroutines and watchers. The caller holds mu.
func (f *Fleet) notify(t Touched) {
	f.wake()
	for w := range f.watchers {
		w.add(t)
	}
}

func (f *Fleet) setProblem(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil || f.problem != nil && f.problem.Error() == err.Error() {
		return
	}
	// The first error is often only that the connection ended.
	if f.problem == nil || errors.Is(err, store.ErrHandshake) && !errors.Is(f.problem, store.ErrHandshake) {
		f.log.Warn("the store cannot be used; the copy of its state stays in use", "error", err)
	}
	f.problem = err
	f.notify(Touched{})
}

// Health is the state of the store and of its copy.
type Health struct {
	Read     bool      // the store has been read at least once
	Heard    time.Time // when it last answered
	Problem  error     // why the store does not answer; nil: it answers
	Revision int64     // of the copy
	WentBack string    // when and how the store last went back to an older revision; "": never
}

// Health returns the state of the store and of its copy.
func (f *Fleet) Health() Health {
	f.mu.RLock()
	defer f.mu.RUnlock()
	h := Health{Read: f.view != nil, Heard: f.heard, Problem: f.problem, WentBack: f.wentBack}
	if f.view != nil {
		h.Revision = f.view.Revision()
	}
	return h
}

// Look waits until the store has been read for the first time. Then it calls a
// function with the copy. The function must not keep or change the copy.
func (f *Fleet) Look(ctx context.Context, look func(*View)) error {
	if err := f.await(ctx, func() bool { return f.view != nil }); err != nil {
		return err
	}
	f.Peek(look)
	return nil
}

// Peek is Look without waiting. It returns false if the store has not been read
// yet.
func (f *Fleet) Peek(look func(*View)) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.view == nil {
		return false
	}
	look(f.view)
	return true
}

// Reach waits until the store answers. Its error wraps store.ErrUnavailable.
func (f *Fleet) Reach(ctx context.Context) error {
	return f.await(ctx, func() bool { return f.view != nil && f.problem == nil })
}

// await waits until a condition holds. It checks the condition with mu held.
func (f *Fleet) await(ctx context.Context, condition func() bool) error {
	check := func() (holds bool, changed <-chan struct{}, problem error) {
		f.mu.RLock()
		defer f.mu.RUnlock()
		return condition(), f.changed, f.problem
	}
	for {
		holds, changed, problem := check()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if problem != nil {
				return problem
			}
			return fmt.Errorf("wait for the store: %w: %w", store.ErrUnavailable, context.Cause(ctx))
		}
	}
}

// awaitCommit waits until the copy has a commit, as far as the commit concerns this node, but
// not longer than maxCopyWait. A timeout is no error, since the store already has the commit.
func (f *Fleet) awaitCommit(ctx context.Context, c store.Commit, revision int64) {
	ctx, cancel := context.WithTimeout(ctx, maxCopyWait)
	defer cancel()
	if err := f.await(ctx, func() bool { return f.contains(c, revision) }); err != nil {
		f.log.Warn("a change was committed, but this host's copy does not have it yet", "revision", revision, "error", err)
	}
}

// maxCopyWait is the time limit of awaitCommit.
const maxCopyWait = 5 * time.Second

// Change makes the commit that decide returns, and waits until the copy has it. need says of
// which ports decide must know.
// On a conflict it calls decide again. It skips empty commits. If Change
// returns store.ErrUnavailable, the store may still have made the commit.
func (f *Fleet) Change(ctx context.Context, need Need, decide func(*View) (store.Commit, error)) error {
	found := map[string]int64{}   // revisions of the keys because of which the store refused a commit
	conflicts := map[string]int{} // and the number of these refusals
	for attempt := 0; ; attempt++ {
		var c store.Commit
		var decided error
		var used *View
		if err := f.LookAt(ctx, need, func(v *View) {
			used = v
			if decided = v.known(); decided != nil {
				return
			}
			if c, decided = decide(v); decided == nil {
				c.Base = v.revision
				v.checkSchema(&c)
				v.overwrite(&c, found)
			}
		}); err != nil {
			return err
		}
		if decided != nil {
			if need.widen(used, decided, conflicts) {
				continue
			}
			return decided
		}
		if len(c.Put) == 0 && len(c.Delete) == 0 {
			return nil
		}
		revision, err := f.commit(ctx, c)
		var conflict *store.ConflictError
		switch {
		case err == nil:
			f.awaitCommit(ctx, c, revision)
			return nil
		case errors.As(err, &conflict) && attempt < maxAttempts:
			maps.Copy(found, conflict.Revisions)
			need.widen(used, err, conflicts)
			if err := f.catchUp(ctx, attempt); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// refused returns why the store must not be used; nil: it can be used.
func (f *Fleet) refused() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.lost
}

// commit makes a commit, unless the store is refused.
func (f *Fleet) commit(ctx context.Context, c store.Commit) (int64, error) {
	if err := f.refused(); err != nil {
		return 0, err
	}
	return f.store.Commit(ctx, c)
}

// maxAttempts is the maximum number of retries after conflicts.
const maxAttempts = 100

// catchUp waits until the copy changes, but only for a few milliseconds, since
// the copy may already have the conflicting commit.
func (f *Fleet) catchUp(ctx context.Context, attempt int) error {
	f.mu.RLock()
	changed := f.changed
	f.mu.RUnlock()
	select {
	case <-changed:
	case <-time.After(time.Duration(min(attempt+1, 20)) * (time.Millisecond + rand.N(4*time.Millisecond))):
	case <-ctx.Done():
		return fmt.Errorf("change the state: %w", context.Cause(ctx))
	}
	return nil
}
