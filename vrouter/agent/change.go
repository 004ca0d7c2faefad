package agent

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// putState replaces the fleet's state with a document. It checks everything before
// it writes. The node uses the new state when putState returns.
func (a *agent) putState(ctx context.Context, state model.State) (api.Applied, error) {
	began := time.Now()
	return a.change(ctx, began, func(ctx context.Context) error {
		err := a.follower.Ask(ctx, func() error {
			all := a.withOthers(state)
			err := a.reconciler.Check(reconcile.NewDesired(a.config.Node, all.Around(a.config.Node).Slice(a.config.Node), a.follower.Own.IDs, nil), false)
			if err != nil {
				if invalid := all.Validate(); invalid != nil { // all problems of the document, and not only those around this node
					return refuse(http.StatusBadRequest, "%w", invalid)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.follower.Apply(ctx, state)
	})
}

// withOthers adds the existing ports that the CLI, CNI or Docker created to a
// document.
func (a *agent) withOthers(s model.State) model.State {
	var others []model.Port
	a.follower.Peek(func(v *fleet.View) { others = v.ValidOthers() })
	if len(others) == 0 {
		return s
	}
	has := make(map[string]bool, len(s.Ports))
	for _, p := range s.Ports {
		has[p.Name] = true
	}
	others = slices.DeleteFunc(others, func(p model.Port) bool { return has[p.Name] })
	s.Ports = slices.Concat(s.Ports, others)
	return s
}

// change makes a change in the store and then on the node. If the node cannot use
// the new state, change returns a warning, since the store has the change.
func (a *agent) change(ctx context.Context, began time.Time, in func(context.Context) error) (api.Applied, error) {
	var before datapath.Changes
	arrived := a.follower.ChangePending()
	defer arrived()
	err := a.follower.Ask(ctx, func() error {
		before = a.reconciler.Written
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
	err = a.follower.AfterFollow(ctx, func(unfit error) error {
		done = a.applied(before)
		if unfit != nil {
			done.Warnings = append(done.Warnings, notInForce(unfit))
		}
		return nil
	})
	done.Took = time.Since(began)
	return done, err
}

// notInForce returns the warning that the node does not use the store's state.
func notInForce(why error) string {
	return "this node cannot use the store's state and keeps its previous state: " + why.Error()
}

// inStore makes a change in the store. If the store is unreachable, inStore waits
// for at most StoreWait. Its errors have an HTTP status.
func (a *agent) inStore(ctx context.Context, in func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, follow.StoreWait)
	defer cancel()
	if err := a.follower.Reach(waiting); err != nil {
		return refuse(http.StatusServiceUnavailable, "nothing was changed: %w; retry when the store is reachable", err)
	}
	err := in(ctx)
	var refused *fleet.Refusal
	var other *fleet.SchemaError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refuseAs(statusOfRefusal(refused.Why), err)
	case errors.As(err, &other):
		return refuse(http.StatusServiceUnavailable, "%w", err)
	case errors.Is(err, store.ErrDenied):
		return refuse(http.StatusForbidden, "nothing was changed: %w; make the change on a node whose agent has an operator's certificate", err)
	case errors.Is(err, store.ErrUnavailable):
		return refuse(http.StatusServiceUnavailable, "the change may or may not have been made: %w; when the store is reachable, check and retry", err)
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

// mayChange refuses requests while the node is being removed. Call it in the loop,
// or with the gate held.
func (a *agent) mayChange() error {
	if a.removed {
		return refuse(http.StatusConflict, "node %s is being removed", a.config.Node)
	}
	return nil
}

// applied returns the number of entries written since before, and the node's
// warnings.
func (a *agent) applied(before datapath.Changes) api.Applied {
	done := api.Applied{Updated: a.reconciler.Written.Updated - before.Updated, Deleted: a.reconciler.Written.Deleted - before.Deleted}
	for _, w := range a.reconciler.Last.Warnings {
		done.Warnings = append(done.Warnings, w.Text)
	}
	for _, f := range a.reconciler.Last.Failures {
		done.Warnings = append(done.Warnings, f.Text)
	}
	slices.Sort(done.Warnings)
	return done
}

// deletePort deletes a port. If the store is unreachable and the port is on this
// node, it deletes the port on the node now, and in the store later.
func (a *agent) deletePort(ctx context.Context, name string) (api.Applied, error) {
	began := time.Now()
	if is, known := a.known(name); known {
		if err := mayDelete(is); err != nil {
			return api.Applied{}, err
		}
	}
	done, err := a.change(ctx, began, func(ctx context.Context) error {
		_, err := a.follower.DeletePort(ctx, name, mayDelete)
		return err
	})
	if err == nil || statusOf(err) != http.StatusServiceUnavailable {
		return done, err
	}
	err = a.follower.Ask(ctx, func() error {
		if a.reconciler.Want == nil {
			return err
		}
		if _, here := a.reconciler.Want.Port(name); !here {
			return err
		}
		if err := fleet.CheckUnused(name, slices.Values(a.reconciler.Want.Routes)); err != nil {
			return refuseAs(http.StatusConflict, err)
		}
		if err := a.follower.DeleteLater(name); err != nil {
			return err
		}
		before := a.reconciler.Written
		if err := a.follower.TakeOver(); err != nil {
			return err
		}
		done = a.applied(before)
		done.Warnings = append(done.Warnings, "the store is unreachable: the port is deleted on this node; its addresses become free when the store is reachable")
		return nil
	})
	done.Took = time.Since(began)
	return done, err
}

// mayDelete refuses to delete a port of an applied document, since the next apply
// would add it again.
func mayDelete(is model.Port) error {
	if is.Origin == model.Applied {
		return refuse(http.StatusConflict, "delete port %q: it is in the applied state; remove it from the state file and apply that again", is.Name)
	}
	return nil
}
