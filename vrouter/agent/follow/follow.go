// Package follow connects a node to the store: it opens the store, applies the fleet's
// changes to the node, registers the node, and keeps the node's files.
package follow

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/liveness"
	"windtunnel/vrouter/model"
)

// Follower applies the store's changes to the node, and saves the node's files. It has
// the node's copy of the store, and the changes that wait until the store is reachable.
// Only the agent's loop may call its methods. Other goroutines may call Ask,
// ChangePending, AfterFollow and the methods of shared.
type Follower struct {
	*shared
	config     config.Config
	log        *slog.Logger
	space      *netdev.Space
	Kept       Kept
	Own        KeptNode // node.json; used only by the loop once the loop runs
	reconciler *reconcile.Reconciler
	saving     saving
	prober     *liveness.Prober
	workloads  *liveness.Prober // of workloads that are next hops of routes; nil: liveness is not configured
	publish    func()           // called after a change that no pass has published

	Requests     chan func()         // functions for the loop
	coming       atomic.Int32        // requests whose changes are not committed yet
	unregistered atomic.Value        // see Unregistered
	away         []netip.Addr        // underlay addresses that renew removed from the node's entry
	Unfit        error               // reason why the node cannot use the store's state; nil: it uses the state
	goneAt       time.Time           // time at which the next silent node counts as gone; zero: no node is silent
	followTook   time.Duration       // duration of the last call of TakeOver, at most maxGather
	waiting      []func(unfit error) // CatchUp calls them after the node has applied the store's changes
	Gathered     <-chan time.Time    // fires when CatchUp is due for gathered changes; nil: no changes are gathered
}

// Start sets the reconciler to which the follower applies the store's changes. The
// follower calls publish after a change that no pass has published.
func (f *Follower) Start(r *reconcile.Reconciler, publish func()) {
	f.reconciler, f.publish = r, publish
}

// Follow applies the store's changes that concern this node. If the node cannot use
// the store's state, it returns the reason. Call it in the loop.
func (f *Follower) Follow() error {
	t := f.Changes.Take()
	if t.IsZero() {
		return f.Unfit
	}
	before, was := f.reconciler.Last, f.Unfit
	if f.concerns(t) {
		f.Unfit = f.TakeOver()
	}
	if f.reconciler.Last == before || f.Unfit != was {
		f.publish() // no pass has run and published the change
	}
	return f.Unfit
}

// concerns reports whether changes may affect the node's slice. Until the store has
// been read, the answer is true for every change.
func (f *Follower) concerns(t fleet.Touched) bool {
	if t.All || t.Alive || f.reconciler.Want == nil {
		return true
	}
	if len(t.Networks) == 0 {
		return false
	}
	concerned := f.reconciler.Want.Networks()
	var now map[string]bool
	f.Peek(func(v *fleet.View) { now = v.NetworksOf(f.config.Node) })
	for name := range t.Networks {
		if concerned[name] || now[name] {
			return true
		}
	}
	return false
}

// TakeOver makes the node's slice of the store the desired state. If that is not
// possible, it returns the reason.
func (f *Follower) TakeOver() error {
	next, ok := f.slice()
	if !ok || next == f.reconciler.Want {
		return nil
	}
	if !next.HasNode() && f.IsShared() && (f.reconciler.Want == nil || !f.reconciler.Want.HasNode()) {
		return nil // register will add the node
	}
	began := time.Now()
	err := f.reconciler.Adopt(next)
	f.Own.IDs = f.reconciler.IDs
	if err != nil {
		f.log.Error("cannot use the store's state", "error", err)
		return err
	}
	f.KeepSlice()
	f.followTook = min(time.Since(began), maxGather)
	return nil
}

// slice returns the node's slice of the store's current state. Nodes that do not answer the
// prober are silent.
func (f *Follower) slice() (*reconcile.Desired, bool) {
	gone := map[string]bool{}
	if f.IsShared() {
		var next time.Duration
		if gone, next = f.Gone(); next > 0 {
			f.goneAt = time.Now().Add(next)
		} else {
			f.goneAt = time.Time{}
		}
	}
	var s model.Slice
	if !f.Peek(func(v *fleet.View) {
		f.prober.Set(f.targets(v))
		for _, node := range f.prober.Silent() {
			if _, is := gone[node]; !is && f.config.Liveness > 0 {
				gone[node] = false
			}
		}
		s = v.Slice(f.config.Node, gone, f.testWorkloads(v)...)
	}) {
		return nil, false
	}
	return reconcile.NewDesired(f.config.Node, s, f.Own.IDs, f.reconciler.Want, f.Own.Leaving...), true
}

// targets returns the underlay addresses to test. They belong to nodes that can be reached by several
// links: packets can then take another link. If liveness is configured, they also belong to the next
// hops of ECMP routes: packets can then take another next hop.
func (f *Follower) targets(v *fleet.View) map[netip.Addr]liveness.Target {
	all := map[netip.Addr]liveness.Target{}
	self, _ := v.Node(f.config.Node)
	add := func(nodes map[string]bool, links int) {
		for name := range nodes {
			other, _ := v.Node(name)
			if pairs := fib.Pairs(self, other); len(pairs) >= links {
				for a, source := range pairs {
					all[a] = liveness.Target{Node: name, Source: source}
				}
			}
		}
	}
	if len(self.Underlay) > 1 {
		add(v.Peers(self.Name), 2)
	}
	if f.config.Liveness > 0 {
		add(v.Alternatives(self.Name), 1)
	}
	return all
}

// SavedSlice returns the state that KeepSlice saved last; nil: there is none, or it cannot
// be read.
func (f *Follower) SavedSlice() *model.Slice {
	slice, _ := f.Kept.loadSlice()
	return slice
}

// SavedOffers returns the offers that KeepSlice saved last. If they cannot be read, no change of
// encapsulations is under way.
func (f *Follower) SavedOffers() *fib.Offers {
	offers, err := f.Kept.loadOffers()
	if err != nil {
		f.log.Warn("cannot read which encapsulations the nodes offered before: packets of a change that is under way may be lost", "error", err)
		offers = &fib.Offers{}
	}
	offers.Hold = f.config.Handover
	return offers
}

// GoneTimer returns a channel that fires when the next silent node counts as gone; nil: no
// node is silent.
func (f *Follower) GoneTimer() <-chan time.Time {
	if f.goneAt.IsZero() {
		return nil
	}
	return time.After(time.Until(f.goneAt))
}

// NodeGone applies the state of the fleet after a silent node counts as gone.
func (f *Follower) NodeGone() {
	f.Unfit = f.TakeOver()
	f.publish()
}

// answersChanged makes a pass after addresses have stopped or started to answer the prober.
func (f *Follower) answersChanged() {
	before := f.reconciler.Last
	f.reconciler.Silent = f.prober.Addresses()
	f.NodeGone()
	if f.reconciler.Last == before { // no route changed
		f.reconciler.Notice(netdev.Event{Other: true})
		f.reconciler.Pass(reconcile.Noticing)
	}
}

// TestWorkloads makes the node test whether its workloads answer, if liveness is configured. Only workloads that are next hops
// of routes are tested. ask must send a request to an address of a workload, and call heard if the workload answers. Call
// TestWorkloads before Start.
func (f *Follower) TestWorkloads(ctx context.Context, ask func(port string, a netip.Addr, heard func())) {
	if f.config.Liveness == 0 {
		return
	}
	f.workloads = liveness.Start(ctx, f.config.Liveness, func(to netip.Addr) {
		ask(to.Zone(), to.WithZone("").Unmap(), func() { f.workloads.Heard(to) })
	}, &f.wait)
	f.wait.Go(func() {
		for {
			select {
			case <-f.workloads.Changed():
				silent := f.SilentWorkloads()
				f.log.Info("the workloads that do not answer have changed", "silent", silent)
				if f.IsShared() {
					f.SetSilent(silent)
				}
				f.Ask(ctx, func() error { f.NodeGone(); return nil }) // fails only if ctx has ended
			case <-ctx.Done():
				return
			}
		}
	})
}

// SilentWorkloads returns the names of the node's ports that are next hops of routes, and whose workloads do not answer.
func (f *Follower) SilentWorkloads() []string {
	if f.workloads == nil {
		return nil
	}
	return slices.Sorted(slices.Values(f.workloads.Silent()))
}

// testWorkloads sets the addresses that the prober tests, and returns the workloads that do not answer (SilentWorkloads).
// Several networks can have the same address, so the zone of each address is the port's name.
func (f *Follower) testWorkloads(v *fleet.View) []string {
	if f.workloads == nil {
		return nil
	}
	all := map[netip.Addr]liveness.Target{}
	for _, p := range v.Hops(f.config.Node) {
		for _, a := range p.IPs {
			all[netip.AddrFrom16(a.As16()).WithZone(p.Name)] = liveness.Target{Node: p.Name}
		}
	}
	f.workloads.Set(all)
	return f.SilentWorkloads()
}

// probe calls answersChanged in the loop when addresses stop or start to answer the prober, until
// ctx ends.
func (f *Follower) probe(ctx context.Context) {
	for {
		select {
		case <-f.prober.Changed():
			f.log.Info("the nodes that do not answer have changed", "silent", f.prober.Silent(), "addresses", slices.Collect(maps.Keys(f.prober.Addresses())))
			f.Ask(ctx, func() error { f.answersChanged(); return nil }) // fails only if ctx has ended
		case <-ctx.Done():
			return
		}
	}
}
