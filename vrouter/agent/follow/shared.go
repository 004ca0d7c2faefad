package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/liveness"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// shared is the agent's copy of the store, and the changes that wait until the
// store is reachable.
type shared struct {
	*fleet.Fleet
	Address store.Address
	store   store.Store
	Changes *fleet.Watcher
	Ended   chan error // reason why the agent must stop: another agent runs this node, or a newer version wrote the store

	wait  sync.WaitGroup
	awake chan struct{} // receives a value when a change waits for the store
}

// Times of an agent and its store.
const (
	startWait   = 3 * time.Second // wait for the store at the start; then the agent uses the saved state
	StoreWait   = 5 * time.Second // wait for the store in a request
	retryLeaves = time.Second
)

// openStore opens the configured store. It dials and listens in the node's network
// namespace.
func openStore(c config.Config, here *netdev.Space) (a store.Address, s store.Store, err error) {
	if a, err = store.ParseAddress(c.Store); err != nil {
		return a, nil, err
	}
	k := KeptOf(c)
	switch a.Kind {
	case store.KindFile:
		s, err = store.OpenFile(k.storePath())
	case store.KindEmbedded:
		err = here.Once(func() (err error) {
			s, err = store.OpenEmbedded(store.EmbeddedOptions{Dir: k.EmbeddedDir(), Listen: c.StoreListen, TLS: c.StoreTLS, Insecure: c.StoreInsecure})
			return inNamespace(c.Netns, c.StoreListen, err)
		})
	default:
		s, err = store.OpenEtcd(a, c.StoreTLS, func(ctx context.Context, address string) (conn net.Conn, err error) {
			var d net.Dialer
			err = here.Once(func() (err error) {
				conn, err = d.DialContext(ctx, "tcp", address)
				return err
			})
			return conn, inNamespace(c.Netns, address, err)
		})
	}
	return a, s, err
}

// inNamespace adds the network namespace to an error about an address. A loopback address of a
// namespace is not the host's, so the error says this too.
func inNamespace(netns, address string, err error) error {
	if err == nil || netns == "" {
		return err
	}
	host, _, _ := net.SplitHostPort(address)
	if a, parsed := netip.ParseAddr(host); host == "localhost" || parsed == nil && a.IsLoopback() {
		return fmt.Errorf("in network namespace %s (netns), whose loopback addresses are not the host's: %w", netns, err)
	}
	return fmt.Errorf("in network namespace %s (netns): %w", netns, err)
}

// IsShared reports whether other nodes can use the store.
func (s *shared) IsShared() bool { return s.Address.Kind != store.KindFile }

// isRemote reports whether the store runs outside this agent.
func (s *shared) isRemote() bool { return s.Address.Kind == store.KindEtcd }

// Join reads the node's files, opens the store and starts to follow it.
func Join(ctx context.Context, c config.Config, log *slog.Logger, here *netdev.Space) (*Follower, error) {
	f := &Follower{config: c, log: log, space: here, Kept: KeptOf(c), Requests: make(chan func()), saving: saving{slices: make(chan model.Slice, 1)}}
	f.Kept.removePartialFiles()
	var err error
	if f.Own, err = f.Kept.LoadNode(); err != nil {
		return nil, err
	}
	if c.Store == string(store.KindEmbedded) && store.IsNewEmbedded(f.Kept.EmbeddedDir()) { // opening it creates its data
		if err := f.checkNewStore(); err != nil {
			return nil, err
		}
	}
	address, st, err := openStore(c, here)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", c.Node, err)
	}
	if file, is := st.(*store.File); is && file.IsNew() {
		if err := f.checkNewStore(); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	o := fleet.Options{Lease: c.Lease, Logger: log, Node: c.Node, Whole: address.Kind == store.KindFile}
	if f.hasPorts() {
		o.Used, o.Store = true, f.Own.Store
	}
	s := &shared{
		Fleet:   fleet.New(st, o),
		Address: address, store: st, Ended: make(chan error, 2), awake: make(chan struct{}, 1),
	}
	s.Changes = s.Watcher()
	f.shared = s
	f.prober = liveness.Run(ctx, cmp.Or(c.Liveness, liveness.DefaultInterval), here.Once, log, &s.wait)
	s.wait.Go(func() { f.probe(ctx) })
	s.wait.Go(func() { f.saveSlices(ctx) })
	s.wait.Go(func() {
		if err := s.Run(ctx); err != nil {
			s.Ended <- err
		}
	})
	return f, nil
}

// checkNewStore returns an error for an unused store if the node had ports: the agent would remove
// them all.
func (f *Follower) checkNewStore() error {
	if !f.hasPorts() {
		return nil
	}
	return fmt.Errorf("node %s: its store is missing or empty, and all ports of the node (there were %d) would be removed; packets keep flowing; restore the store from a backup, or start the agent once with --new-store", f.config.Node, f.Own.IDs.Vifs())
}

// hasPorts reports whether the node has ports that it must not lose.
func (f *Follower) hasPorts() bool { return f.Own.IDs.Vifs() > 0 && !f.config.NewStore }

// Close tells the other nodes that the agent stops, and closes the store. Call it after the
// context of Join has ended. For a removed node it deletes the node's alive key instead, so
// that other nodes do not wait until the key's lease expires.
func (f *Follower) Close(removed bool) error {
	f.wait.Wait()
	f.saveLastSlice()
	ctx, cancel := context.WithTimeout(context.Background(), StoreWait)
	defer cancel()
	if f.IsShared() && !removed {
		if err := f.Stop(ctx, f.config.Node, f.Own.Instance); err != nil {
			f.log.Warn("cannot tell the other nodes that this agent stops; routes through this node stay until its alive key expires", "error", err)
		}
	}
	if removed && f.IsShared() {
		if err := f.Leave(ctx, f.config.Node); err != nil {
			f.log.Warn("cannot delete the node's alive key; it expires with the lease", "error", err)
		}
	}
	return f.store.Close()
}

// InitialSlice returns the node's slice when the agent starts: from the store, else
// from disk. nil: neither has a slice, and the kernel's tables stay as they are.
func (f *Follower) InitialSlice(ctx context.Context) (*model.Slice, error) {
	wait := startWait
	if !f.isRemote() {
		wait = time.Minute
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var slice *model.Slice
	var empty bool
	var taken error
	err := f.Look(waiting, func(v *fleet.View) {
		s := v.Slice(f.config.Node, nil)
		slice, empty = &s, v.IsEmpty()
		if _, known := v.Node(f.config.Node); !known && f.IsShared() {
			slice = &model.Slice{} // an empty slice until register has added the node
		}
		taken = f.Taken(v, f.config.Node, f.Own.Instance)
	})
	switch {
	case taken != nil:
		return nil, taken
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && empty && f.config.State != "":
		return f.applyFirst(ctx)
	case err == nil:
		return slice, nil
	}
	select {
	case err := <-f.Ended: // a newer version of the agent wrote the store
		return nil, err
	default:
	}
	if !f.isRemote() {
		f.log.Warn("the store does not answer; the kernel's tables stay as they are", "error", err)
		return nil, nil
	}
	known, err2 := f.Kept.loadSlice()
	if err2 != nil {
		return nil, err2
	}
	f.log.Warn("the store does not answer; using the saved state", "error", err, "known", known != nil)
	return known, nil
}

// applyFirst applies the configured state file to an empty store.
func (f *Follower) applyFirst(ctx context.Context) (*model.Slice, error) {
	text, err := os.ReadFile(f.config.State)
	if err != nil {
		return nil, fmt.Errorf("read the configured state file: %w", err)
	}
	state, err := model.Parse(f.config.State, text)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*model.Slice, error) {
		return nil, fmt.Errorf("apply the configured state file %s: %w", f.config.State, err)
	}
	if err := state.Validate(); err != nil {
		return fail(err)
	}
	if _, has := state.Node(f.config.Node); !has {
		return fail(reconcile.NoSuchNode(f.config.Node, state))
	}
	if err := f.Apply(ctx, state); err != nil {
		return fail(err)
	}
	var slice model.Slice
	err = f.Look(ctx, func(v *fleet.View) { slice = v.Slice(f.config.Node, nil) })
	return &slice, err
}

// KeepAlive adds the node to a shared store and keeps its alive key. It also keeps the underlay
// addresses of a node that an agent added.
func (f *Follower) KeepAlive(ctx context.Context, me fleet.Alive) {
	s := f.shared
	s.wait.Go(func() {
		for !f.registered(ctx, true) && pause.For(ctx, retryLeaves) == nil {
		}
		s.wait.Go(func() {
			for pause.For(ctx, f.config.RepairInterval) == nil {
				f.registered(ctx, false)
			}
		})
		err := s.Attend(ctx, f.config.Node, me, func() { f.log.Info("the node's alive key is written", "store", s.Address.String()) })
		if err != nil {
			s.Ended <- err
		}
	})
	s.wait.Go(func() { f.finishLeaving(ctx) })
}

// registered calls register. It logs each error once, and keeps it for the status.
func (f *Follower) registered(ctx context.Context, add bool) bool {
	text, err := "", f.register(ctx, add)
	if err != nil && ctx.Err() == nil {
		text = fmt.Sprintf("cannot add this node to the store, or change its underlay addresses there: %v; if the store checks roles, an operator must run `vrouter node add`", err)
	}
	if was, _ := f.unregistered.Swap(text).(string); text != "" && text != was {
		f.log.Warn("the node's entry in the store is not right", "error", text)
	}
	return err == nil
}

// Unregistered returns why the node's entry in a shared store is missing or has old underlay
// addresses; "" if the entry is correct.
func (f *Follower) Unregistered() string {
	text, _ := f.unregistered.Load().(string)
	return text
}

// register adds the node to the store if the node is missing and add is true. If an agent added the
// node before, register updates the underlay addresses (renew).
func (f *Follower) register(ctx context.Context, add bool) error {
	var is model.Node
	var known bool
	if err := f.Look(ctx, func(v *fleet.View) { is, known = v.Node(f.config.Node) }); err != nil {
		return err
	}
	if known {
		return f.renew(ctx, is)
	}
	if !add {
		return nil // an operator deleted it
	}
	underlay, err := f.underlayAddresses()
	if err == nil && len(underlay) == 0 {
		err = fmt.Errorf("this node's underlay address is unknown: set fabric or underlay in the configuration, or use `vrouter node add`")
	}
	if err == nil {
		put, n := f.PutNode, model.Node{Name: f.config.Node, Underlay: underlay, Encapsulations: f.config.Encapsulations, Locator: f.config.Locator.Prefix}
		if f.config.Locator.Auto {
			put = f.PutNodeFromPool
		}
		err = f.Kept.noteRegistered(func() error { return put(ctx, n) })
	}
	if err != nil {
		return err
	}
	f.log.Info("added the node to the store", "underlay", underlay)
	return nil
}

// renew updates the underlay addresses in the node's entry in the store, if an agent added the entry.
// It does so if the host lost an address of the entry, or got back an address that renew removed.
func (f *Follower) renew(ctx context.Context, n model.Node) error {
	if !f.Kept.isRegistered() {
		return nil
	}
	has, err := f.space.Addresses()
	here := func(a netip.Addr) bool { return has[a] }
	away := func(a netip.Addr) bool { return !has[a] }
	if err != nil || !slices.ContainsFunc(n.Underlay, away) && !slices.ContainsFunc(f.away, here) {
		return err
	}
	underlay, err := f.underlayAddresses()
	if err != nil || len(underlay) == 0 || slices.Equal(underlay, n.Underlay) {
		return err
	}
	was := n.Underlay
	n.Underlay = underlay
	if err := f.PutNode(ctx, n); err != nil {
		return err
	}
	f.away = slices.DeleteFunc(slices.Concat(f.away, was), here)
	f.log.Info("changed the node's underlay addresses in the store", "was", was, "underlay", underlay)
	return nil
}

// PutNodeFromPool is like Fleet.PutNodeFromPool. If the node is this one, it gets no locator that
// its host refuses.
func (f *Follower) PutNodeFromPool(ctx context.Context, n model.Node) error {
	if n.Name != f.config.Node {
		return f.Fleet.PutNodeFromPool(ctx, n, nil)
	}
	use, err := netdev.HostUseOf(f.space)
	if err != nil {
		return fmt.Errorf("locator: auto: %w", err)
	}
	return f.Fleet.PutNodeFromPool(ctx, n, use.Check)
}

// underlayAddresses returns the configured addresses, else those of the fabric
// devices.
func (f *Follower) underlayAddresses() ([]netip.Addr, error) {
	if len(f.config.Underlay) > 0 {
		return f.config.Underlay, nil
	}
	return f.space.UnderlayAddresses(f.config.Fabric)
}

// DeleteLater records a port that is deleted on this node. finishLeaving deletes it from
// the store later.
func (f *Follower) DeleteLater(port string) error {
	if !slices.Contains(f.Own.Leaving, port) {
		f.Own.Leaving = append(f.Own.Leaving, port)
	}
	if err := f.Kept.saveNode(f.Own); err != nil {
		f.Own.Leaving = slices.DeleteFunc(f.Own.Leaving, func(p string) bool { return p == port })
		return err
	}
	f.wake()
	return nil
}

func (s *shared) wake() {
	select {
	case s.awake <- struct{}{}:
	default:
	}
}

// finishLeaving deletes the recorded ports from the store when it is reachable.
func (f *Follower) finishLeaving(ctx context.Context) {
	logged := map[string]string{} // last logged error of each port, so that an error is not logged again
	for {
		var ports []string
		if err := f.Ask(ctx, func() error { ports = slices.Clone(f.Own.Leaving); return nil }); err != nil {
			return
		}
		for _, port := range ports {
			_, err := f.DeletePort(ctx, port, nil)
			if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
				break
			}
			if err != nil && !fleet.IsWhy(err, fleet.NotFound) {
				if why := err.Error(); why != logged[port] {
					f.log.Warn("cannot delete a port from the store; the agent retries", "port", port, "error", err)
					logged[port] = why
				}
				continue
			}
			if f.Ask(ctx, func() error { return f.HasLeft(port) }) != nil {
				return
			}
		}
		var again <-chan time.Time
		if len(ports) > 0 {
			again = time.After(retryLeaves)
		}
		select {
		case <-f.awake:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// HasLeft records that a port is deleted from the store too. Call it in the loop.
func (f *Follower) HasLeft(port string) error {
	f.Own.Leaving = slices.DeleteFunc(f.Own.Leaving, func(p string) bool { return p == port })
	if err := f.Kept.saveNode(f.Own); err != nil {
		f.log.Warn("cannot save the list of ports to delete from the store", "error", err)
	}
	f.publish()
	return nil
}
