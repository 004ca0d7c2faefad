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

// shared is the agent's copy of the store, and the changes that wait until the
// store is reachable.
type shared struct {
	*fleet.Fleet
	address store.Address
	store   store.Store
	watcher *fleet.Watcher
	ended   chan error // reason why the agent must stop: another agent runs this node, or a newer version wrote the store

	wait  sync.WaitGroup
	awake chan struct{} // receives a value when a change waits for the store
}

// Times of an agent and its store.
const (
	startWait   = 3 * time.Second // wait for the store at the start; then the agent uses the saved state
	storeWait   = 5 * time.Second // wait for the store in a request
	retryLeaves = time.Second
)

// openStore opens the configured store. It dials and listens in the node's network
// namespace.
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

// isShared reports whether other nodes can use the store.
func (s *shared) isShared() bool { return s.address.Kind != store.KindFile }

// isRemote reports whether the store runs outside this agent.
func (s *shared) isRemote() bool { return s.address.Kind == store.KindEtcd }

// joinStore opens the store and starts to follow it.
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

// leaveStore closes the store. Call it after the context of joinStore has ended. For
// a removed node it also deletes the node's alive key: other nodes then know at once
// that the node is gone, before its lease expires.
func (a *agent) leaveStore() error {
	a.shared.wait.Wait()
	if a.removed && a.shared.isShared() {
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		defer cancel()
		if err := a.shared.Leave(ctx, a.config.Node); err != nil {
			a.log.Warn("cannot delete the node's alive key; it expires with the lease", "error", err)
		}
	}
	return a.shared.store.Close()
}

// initialSlice returns the node's slice when the agent starts: from the store, else
// from disk. nil: neither has it, and the kernel's tables stay as they are.
func (a *agent) initialSlice(ctx context.Context) (*model.State, error) {
	wait := startWait
	if !a.shared.isRemote() {
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
		if _, known := v.Node(a.config.Node); !known && a.shared.isShared() {
			slice = &model.State{} // an empty slice until register has added the node
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
	if !a.shared.isRemote() {
		a.log.Warn("the store does not answer; the kernel's tables stay as they are", "error", err)
		return nil, nil
	}
	known, err2 := a.kept.loadSlice()
	if err2 != nil {
		return nil, err2
	}
	a.log.Warn("the store does not answer; using the saved state", "error", err, "known", known != nil)
	return known, nil
}

// applyFirst applies the configured state file to an empty store.
func (a *agent) applyFirst(ctx context.Context) (*model.State, error) {
	text, err := os.ReadFile(a.config.State)
	if err != nil {
		return nil, fmt.Errorf("read the first state: %w", err)
	}
	state, err := model.Parse(a.config.State, text)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*model.State, error) {
		return nil, fmt.Errorf("apply the first state, %s: %w", a.config.State, err)
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

// keepAlive adds the node to a shared store and keeps its alive key.
func (a *agent) keepAlive(ctx context.Context) {
	host, _ := os.Hostname()
	me := fleet.Alive{Instance: a.own.Instance, Host: host, PID: os.Getpid(), Version: a.version, Since: a.started}
	s := a.shared
	s.wait.Go(func() {
		for ctx.Err() == nil {
			if err := a.register(ctx); err == nil || !sleepFor(ctx, retryLeaves) {
				break
			}
		}
		err := s.Attend(ctx, a.config.Node, me, func() { a.log.Info("the node's alive key is written", "store", s.address.String()) })
		if err != nil {
			s.ended <- err
		}
	})
	s.wait.Go(func() { a.finishLeaving(ctx) })
}

// register adds the node to the store if it is missing. It does not change the
// underlay addresses of an existing node.
func (a *agent) register(ctx context.Context) error {
	var known bool
	if err := a.shared.Look(ctx, func(v *fleet.View) { _, known = v.Node(a.config.Node) }); err != nil || known {
		return err
	}
	underlay, err := a.underlayAddresses()
	if err == nil && len(underlay) == 0 {
		err = fmt.Errorf("this node's underlay address is unknown: set fabric or underlay in the configuration, or use `vrouter node add`")
	}
	if err == nil {
		err = a.shared.PutNode(ctx, model.Node{Name: a.config.Node, Underlay: underlay, Encapsulations: a.config.Encapsulations})
	}
	if err != nil {
		a.log.Warn("cannot add the node to the store", "error", err)
		return err
	}
	a.log.Info("added the node to the store", "underlay", underlay)
	return nil
}

// underlayAddresses returns the configured addresses, else those of the fabric
// devices.
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

// leave records a port that is deleted on this node. finishLeaving deletes it from
// the store later.
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

// finishLeaving deletes the recorded ports from the store when it is reachable.
func (a *agent) finishLeaving(ctx context.Context) {
	told := "" // last logged error, to log each error only once
	for {
		var ports []string
		if err := a.ask(ctx, func() error { ports = slices.Clone(a.own.Leaving); return nil }); err != nil {
			return
		}
		for _, port := range ports {
			_, err := a.shared.DeletePort(ctx, port)
			if err != nil && !fleet.IsWhy(err, fleet.NotFound) {
				if why := err.Error(); why != told && !errors.Is(err, store.ErrUnavailable) {
					a.log.Warn("cannot delete a port from the store that is deleted on this node", "port", port, "error", err)
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
		a.log.Warn("cannot save the list of ports to delete from the store", "error", err)
	}
	a.publish()
	return nil
}
