package reconcile

import (
	"errors"
	"fmt"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Check returns an error if this node cannot use a desired state. The state must be valid
// and contain this node, and its tables must not exceed their limits. Check assumes that
// every port has a device. partial: Check ignores errors that concern a single network. Use
// partial for a state that is already in the store, so that the other networks work.
func (r *Reconciler) Check(next *Desired, partial bool) error {
	tried, err := r.try(next, partial)
	if err == nil {
		err = checkSizes(tried.All(), r.Limits)
	}
	return err
}

// try compiles the state next as Check does, but does not compare the sizes of the tables
// with their limits.
func (r *Reconciler) try(next *Desired, partial bool) (*trial, error) {
	if next.wrong != nil && !partial {
		return nil, unfit(next.wrong)
	}
	if !next.HasNode() {
		return nil, unfit(NoSuchNode(next.Node, next.State))
	}
	assumed, err := r.assume(next)
	if err != nil {
		return nil, err
	}
	next.ids = next.ids.Clone() // the change may still fail
	compiled, err := assumed.compile(next, fib.Limits{Sets: r.Limits.Sets()}, partial, r.Last.Compiled)
	if err != nil {
		return nil, unfit(err)
	}
	return &trial{assumed, compiled}, nil
}

// trial is the result of try: the tables of a state that may become the desired state, and the facts from which Compile made the
// tables. If a port has no device yet, the facts contain an assumed device for it.
type trial struct {
	facts *facts
	*fib.Compiled
}

// checkSizes returns an error if a table exceeds its limit.
func checkSizes(t fib.Tables, l datapath.Limits) error {
	for _, s := range TableSizes(t, 0, l) {
		if s.Entries > int(s.Limit) {
			return datapath.LimitError(s.Name, s.Entries, s.Limit)
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
	groups := map[uint32]bool{}
	for _, p := range t.Policies {
		if p.Group != (fib.Group{}) {
			groups[p.Group.Number] = true
		}
	}
	return []TableSize{
		{"hosts4", hosts4, l.Routes}, {"hosts6", hosts6, l.Routes},
		{"prefixes4", prefixes4, l.Prefixes}, {"prefixes6", prefixes6, l.Prefixes},
		{"bridge", len(t.Bridge), l.Bridge}, {"nexthops", len(t.Nexthops), l.Nexthops},
		{"vifs", len(t.Vifs), l.Vifs}, {"labels", len(t.ILM), l.Labels}, {"vnis", len(t.VNIs), l.Labels},
		{"remotes", len(t.Remotes), l.Remotes}, {"senders", len(t.Senders), l.Prefixes}, {"flows", flows, l.Flows},
		{"identities", len(t.Sets.Identities), l.Sets()}, {"allows", len(t.Sets.Allows), l.Sets()}, {"groups", len(groups), l.Vifs},
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
	return errors.As(err, new(*fib.LimitError))
}

// NoSuchNode is the error of a state that does not have this node.
func NoSuchNode(node string, s model.State) error {
	names := make([]string, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	has := "it has no nodes"
	if len(names) > 0 {
		has = "its nodes are " + phrase.Some(names, 10)
	}
	return fmt.Errorf("the state does not have this node, %q: %s; add it under nodes, or apply the state to the right fleet", node, has)
}

// assumedDevice is the first ifindex of assumed devices. It is far above the
// ifindexes of real devices.
const assumedDevice = 1 << 30

// assume returns the facts of the last pass, with an assumed device for each port that has none.
func (r *Reconciler) assume(want *Desired) (*facts, error) {
	self, _ := want.Self()
	fabric, _, err := r.fabric(netdev.NewDevices(r.space), self, true)
	if err != nil {
		return nil, err
	}
	f := r.Last.facts
	f.known, f.services = f.ways, r.Services
	f.find(r.Last.Devices, netdev.NewUnderlay(r.space, fabric))
	for i, p := range want.Ports {
		if _, has := f.ports[p.Name]; !has {
			f.ports[p.Name] = fib.PortFact{Ifindex: uint32(assumedDevice + i)}
		}
	}
	return &f, nil
}
