package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"windtunnel/vrouter/model"
)

// Times of the loop.
const (
	burstWait       = 5 * time.Millisecond   // wait after an event, to handle a burst in one pass
	firstRetry      = 100 * time.Millisecond // wait after the first failure; it doubles with each further failure
	passesShare     = 20                     // passes that check for drift use at most 1/20 of a CPU
	eventsShare     = 4                      // passes after kernel events use at most 1/4 of a CPU
	shutdownTimeout = 5 * time.Second        // for requests in flight
)

// serve sets the node up and runs the loop until ctx ends or the API stops it.
func (a *agent) serve(ctx context.Context, end func(), first *model.State, real plane) error {
	a.requests = make(chan func())
	if first != nil {
		a.want = newDesired(a.config.Node, *first, a.own.IDs)
	}
	a.neighbours = &neighbours{space: a.space}
	a.drops = newDropRing()
	a.usePlane(real)
	events, err := watch(ctx, a.space)
	if err != nil {
		return errors.Join(err, a.closePlane())
	}
	a.pass(starting)
	if a.want != nil {
		a.keepSlice()
	}
	api, err := a.listen(end)
	if err != nil {
		return errors.Join(err, a.closePlane())
	}
	if a.shared.isShared() {
		a.keepAlive(ctx)
	}
	a.log.Info("agent started", "version", a.version, "socket", a.config.Socket, "store", a.shared.address.String(), "ports", len(a.last.devices), "routes", len(a.last.tables.Routes))
	daemon.SdNotify(false, daemon.SdNotifyReady) // ignored if systemd did not start the agent
	why := a.loop(ctx, events, api)
	end()
	if a.removed {
		return nil
	}
	a.log.Info("agent stopped; packets keep flowing")
	return errors.Join(why, removeSocket(a.config.Socket), a.closePlane())
}

// loop handles requests, store changes, kernel events and timers, one after another.
// It returns an error if the store reports that the agent must stop.
func (a *agent) loop(ctx context.Context, events <-chan event, api *server) (why error) {
	drift := time.NewTimer(a.nextPass())
	var burst <-chan time.Time // nil: no event is pending
	done := ctx.Done()
	closedAlready := make(chan struct{})
	close(closedAlready)
	var closed chan struct{}
	for {
		select {
		case <-done:
			// Requests in flight are still answered, by this loop.
			done, closed = nil, make(chan struct{})
			go func() {
				api.close()
				close(closed)
			}()
		case <-closed:
			return why
		case why = <-a.shared.ended:
			done = closedAlready
			continue
		case request := <-a.requests:
			request()
		case <-a.shared.watcher.C:
			a.followSoon()
		case <-a.gathered:
			a.catchUp()
		case <-a.goneTimer():
			a.unfit = a.takeOver()
			a.publish()
		case _, ok := <-events:
			if !ok {
				events = nil
				break
			}
			if burst == nil {
				burst = time.After(max(burstWait, eventsShare*a.wholeTook))
			}
			continue
		case <-burst:
			burst = nil
			a.pass(noticing)
		case <-drift.C:
			a.pass(looking)
			a.expireFlows()
			a.freeMemory()
		}
		drift.Reset(a.nextPass())
	}
}

// nextPass returns the time until the next check for drift, or until the retry after
// a failure.
func (a *agent) nextPass() time.Duration {
	wait := max(a.config.RepairInterval, passesShare*a.wholeTook)
	if a.retry > 0 {
		wait = min(wait, a.retry)
	}
	return wait
}

func (a *agent) expireFlows() {
	if a.removed {
		return
	}
	n, left, err := a.plane().ExpireFlows()
	if err != nil {
		a.log.Error("cannot delete idle flows", "error", err)
		return
	}
	a.flowCount.Store(int64(left))
	if n > 0 {
		a.log.Debug("deleted idle flows", "flows", n)
	}
}

// ask runs f in the loop and waits for it.
func (a *agent) ask(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case a.requests <- func() { done <- f() }:
		return <-done
	case <-ctx.Done():
		return fmt.Errorf("the request was cancelled: %w", context.Cause(ctx))
	}
}
