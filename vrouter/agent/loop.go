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
	settle      = 5 * time.Millisecond   // events come in bursts: one pass for a burst
	firstRetry  = 100 * time.Millisecond // after a failure, doubled with each
	passesShare = 20                     // looking for drift may take one part in so many of a CPU
	eventsShare = 4                      // and looking at what the kernel told of
	closing     = 5 * time.Second        // for requests in flight when the agent ends
)

// serve brings the node up and works until ctx ends or the API says so.
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
	if a.shared.joins() {
		a.attend(ctx)
	}
	a.log.Info("agent serves", "version", a.version, "socket", a.config.Socket, "store", a.shared.address.String(), "ports", len(a.last.devices), "routes", len(a.last.tables.Routes))
	daemon.SdNotify(false, daemon.SdNotifyReady) // of nobody's concern where systemd did not start it
	why := a.loop(ctx, events, api)
	end()
	if a.removed {
		return nil
	}
	a.log.Info("agent ends; packets flow on")
	return errors.Join(why, removeSocket(a.config.Socket), a.closePlane())
}

// loop handles requests, what changes in the store and in the kernel, and time,
// one after another. It returns why it had to end, if nobody asked it to.
func (a *agent) loop(ctx context.Context, events <-chan event, api *server) (why error) {
	drift := time.NewTimer(a.nextPass())
	var burst <-chan time.Time // nil: no event waits
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
			a.gather()
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
				burst = time.After(max(settle, eventsShare*a.wholeTook))
			}
			continue
		case <-burst:
			burst = nil
			a.pass(noticing)
		case <-drift.C:
			a.pass(looking)
			a.expireFlows()
			a.tidy()
		}
		drift.Reset(a.nextPass())
	}
}

// nextPass is how long to wait until drift is looked for, or what failed is
// tried again.
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
	if n, err := a.plane().ExpireFlows(); err != nil {
		a.log.Error("forgetting idle flows failed", "error", err)
	} else if n > 0 {
		a.log.Debug("idle flows forgotten", "flows", n)
	}
}

// ask runs f in the loop and waits for it.
func (a *agent) ask(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case a.requests <- func() { done <- f() }:
		return <-done
	case <-ctx.Done():
		return fmt.Errorf("the request was given up: %w", context.Cause(ctx))
	}
}
