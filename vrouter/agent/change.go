package agent

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// putState makes a document the fleet's state. All is checked before anything is
// written; it has taken effect on this node when it returns.
func (a *agent) putState(ctx context.Context, state model.State) (api.Applied, error) {
	began := time.Now()
	return a.change(ctx, began, func(ctx context.Context) error {
		err := a.ask(ctx, func() error {
			links, err := listLinks(a.space.links)
			if err != nil {
				return err
			}
			return a.check(newDesired(a.config.Node, a.withOthers(state), a.own.IDs), links, false)
		})
		if err != nil {
			return err
		}
		return a.shared.Apply(ctx, state)
	})
}

// withOthers is a document with the ports that came by other doors, which it
// leaves.
func (a *agent) withOthers(s model.State) model.State {
	s.Ports = slices.Clone(s.Ports)
	has := map[string]bool{}
	for _, p := range s.Ports {
		has[p.Name] = true
	}
	a.shared.Peek(func(v *fleet.View) {
		for _, p := range v.MadeOtherwise() {
			if !has[p.Name] {
				s.Ports = append(s.Ports, p)
			}
		}
	})
	return s
}

// change makes a change in the store and then on the node. What the node cannot
// follow is told as a warning: the fleet has it.
func (a *agent) change(ctx context.Context, began time.Time, in func(context.Context) error) (api.Applied, error) {
	var before datapath.Changes
	arrived := a.comes()
	defer arrived()
	err := a.ask(ctx, func() error {
		before = a.written
		return a.mayChange()
	})
	if err == nil {
		err = a.inStore(ctx, in)
	}
	if err != nil {
		return api.Applied{}, err
	}
	arrived()
	var done api.Applied
	err = a.caughtUp(ctx, func(unfit error) error {
		done = a.applied(before)
		if unfit != nil {
			done.Warnings = append(done.Warnings, notInForce(unfit))
		}
		return nil
	})
	done.Took = time.Since(began)
	return done, err
}

// notInForce says that the node does not work to what the store says.
func notInForce(why error) string {
	return "the store's state is not in force on this node, the former one is: " + why.Error()
}

// inStore makes a change in the store once that answers, which is not waited for
// long, and words why it could not be made.
func (a *agent) inStore(ctx context.Context, in func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	if err := a.shared.Reach(waiting); err != nil {
		return refuse(http.StatusServiceUnavailable, "nothing was changed: %w; what is in force stays so, ask again when the store answers", err)
	}
	err := in(ctx)
	var refused *fleet.Refusal
	var newer *fleet.NewerError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refuseAs(statusOfRefusal(refused.Why), err)
	case errors.As(err, &newer):
		return refuse(http.StatusServiceUnavailable, "%w", err)
	case errors.Is(err, store.ErrUnavailable):
		return refuse(http.StatusServiceUnavailable, "it is not known whether the change was made: %w; look, and ask again when the store answers", err)
	}
	return err
}

func statusOfRefusal(why fleet.Why) int {
	switch why {
	case fleet.NotFound:
		return http.StatusNotFound
	case fleet.Exists, fleet.InUse:
		return http.StatusConflict
	case fleet.Full:
		return http.StatusInsufficientStorage
	}
	return http.StatusBadRequest
}

// mayChange refuses while everything is being taken down. It is asked in the
// loop, or behind the gate.
func (a *agent) mayChange() error {
	if a.removed {
		return refuse(http.StatusConflict, "node %s is being removed", a.config.Node)
	}
	return nil
}

// applied tells what changes of the desired state wrote since then, and how the
// node is.
func (a *agent) applied(before datapath.Changes) api.Applied {
	done := api.Applied{Updated: a.written.Updated - before.Updated, Deleted: a.written.Deleted - before.Deleted, Warnings: slices.Clone(a.last.warnings)}
	for _, q := range a.last.problems {
		done.Warnings = append(done.Warnings, q.text)
	}
	return done
}

// deletePort takes a port away. While the store is out of reach one of this node
// goes here, and from the store when that is back.
func (a *agent) deletePort(ctx context.Context, name string) (api.Applied, error) {
	began := time.Now()
	if err := a.ask(ctx, func() error { return a.mayDelete(name) }); err != nil {
		return api.Applied{}, err
	}
	done, err := a.change(ctx, began, func(ctx context.Context) error {
		_, err := a.shared.DeletePort(ctx, name)
		return err
	})
	if err == nil || statusOf(err) != http.StatusServiceUnavailable {
		return done, err
	}
	err = a.ask(ctx, func() error {
		if a.want == nil {
			return err
		}
		if _, here := a.want.port(name); !here {
			return err
		}
		if err := a.leave(name); err != nil {
			return err
		}
		before := a.written
		if err := a.takeOver(); err != nil {
			return err
		}
		done = a.applied(before)
		done.Warnings = append(done.Warnings, "the store is out of reach: the port is gone from this node, and its addresses are given free when the store is back")
		return nil
	})
	done.Took = time.Since(began)
	return done, err
}

// mayDelete refuses to delete what an applied document has: the next one would
// bring it back.
func (a *agent) mayDelete(name string) error {
	if err := a.mayChange(); err != nil {
		return err
	}
	if is, known := a.known(name); known && is.Origin == model.Applied {
		return refuse(http.StatusConflict, "port %q comes with the applied state; take it out of that document and apply it anew", name)
	}
	return nil
}
