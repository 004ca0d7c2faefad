// Package reconcile makes a node's devices, programs and maps equal to a desired state,
// in passes, and repairs drift.
package reconcile

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Reconciler makes the node's devices, programs and maps equal to a desired state.
// Only the agent's loop may call its methods. Other goroutines may call Plane.
type Reconciler struct {
	config     config.Config
	log        *slog.Logger
	space      *netdev.Space
	devices    *netdev.Devices // the node's devices
	Programs   *netdev.Programs
	Limits     datapath.Limits // with the defaults filled in
	neighbours *netdev.Neighbours
	labels     *netdev.Labels
	Tester     *direct.Tester
	noticed    *netdev.Event // changes in the kernel that no pass has handled; nil: none
	xdpAgain   bool          // XDP was attached again after it was detached because of direct
	publish    func()        // called after each pass

	former   map[networkAddress]model.MAC    // MAC addresses of addresses whose ports were deleted
	Silent   map[netip.Addr]bool             // underlay addresses of other nodes that do not answer
	Services bool                            // workloads reach services; see fib.Facts
	Grouping func(model.Slice) *fib.Grouping // the groups of the node's ports; nil: none have groups. Equal results are the same pointer
	// External returns the routes of routers outside the fleet; nil: there are none. If nothing has changed, it returns
	// the same pointer. unreachable returns why the underlay has no path to an address; "": it has one. A nil External
	// means that there are no such routes.
	External   func(s model.Slice, unreachable func(netip.Addr) string) *fib.External
	Want       *Desired         // nil: not known yet; the kernel's tables stay as they are
	IDs        *fib.IDs         // ids of the objects in Want
	Generation uint64           // version of Want, incremented on each change
	wholeTook  durations        // of complete passes
	Last       *Pass            // the last pass
	Written    datapath.Changes // entries written for changes of the desired state, since the start
	Repairs    uint64
	Passes     map[Cause]uint64 // number of passes
	Synced     time.Time
	InSync     bool          // the last pass was in sync
	adopted    time.Time     // last change of Want
	looked     time.Time     // start or end of the last check for drift
	retryFrom  time.Time     // no pass for retries begins earlier
	ended      bool          // the node has been removed
	written    *fib.Compiled // tables that the maps have; nil: not known
	Comparison Comparison

	Offers   *fib.Offers  // encapsulations of this node and the others, for changes of them
	noted    []model.Node // the nodes that Offers has
	handover time.Time    // when the handovers change next; zero: none is under way
}

// New creates a reconciler. It makes no pass. The reconciler calls publish after each pass.
// want nil: the desired state is not known yet. The caller must call End or Close.
func New(c config.Config, log *slog.Logger, s *netdev.Space, p *netdev.Programs, want *Desired, ids *fib.IDs, publish func()) *Reconciler {
	return &Reconciler{
		config: c, log: log, space: s, devices: netdev.NewDevices(s), Programs: p, Limits: c.Limits.WithDefaults(),
		neighbours: &netdev.Neighbours{Space: s}, labels: &netdev.Labels{Space: s}, Tester: netdev.NewTester(s, log), publish: publish, Comparison: Comparison{Done: make(chan Difference, 1)}, Want: want, IDs: ids, Passes: map[Cause]uint64{}, Offers: &fib.Offers{Hold: c.Handover},
	}
}

// Plane is the data path.
func (r *Reconciler) Plane() *netdev.Plane { return r.Programs.Plane() }

// NextPass returns the time until the next check for drift, or until a change of encapsulations
// enters its next phase.
func (r *Reconciler) NextPass() time.Duration {
	wait := max(r.config.RepairInterval, passesShare*r.wholeTook.shorter())
	if !r.Comparison.running {
		wait = max(wait, passesShare*r.Comparison.took.shorter())
	}
	left := wait - time.Since(r.looked)
	// A check of all ports makes requests wait. During a burst of changes it is postponed until quietTime after the last one.
	if left > -maxPostponed*wait {
		left = max(left, min(quietTime, r.config.RepairInterval)-time.Since(r.adopted))
	}
	return r.untilHandover(left)
}

// Close ends the tests of links and waits for the comparison. The kernel's state stays.
func (r *Reconciler) Close() {
	r.Tester.Close()
	r.Comparison.wait.Wait()
}

// End removes the device pairs of ports, the neighbours, the labels, the programs and the
// maps. No pass follows.
func (r *Reconciler) End() error {
	r.ended = true
	r.Programs.Unfollow()
	r.Close()
	self, _ := r.Last.Want.Self()
	return errors.Join(netdev.RestoreSuperpackets(r.space, r.Last.fabricLinks()), netdev.KeepLocator(r.space, model.Node{}, r.Last.locator), r.labels.Keep(r.Last.fabricLinks(), self.Underlay, nil, nil, nil, true), netdev.RemovePairs(r.space, r.config.Node), r.neighbours.Keep(nil), netdev.RemoveMerging(r.space, r.config.Node), netdev.RemoveAccess(r.space, r.config), netdev.RemoveServiceRules(r.space), r.Plane().Remove())
}

// Adopt makes a state the desired state. If the state is invalid, or its tables
// exceed their limits, the previous state stays.
func (r *Reconciler) Adopt(next *Desired) error {
	var tried *trial
	if !next.isEmpty() {
		var err error
		if tried, err = r.try(next, true); err == nil {
			err = checkSizes(tried.Tables, r.Limits) // apply checks the sizes with the ports on other nodes
		}
		if IsLimit(err) {
			tried = nil
			next, err = r.fitting(next, r.Want)
		}
		if err != nil {
			return err
		}
	}
	former := r.Want
	p := r.passFor(next, tried)
	if p.limit != nil && next.Overfull == nil && !next.isEmpty() {
		if fitting, err := r.fitting(next, former); err == nil && fitting != next {
			p = r.passFor(fitting, nil)
		}
	}
	if p.limit == nil || former == nil {
		r.IDs = p.Want.ids
		return p.limit
	}
	r.passFor(former, nil)
	return p.limit
}

// passFor makes a state the desired state and makes a pass. tried is the result of try for this state, or nil if try was not called.
func (r *Reconciler) passFor(want *Desired, tried *trial) *Pass {
	r.Want = want
	r.Generation++
	defer func() { r.adopted = time.Now() }()
	return r.passOver(asked, tried)
}
