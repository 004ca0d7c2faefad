// Package fleet is the desired state that the hosts of a fleet share: what its
// keys mean, who may change what, and a copy of it all that follows the store.
//
// Every change is decided on the copy and committed on the condition that what
// it was decided by still holds, so that two hosts can never both be right
// about the same address. See Commit in package store.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"windtunnel/vrouter/store"
)

// Fleet is a copy of the shared state that follows its store. It may be used by
// several goroutines.
type Fleet struct {
	store store.Store
	log   *slog.Logger
	stale bool // Run's own: the copy is too old to go on from

	claims claims

	mu       sync.RWMutex
	view     *View // nil: the store was not read yet
	absence  absence
	heard    time.Time // when the store last answered
	problem  error     // why it does not; nil while it does
	moved    chan struct{}
	watchers map[*Watcher]bool
}

// Options of a Fleet.
type Options struct {
	// Lease is how long a node that is not heard of counts as there.
	Lease  time.Duration
	Logger *slog.Logger // nil: no log
}

// DefaultLease is longer than a store is usually out of reach, for a node that
// cannot reach it goes on forwarding, and should go on being sent to.
const DefaultLease = 90 * time.Second

// New makes a copy of what a store holds, which Run keeps equal to it.
func New(s store.Store, o Options) *Fleet {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Fleet{
		store: s, log: o.Logger, moved: make(chan struct{}), watchers: map[*Watcher]bool{},
		claims:  claims{of: map[string]map[netip.Addr]bool{}},
		absence: absence{lease: o.Lease, since: map[string]time.Time{}},
	}
}

// Times between attempts to reach a store.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Run follows the store until ctx ends. It comes back to a store that was out of
// reach, and starts over where the store forgot what changed meanwhile. It
// returns an error only for a store that this program may not use.
func (f *Fleet) Run(ctx context.Context) error {
	wait := firstRetry
	for {
		err := f.follow(ctx, func() { wait = firstRetry })
		var newer *NewerError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &newer):
			f.trouble(err)
			return err
		case errors.Is(err, store.ErrCompacted):
			continue
		}
		f.trouble(err)
		// Hosts that lost the store together shall not come back in step.
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, lastRetry)
	}
}

// follow reads the store unless there is a copy to go on from, and then watches
// it.
func (f *Fleet) follow(ctx context.Context, reached func()) error {
	if !f.Health().Read || f.stale {
		if err := f.read(ctx); err != nil {
			return err
		}
		f.stale = false
		reached()
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	changed := func(ch store.Changes) {
		if err := f.change(ch); err != nil {
			end(err)
		}
	}
	err := f.store.Watch(ctx, f.Health().Revision, changed, func() { reached(); f.hear() })
	f.stale = errors.Is(err, store.ErrCompacted)
	return err
}

// read takes the whole store for the copy, which stays in use until then.
func (f *Fleet) read(ctx context.Context) error {
	image, err := f.store.Read(ctx)
	if err != nil {
		return err
	}
	view, err := newView(image)
	if err == nil {
		f.replace(view)
	}
	return err
}

func (f *Fleet) replace(view *View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
	f.absence.read(view, time.Now())
	f.heardNow()
	f.tell(Touched{All: true})
}

// change brings the copy up to date. An error is why it may not be used any more.
func (f *Fleet) change(ch store.Changes) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	touched := f.view.apply(ch)
	f.absence.change(f.view, ch, time.Now())
	f.heardNow()
	f.tell(touched)
	return f.view.newer()
}

func (f *Fleet) hear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heardNow()
}

// heardNow notes that the store answers. It is called with mu held.
func (f *Fleet) heardNow() {
	if f.problem != nil {
		f.log.Info("the store answers again", "silent_for", time.Since(f.heard).Round(time.Millisecond))
		f.problem = nil
		f.absence.back(f.view, time.Now())
		f.tell(Touched{})
	}
	f.heard = time.Now()
}

// tell wakes all who wait. It is called with mu held.
func (f *Fleet) tell(t Touched) {
	close(f.moved)
	f.moved = make(chan struct{})
	for w := range f.watchers {
		w.add(t)
	}
}

func (f *Fleet) trouble(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.problem == nil {
		f.log.Warn("the store is out of reach; what is known of it stays in force", "error", err)
		f.problem = err
		f.tell(Touched{})
	}
}

// Health is how the store is.
type Health struct {
	Read     bool      // it was, at least once
	Heard    time.Time // when it last answered
	Problem  error     // why it does not answer; nil while it does
	Revision int64     // of the copy
}

// Health tells how the store is.
func (f *Fleet) Health() Health {
	f.mu.RLock()
	defer f.mu.RUnlock()
	h := Health{Read: f.view != nil, Heard: f.heard, Problem: f.problem}
	if f.view != nil {
		h.Revision = f.view.Revision()
	}
	return h
}

// Look calls a function with the copy, which it may not keep or change. Before
// the store was read for the first time it waits for that.
func (f *Fleet) Look(ctx context.Context, look func(*View)) error {
	if err := f.await(ctx, func() bool { return f.view != nil }); err != nil {
		return err
	}
	f.Peek(look)
	return nil
}

// Peek is Look that does not wait: false where the store was not read yet.
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

// await waits until something is so, which is asked with mu held.
func (f *Fleet) await(ctx context.Context, so func() bool) error {
	for {
		f.mu.RLock()
		there, moved, problem := so(), f.moved, f.problem
		f.mu.RUnlock()
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			if problem != nil {
				return problem
			}
			return fmt.Errorf("wait for the store: %w: %w", store.ErrUnavailable, context.Cause(ctx))
		}
	}
}

// seen waits until the copy has a commit that was made. It is not waited for
// long: it was made, whether this host sees it now or later.
func (f *Fleet) seen(ctx context.Context, revision int64) {
	ctx, cancel := context.WithTimeout(ctx, mostUnseen)
	defer cancel()
	if err := f.await(ctx, func() bool { return f.view != nil && f.view.Revision() >= revision }); err != nil {
		f.log.Warn("a change was made, and is not seen here yet", "revision", revision, "error", err)
	}
}

// mostUnseen is how long who changed something waits for its own copy.
const mostUnseen = 5 * time.Second

// Change decides on a commit with decide, makes it, and returns once the copy
// has it. What others changed meanwhile is decided on anew. A commit of nothing
// is not made. After an error that is store.ErrUnavailable it is not known
// whether the commit was made.
func (f *Fleet) Change(ctx context.Context, decide func(*View) (store.Commit, error)) error {
	for attempt := 0; ; attempt++ {
		var c store.Commit
		var decided error
		if err := f.Look(ctx, func(v *View) {
			if decided = v.newer(); decided != nil {
				return
			}
			if c, decided = decide(v); decided == nil {
				v.mark(&c)
			}
		}); err != nil {
			return err
		}
		if decided != nil {
			return decided
		}
		if len(c.Put) == 0 && len(c.Delete) == 0 {
			return nil
		}
		revision, err := f.store.Commit(ctx, c)
		var conflict *store.ConflictError
		switch {
		case err == nil:
			f.seen(ctx, revision)
			return nil
		case errors.As(err, &conflict) && attempt < mostAttempts:
			if err := f.catchUp(ctx, attempt); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// mostAttempts bounds a change that others get in the way of, one by one.
const mostAttempts = 100

// catchUp waits until the copy changed, or for a moment: what was in the way may
// have been seen already.
func (f *Fleet) catchUp(ctx context.Context, attempt int) error {
	f.mu.RLock()
	moved := f.moved
	f.mu.RUnlock()
	select {
	case <-moved:
	case <-time.After(time.Duration(min(attempt+1, 20)) * (time.Millisecond + rand.N(4*time.Millisecond))):
	case <-ctx.Done():
		return fmt.Errorf("change the state: %w", context.Cause(ctx))
	}
	return nil
}
