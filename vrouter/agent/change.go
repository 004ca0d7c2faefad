package agent

import (
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// putState replaces the applied state. All is checked before anything is
// touched; then it is kept; then it takes effect.
func (a *agent) putState(state model.State) (api.Applied, error) {
	began := time.Now()
	if err := a.mayChange(); err != nil {
		return api.Applied{}, err
	}
	if err := state.WithDefaults().Validate(); err != nil {
		return api.Applied{}, refuseAs(http.StatusBadRequest, err)
	}
	next, err := newDesired(a.config.Node, state, a.want.local, a.want.ids)
	if err != nil {
		return api.Applied{}, refuseAs(http.StatusConflict, err)
	}
	if err := a.check(next); err != nil {
		return api.Applied{}, err
	}
	if err := errors.Join(a.store.savePorts(next.local, next.ids), a.store.saveState(state)); err != nil {
		return api.Applied{}, errors.Join(err, a.store.savePorts(a.want.local, a.want.ids))
	}
	p, err := a.adopt(next)
	if err != nil {
		return api.Applied{}, err
	}
	if len(state.Ports) > manyPorts {
		debug.FreeOSMemory() // the request's text and the old state were as large
	}
	return applied(p, began), nil
}

// manyPorts is from where on a state's memory is worth giving back at once.
const manyPorts = 10_000

// mayChange refuses while everything is being taken down. It is asked in the
// loop, or behind the gate.
func (a *agent) mayChange() error {
	if a.removed {
		return refuse(http.StatusConflict, "node %s is being removed", a.config.Node)
	}
	return nil
}

// check tells whether a desired state can be: valid as a whole, with this node
// in it, and with tables that fit, had every port its device. Numbers of what
// is no longer wanted are free from then on.
func (a *agent) check(next *desired) error {
	if !next.hasNode() {
		return refuseAs(http.StatusBadRequest, noSuchNode(next.node, next.applied))
	}
	if len(next.local) > 0 {
		if err := next.whole.Validate(); err != nil {
			return refuseAs(http.StatusConflict, err)
		}
	}
	assumed, err := a.assume(next)
	if err != nil {
		return err
	}
	next.ids = next.ids.Clone() // the request may still fail
	tables, _, err := assumed.compile(next, a.config, fib.Limits{})
	if err != nil {
		return refuseAs(http.StatusBadRequest, err)
	}
	next.ids.Prune()
	return roomFor(tables, a.limits)
}

// adopt makes a kept desired state the one worked to. When its tables have no
// room after all, the former one returns.
func (a *agent) adopt(next *desired) (*pass, error) {
	former := a.want
	a.want = next
	a.generation++
	p := a.pass(asked)
	if p.limit == nil {
		return p, nil
	}
	a.want = former
	a.generation++
	err := errors.Join(p.limit, a.store.savePorts(former.local, former.ids), a.store.saveState(former.applied))
	a.pass(asked)
	return nil, err
}

// applied tells what a change came to.
func applied(p *pass, began time.Time) api.Applied {
	done := api.Applied{Updated: p.changes.Updated, Deleted: p.changes.Deleted, Took: time.Since(began), Warnings: slices.Clone(p.warnings)}
	for _, q := range p.problems {
		done.Warnings = append(done.Warnings, q.text)
	}
	return done
}

// deletePort removes a port that was added on this node.
func (a *agent) deletePort(name string) (api.Applied, error) {
	began := time.Now()
	if err := a.mayChange(); err != nil {
		return api.Applied{}, err
	}
	if _, ok := a.want.localPort(name); !ok {
		return api.Applied{}, a.notLocal(name)
	}
	local := slices.DeleteFunc(slices.Clone(a.want.local), func(p model.Port) bool { return p.Name == name })
	next, err := newDesired(a.config.Node, a.want.applied, local, a.want.ids)
	if err != nil {
		return api.Applied{}, err
	}
	if err := next.whole.Validate(); err != nil { // a route leads through it
		return api.Applied{}, refuse(http.StatusConflict, "port %q is in use: %w", name, err)
	}
	if err := a.check(next); err != nil {
		return api.Applied{}, err
	}
	if err := a.store.savePorts(next.local, next.ids); err != nil {
		return api.Applied{}, err
	}
	p, err := a.adopt(next)
	if err != nil {
		return api.Applied{}, err
	}
	return applied(p, began), nil
}

func (a *agent) notLocal(name string) error {
	p, ok := a.want.port(name)
	switch {
	case !ok:
		return refuse(http.StatusNotFound, "there is no port %q", name)
	case p.Node != a.config.Node:
		return refuse(http.StatusConflict, "port %q is on node %s; it comes with the applied state: take it out there and apply that anew", name, p.Node)
	}
	return refuse(http.StatusConflict, "port %q comes with the applied state; take it out there and apply that anew", name)
}
