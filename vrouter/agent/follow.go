package agent

import (
	"net/http"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// follow takes over what changed in the store, as far as it concerns the node,
// or says why what stands there is not in force. It works in the loop.
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
		a.publish() // no pass did, or it knew this not yet
	}
	return a.unfit
}

// concerns tells whether changes may have touched the node's slice. Before the
// store was read all of them may.
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

// takeOver makes the store's slice the desired state, or says why not.
func (a *agent) takeOver() error {
	next, ok := a.slice()
	if !ok || a.want != nil && next.equal(a.want) {
		return nil
	}
	if !next.hasNode() && a.shared.joins() && (a.want == nil || !a.want.hasNode()) {
		return nil // it is about to make itself known
	}
	began := time.Now()
	if err := a.adopt(next); err != nil {
		a.log.Error("the store's state cannot be used", "error", err)
		return err
	}
	a.keepSlice()
	a.followTook = time.Since(began)
	return nil
}

// slice is what the store wants of the node now.
func (a *agent) slice() (*desired, bool) {
	var gone map[string]bool
	if a.shared.joins() {
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
// partial: what is wrong with one network is no error, for the others' sake: the
// state is in the store already.
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
	return roomFor(tables, a.limits)
}

// adopt makes a state the one worked to. When it cannot be, or its tables have
// no room after all, the former one stays.
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

// keepSlice notes what the node works to, for a start without the store, and the
// numbers in it.
func (a *agent) keepSlice() {
	if self, ok := a.want.self(); ok {
		a.own.Underlay = self.Underlay
	}
	err := a.kept.saveNode(a.own)
	if err == nil && a.shared.mayBeAway() {
		err = a.kept.saveSlice(a.want.state)
	}
	if err != nil {
		a.log.Warn("a start without the store would come back to an older state", "error", err)
	}
}

// goneTimer is when a node that is missing counts as gone; never where none is.
func (a *agent) goneTimer() <-chan time.Time {
	if a.goneAt.IsZero() {
		return nil
	}
	return time.After(time.Until(a.goneAt))
}
