package agent

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Times of the loop.
const (
	settle      = 5 * time.Millisecond   // events come in bursts: one pass for a burst
	firstRetry  = 100 * time.Millisecond // after a failure, doubled with each
	passesShare = 20                     // looking for drift may take one part in so many of a CPU
	closing     = 5 * time.Second        // for requests in flight when the agent ends
)

// serve brings the node up and works until ctx ends or the API says so.
func (a *agent) serve(ctx context.Context, want *desired, real plane) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	a.want, a.requests = want, make(chan func())
	a.neighbours = &neighbours{space: a.space}
	a.drops = newDropRing()
	a.usePlane(real)
	events, err := watch(ctx, a.space)
	if err != nil {
		return errors.Join(err, a.closePlane())
	}
	a.pass(starting)
	if err := a.store.savePorts(want.local, want.ids); err != nil {
		a.log.Warn("numbers of nexthops and vifs may change with the next start", "error", err)
	}
	api, err := a.listen(end)
	if err != nil {
		return errors.Join(err, a.closePlane())
	}
	a.log.Info("agent serves", "version", a.version, "socket", a.config.Socket, "ports", len(a.last.devices), "routes", len(a.last.tables.Routes))
	a.loop(ctx, events, api)
	end()
	if a.removed {
		return nil
	}
	a.log.Info("agent ends; packets flow on")
	return errors.Join(removeSocket(a.config.Socket), a.closePlane())
}

// loop handles requests, what changes in the kernel, and time, one after
// another.
func (a *agent) loop(ctx context.Context, events <-chan event, api *server) {
	drift := time.NewTimer(a.nextPass())
	var burst <-chan time.Time // nil: no event waits
	done := ctx.Done()
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
			return
		case request := <-a.requests:
			request()
		case _, ok := <-events:
			if !ok {
				events = nil
				break
			}
			if burst == nil {
				burst = time.After(max(settle, a.last.took))
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
	wait := max(a.config.RepairInterval, passesShare*a.last.took)
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
