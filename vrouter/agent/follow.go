package agent

import (
	"net/http"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// follow applies the store's changes that concern this node. If the node cannot use
// the store's state, it returns the reason. Call it in the loop.
func (a *agent) follow() error {
	t := a.shared.watcher.Take()
	if t.IsZero() {
		return a.unfit
	}
	before, was := a.view.Load(), a.unfit
	if a.concerns(t) {
		a.unfit = a.takeOver()
	}
	if a.view.Load() == before || a.unfit != was {
		a.publish() // no pass has run and published the change
	}
	return a.unfit
}

// concerns reports whether changes may affect the node's slice. Until the store has
// been read, the answer is true for every change.
func (a *agent) concerns(t fleet.Touched) bool {
	if t.All || t.Alive || a.want == nil {
		return true
	}
	if len(t.Networks) == 0 {
		return false
	}
	concerned := a.want.networks()
	var now map[string]bool
	a.shared.Peek(func(v *fleet.View) { now = v.NetworksOf(a.config.Node) })
	for name := range t.Networks {
		if concerned[name] || now[name] {
			return true
		}
	}
	return false
}

// takeOver makes the node's slice of the store the desired state. If that is not
// possible, it returns the reason.
func (a *agent) takeOver() error {
	next, ok := a.slice()
	if !ok || a.want != nil && next.equal(a.want) {
		return nil
	}
	if !next.hasNode() && a.shared.isShared() && (a.want == nil || !a.want.hasNode()) {
		return nil // register will add the node
	}
	began := time.Now()
	if err := a.adopt(next); err != nil {
		a.log.Error("cannot use the store's state", "error", err)
		return err
	}
	a.keepSlice()
	a.followTook = time.Since(began)
	return nil
}

// slice returns the node's slice of the store's current state.
func (a *agent) slice() (*desired, bool) {
	var gone map[string]bool
	if a.shared.isShared() {
		var next time.Duration
		if gone, next = a.shared.Gone(); next > 0 {
			a.goneAt = time.Now().Add(next)
		} else {
			a.goneAt = time.Time{}
		}
	}
	var s model.State
	if !a.shared.Peek(func(v *fleet.View) { s = v.Slice(a.config.Node, gone) }) {
		return nil, false
	}
	return newDesired(a.config.Node, s, a.own.IDs, a.own.Leaving...), true
}

// check tells whether a desired state can be: valid as a whole, with this node
// in it, and with tables that fit, had every port its device. Numbers of what
// is no longer wanted are free from then on. links are the node's devices.
// partial: check ignores errors that concern a single network. This is for a state
// that is already in the store, so that the other networks work.
func (a *agent) check(next *desired, links []netlink.Link, partial bool) error {
	if err := next.state.Validate(); err != nil {
		return refuseAs(http.StatusBadRequest, err)
	}
	if !next.hasNode() {
		return refuseAs(http.StatusBadRequest, noSuchNode(next.node, next.state))
	}
	assumed, err := a.assume(next, links)
	if err != nil {
		return err
	}
	next.ids = next.ids.Clone() // the change may still fail
	tables, _, err := assumed.compile(next, a.config, fib.Limits{}, partial)
	if err != nil {
		return refuseAs(http.StatusBadRequest, err)
	}
	next.ids.Prune()
	return checkSizes(tables, a.limits)
}

// adopt makes a state the desired state. If the state is invalid, or its tables
// exceed their limits, the previous state stays.
func (a *agent) adopt(next *desired) error {
	links, err := listLinks(a.space.links)
	if err != nil {
		return err
	}
	if !next.isEmpty() {
		if err := a.check(next, links, true); err != nil {
			return err
		}
	}
	former := a.want
	a.want = next
	a.generation++
	p := a.passOver(asked, links)
	if p.limit == nil || former == nil {
		a.own.IDs = next.ids
		return p.limit
	}
	a.want = former
	a.generation++
	a.pass(asked)
	return p.limit
}

// keepSlice writes the desired state and its ids to disk, for a start without the
// store.
func (a *agent) keepSlice() {
	if self, ok := a.want.self(); ok {
		a.own.Underlay = self.Underlay
	}
	err := a.kept.saveNode(a.own)
	if err == nil && a.shared.isRemote() {
		err = a.kept.saveSlice(a.want.state)
	}
	if err != nil {
		a.log.Warn("cannot save the desired state: if the agent starts while the store is unreachable, it uses an older state", "error", err)
	}
}

// goneTimer fires when the next silent node counts as gone; nil: no node is silent.
func (a *agent) goneTimer() <-chan time.Time {
	if a.goneAt.IsZero() {
		return nil
	}
	return time.After(time.Until(a.goneAt))
}
