// Package reconcile makes a node's devices, programs and maps equal to a desired state,
// in passes, and repairs drift.
package reconcile

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Reconciler makes the node's devices, programs and maps equal to a desired state.
// Only the agent's loop uses it, except Plane.
type Reconciler struct {
	config     config.Config
	log        *slog.Logger
	space      *netdev.Space
	Programs   *netdev.Programs
	Limits     datapath.Limits // with the defaults filled in
	neighbours *netdev.Neighbours
	publish    func() // called after each pass

	Want       *Desired         // nil: not known yet; the kernel's tables stay as they are
	IDs        *fib.IDs         // of want
	Generation uint64           // version of want, incremented on each change
	WholeTook  time.Duration    // duration of the last complete pass
	Last       *Pass            // the last pass
	Written    datapath.Changes // entries written for changes of the desired state, since the start
	Repairs    uint64
	Synced     time.Time
	retry      time.Duration // until the next pass after a failure
	ended      bool          // the node has been removed
}

// New makes a reconciler that calls publish after each pass. It makes no pass itself.
// want nil: the desired state is not known yet.
func New(c config.Config, log *slog.Logger, s *netdev.Space, p *netdev.Programs, want *Desired, ids *fib.IDs, publish func()) *Reconciler {
	return &Reconciler{
		config: c, log: log, space: s, Programs: p, Limits: c.Limits.Datapath().WithDefaults(),
		neighbours: &netdev.Neighbours{Space: s}, publish: publish, Want: want, IDs: ids,
	}
}

// Plane is the data path.
func (r *Reconciler) Plane() netdev.Plane { return r.Programs.Plane() }

// NextPass returns the time until the next check for drift, or until the retry after
// a failure.
func (r *Reconciler) NextPass() time.Duration {
	wait := max(r.config.RepairInterval, passesShare*r.WholeTook)
	if r.retry > 0 {
		wait = min(wait, r.retry)
	}
	return wait
}

// End removes the veth pairs of ports, the neighbours, the programs and the maps. No
// pass follows.
func (r *Reconciler) End() error {
	r.ended = true
	r.Programs.Unfollow()
	return errors.Join(netdev.RemovePairs(r.space, r.config.Node), r.neighbours.Keep(nil), netdev.RemoveMerging(r.space, r.config.Node), r.Plane().Remove())
}

// Check tells whether a desired state can be: valid as a whole, with this node
// in it, and with tables that fit, had every port its device. Numbers of what
// is no longer wanted are free from then on. links are the node's devices.
// partial: check ignores errors that concern a single network. This is for a state
// that is already in the store, so that the other networks work.
func (r *Reconciler) Check(next *Desired, links []netlink.Link, partial bool) error {
	if err := next.State.Validate(); err != nil {
		return unfit(err)
	}
	if !next.HasNode() {
		return unfit(NoSuchNode(next.Node, next.State))
	}
	assumed, err := r.assume(next, links)
	if err != nil {
		return err
	}
	next.ids = next.ids.Clone() // the change may still fail
	tables, _, err := assumed.compile(next, r.config, fib.Limits{}, partial)
	if err != nil {
		return unfit(err)
	}
	next.ids.Prune()
	return checkSizes(tables, r.Limits)
}

// Adopt makes a state the desired state. If the state is invalid, or its tables
// exceed their limits, the previous state stays.
func (r *Reconciler) Adopt(next *Desired) error {
	links, err := netdev.Links(r.space.Links)
	if err != nil {
		return err
	}
	if !next.isEmpty() {
		if err := r.Check(next, links, true); err != nil {
			return err
		}
	}
	former := r.Want
	r.Want = next
	r.Generation++
	p := r.passOver(asked, links)
	if p.limit == nil || former == nil {
		r.IDs = next.ids
		return p.limit
	}
	r.Want = former
	r.Generation++
	r.Pass(asked)
	return p.limit
}

// checkSizes returns an error if a table exceeds its limit.
func checkSizes(t fib.Tables, l datapath.Limits) error {
	for _, s := range TableSizes(t, 0, l) {
		if s.Entries > int(s.Limit) {
			return &datapath.LimitError{Table: s.Name, Want: s.Entries, Limit: s.Limit}
		}
	}
	return nil
}

// TableSizes returns the number of entries and the limit of each table.
func TableSizes(t fib.Tables, flows int, l datapath.Limits) []TableSize {
	hosts4, hosts6, prefixes4, prefixes6 := 0, 0, 0, 0
	for k := range t.Routes {
		switch four, host := k.Prefix.Addr().Is4(), k.Prefix.IsSingleIP(); {
		case four && host:
			hosts4++
		case host:
			hosts6++
		case four:
			prefixes4++
		default:
			prefixes6++
		}
	}
	return []TableSize{
		{"hosts4", hosts4, l.Routes}, {"hosts6", hosts6, l.Routes},
		{"prefixes4", prefixes4, l.Prefixes}, {"prefixes6", prefixes6, l.Prefixes},
		{"bridge", len(t.Bridge), l.Bridge}, {"nexthops", len(t.Nexthops), l.Nexthops},
		{"vifs", len(t.Vifs), l.Vifs}, {"labels", len(t.ILM), l.Labels}, {"vnis", len(t.VNIs), l.Labels},
		{"remotes", len(t.Remotes), l.Remotes}, {"senders", len(t.Senders), l.Prefixes}, {"flows", flows, l.Flows},
	}
}

// TableSize is the number of entries of a table and its limit.
type TableSize struct {
	Name    string
	Entries int
	Limit   uint32
}

// UnfitError is the error of a state that this node cannot use.
type UnfitError struct{ err error }

func (e *UnfitError) Error() string { return e.err.Error() }
func (e *UnfitError) Unwrap() error { return e.err }

// unfit makes an error an UnfitError, unless it is a table's limit.
func unfit(err error) error {
	if IsLimit(err) {
		return err
	}
	return &UnfitError{err}
}

// IsLimit reports whether a table or its ids are full.
func IsLimit(err error) bool {
	var entries *datapath.LimitError
	var numbers *fib.LimitError
	return errors.As(err, &entries) || errors.As(err, &numbers)
}

// NoSuchNode is the error of a state that does not have this node.
func NoSuchNode(node string, s model.State) error {
	names := make([]string, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	if len(names) > 10 {
		names = append(names[:10], "…")
	}
	has := "it has no nodes"
	if len(names) > 0 {
		has = "its nodes are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("the state does not have this node, %q: %s; add it under nodes, or apply the state to the right fleet", node, has)
}
