package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// shared is the agent's side of the store: the copy that follows it, and what
// has to be done there once it answers again.
type shared struct {
	*fleet.Fleet
	address store.Address
	store   store.Store
	watcher *fleet.Watcher
	ended   chan error // why the agent may not go on: another is this node, the store is newer

	wait  sync.WaitGroup
	awake chan struct{} // something is to be done in the store
}

// Times of an agent and its store.
const (
	startWait   = 3 * time.Second // for a store to answer, before what is known of it is used
	storeWait   = 5 * time.Second // for a change that somebody waits for
	retryLeaves = time.Second
)

// openStore opens what the configuration says. A node that is a network namespace
// reaches its store from there, and serves others there.
func openStore(c Config, here *space) (a store.Address, s store.Store, err error) {
	if a, err = store.ParseAddress(c.Store); err != nil {
		return a, nil, err
	}
	k := kept{c.StateDir, c.Node}
	switch a.Kind {
	case store.KindFile:
		s, err = store.OpenFile(k.storePath())
	case store.KindEmbedded:
		err = here.once(func() (err error) {
			s, err = store.OpenEmbedded(store.EmbeddedOptions{Dir: k.embeddedDir(), Listen: c.StoreListen, TLS: c.StoreTLS, Insecure: c.StoreInsecure})
			return err
		})
	default:
		s, err = store.OpenEtcd(a, c.StoreTLS, func(ctx context.Context, address string) (conn net.Conn, err error) {
			var d net.Dialer
			err = here.once(func() (err error) {
				conn, err = d.DialContext(ctx, "tcp", address)
				return err
			})
			return conn, err
		})
	}
	return a, s, err
}

// joins tells whether other nodes' agents use the store too.
func (s *shared) joins() bool { return s.address.Kind != store.KindFile }

// mayBeAway tells whether the store is somewhere else.
func (s *shared) mayBeAway() bool { return s.address.Kind == store.KindEtcd }

// joinStore opens the store and begins to follow it.
func (a *agent) joinStore(ctx context.Context) error {
	address, st, err := openStore(a.config, a.space)
	if err != nil {
		return fmt.Errorf("node %s: %w", a.config.Node, err)
	}
	s := &shared{
		Fleet:   fleet.New(st, fleet.Options{Lease: a.config.Lease, Logger: a.log}),
		address: address, store: st, ended: make(chan error, 2), awake: make(chan struct{}, 1),
	}
	s.watcher = s.Watcher()
	a.shared = s
	s.wait.Go(func() {
		if err := s.Run(ctx); err != nil {
			s.ended <- err
		}
	})
	return nil
}

// leaveStore ends all use of the store, once ctx of joinStore has ended. A node
// that was removed is not waited for until its lease is over.
func (a *agent) leaveStore() error {
	a.shared.wait.Wait()
	if a.removed && a.shared.joins() {
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		defer cancel()
		if err := a.shared.Leave(ctx, a.config.Node); err != nil {
			a.log.Warn("the node is known as alive until its lease is over", "error", err)
		}
	}
	return a.shared.store.Close()
}

// firstSlice is what to begin with: the store's, else what was known of it last.
// nil: neither is to be had, and what the kernel has stays as it is.
func (a *agent) firstSlice(ctx context.Context) (*model.State, error) {
	wait := startWait
	if !a.shared.mayBeAway() {
		wait = time.Minute
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var slice *model.State
	var empty bool
	var taken error
	err := a.shared.Look(waiting, func(v *fleet.View) {
		s := v.Slice(a.config.Node, nil)
		slice, empty = &s, v.IsEmpty()
		if _, known := v.Node(a.config.Node); !known && a.shared.joins() {
			slice = &model.State{} // until it has made itself known
		}
		taken = a.shared.Taken(v, a.config.Node, a.own.Instance)
	})
	switch {
	case taken != nil:
		return nil, taken
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && empty && a.config.State != "":
		return a.applyFirst(ctx)
	case err == nil:
		return slice, nil
	}
	select {
	case err := <-a.shared.ended: // a newer store
		return nil, err
	default:
	}
	if !a.shared.mayBeAway() {
		a.log.Warn("the store does not answer; what the kernel has stays as it is", "error", err)
		return nil, nil
	}
	known, err2 := a.kept.loadSlice()
	if err2 != nil {
		return nil, err2
	}
	a.log.Warn("the store does not answer; what was known of it is in force", "error", err, "known", known != nil)
	return known, nil
}

// applyFirst applies the configured state to a store that has none.
func (a *agent) applyFirst(ctx context.Context) (*model.State, error) {
	text, err := os.ReadFile(a.config.State)
	if err != nil {
		return nil, fmt.Errorf("read the state to begin with: %w", err)
	}
	state, err := model.Parse(a.config.State, text)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*model.State, error) {
		return nil, fmt.Errorf("the state to begin with, %s: %w", a.config.State, err)
	}
	if err := state.Validate(); err != nil {
		return fail(err)
	}
	if _, has := state.Node(a.config.Node); !has {
		return fail(noSuchNode(a.config.Node, state))
	}
	if err := a.shared.Apply(ctx, state); err != nil {
		return fail(err)
	}
	var slice model.State
	err = a.shared.Look(ctx, func(v *fleet.View) { slice = v.Slice(a.config.Node, nil) })
	return &slice, err
}

// attend makes the node known in a shared store, and known as alive.
func (a *agent) attend(ctx context.Context) {
	host, _ := os.Hostname()
	me := fleet.Alive{Instance: a.own.Instance, Host: host, PID: os.Getpid(), Version: a.version, Since: a.started}
	s := a.shared
	s.wait.Go(func() {
		for ctx.Err() == nil {
			if err := a.register(ctx); err == nil || !sleepFor(ctx, retryLeaves) {
				break
			}
		}
		err := s.Attend(ctx, a.config.Node, me, func() { a.log.Info("node is known as alive", "store", s.address.String()) })
		if err != nil {
			s.ended <- err
		}
	})
	s.wait.Go(func() { a.finishLeaving(ctx) })
}

// register makes the node known, unless it is. A change of its underlay is the
// operator's to make.
func (a *agent) register(ctx context.Context) error {
	var known bool
	if err := a.shared.Look(ctx, func(v *fleet.View) { _, known = v.Node(a.config.Node) }); err != nil || known {
		return err
	}
	underlay, err := a.underlayAddresses()
	if err == nil && len(underlay) == 0 {
		err = fmt.Errorf("its underlay address is not known: write fabric or underlay into its configuration, or make it known with `vrouter node add`")
	}
	if err == nil {
		err = a.shared.PutNode(ctx, model.Node{Name: a.config.Node, Underlay: underlay, Encapsulations: a.config.Encapsulations})
	}
	if err != nil {
		a.log.Warn("the node could not be made known", "error", err)
		return err
	}
	a.log.Info("node made known", "underlay", underlay)
	return nil
}

// underlayAddresses are the configured ones, else those of the fabric devices.
func (a *agent) underlayAddresses() ([]netip.Addr, error) {
	if len(a.config.Underlay) > 0 {
		return a.config.Underlay, nil
	}
	return a.space.globalAddresses(a.config.Fabric)
}

func sleepFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// leave notes a port that is gone here and shall go from the store.
func (a *agent) leave(port string) error {
	if !slices.Contains(a.own.Leaving, port) {
		a.own.Leaving = append(a.own.Leaving, port)
	}
	if err := a.kept.saveNode(a.own); err != nil {
		a.own.Leaving = slices.DeleteFunc(a.own.Leaving, func(p string) bool { return p == port })
		return err
	}
	a.shared.wake()
	return nil
}

func (s *shared) wake() {
	select {
	case s.awake <- struct{}{}:
	default:
	}
}

// finishLeaving deletes from the store what could not be deleted when it was
// asked for.
func (a *agent) finishLeaving(ctx context.Context) {
	told := "" // what the log says already
	for {
		var ports []string
		if err := a.ask(ctx, func() error { ports = slices.Clone(a.own.Leaving); return nil }); err != nil {
			return
		}
		for _, port := range ports {
			_, err := a.shared.DeletePort(ctx, port)
			if err != nil && !fleet.IsWhy(err, fleet.NotFound) {
				if why := err.Error(); why != told && !errors.Is(err, store.ErrUnavailable) {
					a.log.Warn("a port that is gone here cannot be deleted from the store", "port", port, "error", err)
					told = why
				}
				break
			}
			if a.ask(ctx, func() error { return a.hasLeft(port) }) != nil {
				return
			}
		}
		var again <-chan time.Time
		if len(ports) > 0 {
			again = time.After(retryLeaves)
		}
		select {
		case <-a.shared.awake:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

func (a *agent) hasLeft(port string) error {
	a.own.Leaving = slices.DeleteFunc(a.own.Leaving, func(p string) bool { return p == port })
	if err := a.kept.saveNode(a.own); err != nil {
		a.log.Warn("what is still to be deleted could not be noted", "error", err)
	}
	a.publish()
	return nil
}
