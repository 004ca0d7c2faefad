package agent

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// Times of the loop.
const (
	burstWait       = 5 * time.Millisecond   // wait after an event, to handle a burst in one pass
	quotaWait       = 250 * time.Millisecond // minimum interval of relieveFlows
	quotaShare      = 4                      // relieveFlows uses at most 1/5 of a CPU
	idleQuotaShare  = 19                     // and 1/20 if it finds no flow to delete
	eventsShare     = 19                     // passes after kernel events use at most 1/20 of a CPU
	shutdownTimeout = 5 * time.Second        // for requests in flight
	memoryWait      = time.Second            // minimum wait after a change or a comparison, before freeMemory
	freeShare       = 19                     // freeMemory uses at most 1/20 of a CPU
	memoryShare     = 8                      // freeMemory runs when the heap has grown by 1/8
)

// serve sets the node up and runs the loop until ctx ends or the API stops it.
func (a *agent) serve(ctx context.Context, end func(), first *model.Slice) error {
	a.drops, a.exporter, a.dhcp = newDropRing(), a.newExporter(), a.newDHCPServer()
	defer a.dhcp.Close()
	defer func() { a.exporter.Close() }() // its errors change nothing: the agent ends
	var err error
	if a.bgp, err = openBGP(a.config, a.log, a.follower.Kept); err != nil {
		return err
	}
	p, err := netdev.OpenPrograms(a.config, a.log, a.space, a.drops.add)
	if err != nil {
		return err
	}
	var want *reconcile.Desired
	if first != nil {
		want = reconcile.NewDesired(a.config.Node, *first, a.follower.Own.IDs, nil)
	}
	a.reconciler = reconcile.New(a.config, a.log, a.space, p, want, a.follower.Own.IDs, a.publish)
	defer a.reconciler.Close()
	a.follower.TestWorkloads(ctx, a.askWorkload)
	a.follower.Start(a.reconciler, a.publish)
	events, err := netdev.Watch(ctx, a.space)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	mounts, err := netdev.WatchMounts(ctx)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	a.reconciler.Offers, a.reconciler.Services = a.follower.SavedOffers(), a.services.follow != nil
	a.reconciler.Grouping = a.grouping
	a.reconciler.External = a.bgp.external
	a.reconciler.Start(a.follower.SavedSlice)
	a.follower.Own.IDs = a.reconciler.IDs
	if want != nil {
		a.follower.KeepSlice()
	}
	api, err := a.listen(end)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	if a.follower.IsShared() {
		host, _ := os.Hostname()
		boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" if it cannot be read: no ports are deleted
		a.follower.KeepAlive(ctx, fleet.Alive{Instance: a.follower.Own.Instance, Boot: strings.TrimSpace(string(boot)), Host: host, PID: os.Getpid(), Version: a.version, Since: a.started})
	}
	a.follower.KeepAccess(ctx, a.connect)
	a.log.Info("agent started", "version", a.version, "socket", a.config.Socket, "store", a.follower.Address.String(), "ports", len(a.reconciler.Last.Devices), "routes", a.reconciler.Last.RouteCount())
	daemon.SdNotify(false, daemon.SdNotifyReady) // ignored if systemd did not start the agent
	if !a.services.ruled {
		if err := netdev.RemoveServiceRules(a.space); err != nil { // a former agent may have written them
			a.log.Error("cannot remove the rules of services", "error", err)
		}
	}
	followed := a.followServices(ctx)
	why := a.loop(ctx, events, mounts, api)
	end()
	<-followed
	a.bgp.close(!a.removed)
	if a.removed {
		return nil
	}
	a.reconciler.Close()
	a.log.Info("agent stopped; packets keep flowing")
	return errors.Join(why, a.removeSocket(), p.Close())
}

// delay fires once after events that are not handled at once.
type delay struct {
	C    <-chan time.Time // nil: there was no event
	next time.Time        // it does not fire earlier
}

// start handles an event.
func (d *delay) start(wait time.Duration) {
	if d.C == nil {
		d.C = time.After(max(wait, time.Until(d.next)))
	}
}

// end is called after the delay has fired, with the minimum time until it fires again.
func (d *delay) end(pause time.Duration) { d.C, d.next = nil, time.Now().Add(pause) }

// timers are the timers that the loop sets after each step.
type timers struct {
	*reconcile.Reconciler
	drift                 *time.Timer
	retry                 <-chan time.Time // nil: not due
	burst, routes, memory delay            // after kernel events, changes of BGP's routes, and changes that need memory
	generation            uint64           // of the reconciler, when the timers were set
}

func newTimers(r *reconcile.Reconciler) *timers {
	t := &timers{Reconciler: r, drift: time.NewTimer(r.NextPass()), generation: r.Generation}
	t.memory.start(memoryWait)
	return t
}

func (t *timers) reset() {
	if t.generation != t.Generation {
		t.generation = t.Generation
		t.memory.start(memoryWait)
	}
	t.drift.Reset(t.NextPass())
	t.retry = nil
	if wait, due := t.NextRetry(); due {
		t.retry = time.After(wait)
	}
}

// loop handles requests, store changes, kernel events and timers, one after another.
// It returns an error if the store reports that the agent must stop.
func (a *agent) loop(ctx context.Context, events <-chan netdev.Event, mounts <-chan struct{}, api *server) (why error) {
	due, quota, done := newTimers(a.reconciler), time.NewTimer(quotaWait), ctx.Done()
	var closed <-chan struct{} // after done: the API has answered the last request
	for {
		select {
		case <-done:
			done, closed = nil, api.close() // this loop still answers the requests in flight
		case <-closed:
			a.expireFlows() // the last export
			return why
		case why = <-a.follower.Ended:
			if done != nil {
				done, closed = nil, api.close()
			}
		case request := <-a.follower.Requests:
			request()
		case <-a.follower.Changes.C:
			a.follower.FollowSoon()
		case <-a.follower.Gathered:
			a.follower.CatchUp()
		case <-a.follower.GoneTimer():
			a.follower.NodeGone()
		case <-a.regroup:
			a.lookAgain()
		case <-a.reconciler.Tester.Changed():
			a.lookAgain()
		case <-a.bgp.lost:
			a.reconciler.Avoid(a.bgp.gone())
			due.routes.C = cmp.Or(due.routes.C, time.After(burstWait))
		case <-a.bgp.changed:
			due.routes.start(burstWait)
		case <-due.routes.C:
			a.lookAgain()
			due.routes.end(a.reconciler.Last.Took) // such passes use at most half of a CPU
		case found := <-a.reconciler.Comparison.Done:
			a.reconciler.Compared(found)
			due.memory.start(memoryWait)
		case e, ok := <-events:
			if !ok {
				events = nil
				break
			}
			a.reconciler.Notice(e)
			due.burst.start(burstWait)
			a.reconciler.RetrySoon()
		case <-mounts:
			a.reconciler.RetrySoon()
		case <-due.retry:
			a.reconciler.Pass(reconcile.Retrying)
		case <-due.burst.C:
			due.burst.C = nil
			if a.reconciler.HasNoticed() { // else a pass for another reason has handled the events
				a.reconciler.Pass(reconcile.Noticing)
				due.burst.end(eventsShare * a.reconciler.Last.Took)
			}
		case <-quota.C:
			quota.Reset(a.relieveFlows())
		case <-a.export.C:
			a.expireFlows()
		case <-due.drift.C:
			a.reconciler.Pass(reconcile.Looking)
			a.keepServiceRules()
			a.expireFlows()
		case <-due.memory.C:
			start := time.Now()
			a.freeMemory()
			due.memory.end(freeShare * time.Since(start))
		}
		a.renewServices()
		due.reset()
	}
}

// lookAgain makes a pass after a change outside the desired state.
func (a *agent) lookAgain() {
	a.reconciler.Notice(netdev.Event{})
	a.reconciler.Pass(reconcile.Noticing)
}

// relieveFlows deletes flows of ports that are near their quotas. It returns the time until
// the next check. The time is longer if no flow could be deleted, because each deletion reads
// the whole flow table.
func (a *agent) relieveFlows() time.Duration {
	if a.removed {
		return a.config.RepairInterval
	}
	start := time.Now()
	near, err := a.reconciler.Plane().NearQuota()
	if err != nil {
		a.log.Error("cannot read the number of flows of the ports", "error", err)
	}
	share := quotaShare
	if near && a.expireFlows() == 0 {
		share = idleQuotaShare
	}
	return max(quotaWait, time.Duration(share)*time.Since(start))
}

// expireFlows deletes expired flows and returns their number.
func (a *agent) expireFlows() int {
	if a.removed {
		return 0
	}
	return a.passFlows(a.exporter.Begin(time.Now(), false))
}

// passFlows is a pass over the flow table: it deletes expired flows, and watch exports flows. It returns the number
// of deleted flows.
func (a *agent) passFlows(watch datapath.FlowWatch) int {
	plane := a.reconciler.Plane()
	plane.WatchFlows(watch)
	n, left, err := plane.ExpireFlows()
	if err != nil {
		a.log.Error("cannot delete idle flows", "error", err)
		return 0
	}
	if err := a.exporter.End(); err != nil {
		a.log.Error("cannot save which flows were exported; the next agent may export them again", "error", err)
	}
	a.flowCount.Store(int64(left))
	if n > 0 {
		a.log.Debug("deleted idle flows", "flows", n)
	}
	return n
}

// freeMemory returns memory to the system after a change of the desired state, or if the heap has grown by 1/memoryShare.
// The heap can grow without a change: a check for drift copies the tables.
// freeMemory runs between changes, because a garbage collection takes time.
func (a *agent) freeMemory() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); a.freedAt == a.reconciler.Generation && held(&m) <= a.heap+a.heap/memoryShare {
		return
	}
	a.freedAt = a.reconciler.Generation
	runtime.GC() // the store's page pool (sync.Pool) needs two collections
	debug.FreeOSMemory()
	runtime.ReadMemStats(&m)
	a.heap = held(&m)
}

// held returns the bytes of the heap that the process holds: used and free pages.
func held(m *runtime.MemStats) uint64 { return m.HeapSys - m.HeapReleased }
