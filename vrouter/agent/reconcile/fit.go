package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// overfullError is the error of a network whose ports and routes do not all fit into this
// node's tables. limit says what the network lacks on this node.
type overfullError struct {
	network, limit string
	err            error
}

func (e *overfullError) Error() string {
	return fmt.Sprintf("network %q %s: %v", e.network, e.limit, e.err)
}

func (e *overfullError) Unwrap() error { return e.err }

// fitting returns a desired state that fits into this node's tables. If next does not fit,
// fitting rejects the new ports and routes of a network, of the network that grew most
// first. If next still does not fit, networks import no routes, the network that imports those of
// the most networks first. If next still does not fit, for example after a start, fitting
// leaves out networks, the largest first. The other networks keep working.
func (r *Reconciler) fitting(next, former *Desired) (*Desired, error) {
	err := r.Check(next, true)
	if err == nil || !IsLimit(err) {
		return next, err
	}
	was := model.Slice{}
	if former != nil {
		was = former.Slice
	}
	wrong, given, overfull := []error{next.wrong}, next.given, map[string]error{}
	try := func(name, limit string, limited model.Slice) bool {
		overfull[name] = &overfullError{name, limit, err}
		wrong = append(wrong, overfull[name])
		next = NewDesired(next.Node, limited, next.ids, nil)
		next.given, next.wrong, next.Overfull = given, errors.Join(wrong...), overfull
		return r.Check(next, true) == nil
	}
	before, now := sizes(was), sizes(next.Slice)
	for _, name := range byNumber(now, func(name string) int { return now[name] - before[name] }) {
		if now[name] > before[name] && before[name] > 0 && try(name, "gets no new ports and routes on this node", limitNetwork(next.Slice, was, name)) {
			return next, nil
		}
	}
	leaks := model.Leaks(next.State.Networks)
	for _, name := range byNumber(leaks, func(name string) int { return len(leaks[name]) }) {
		if try(name, "imports no routes of other networks on this node", withoutLeaks(next.Slice, name)) {
			return next, nil
		}
	}
	left := sizes(next.Slice)
	for _, name := range byNumber(left, func(name string) int { return left[name] }) {
		if try(name, "is left out", limitNetwork(next.Slice, model.Slice{}, name)) {
			return next, nil
		}
	}
	return next, err
}

// Start makes the first pass. If the state does not fit, Start limits networks to their
// ports and routes in the saved state.
func (r *Reconciler) Start(saved func() *model.Slice) {
	r.Pass(Starting)
	if r.Last.limit == nil {
		return
	}
	var former *Desired
	if known := saved(); known != nil {
		former = NewDesired(r.config.Node, *known, r.IDs, nil)
	}
	next, err := r.fitting(r.Want, former)
	if err != nil {
		r.log.Error("cannot use the state", "error", err)
		return
	}
	r.Want, r.IDs = next, next.ids
	r.Generation++
	r.Pass(Starting)
}

// sizes estimates the number of table entries of each network.
func sizes(s model.Slice) map[string]int {
	all := map[string]int{}
	for _, n := range s.Networks {
		all[n.Name] = 1
	}
	for _, p := range s.All {
		all[p.Network] += 1 + len(p.IPs) + len(p.AllowSources)
	}
	for _, r := range s.Routes {
		all[r.Network] += 1 + len(r.Via)
	}
	return all
}

// byNumber sorts names by number, the largest first.
func byNumber[V any](all map[string]V, number func(string) int) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(number(b), number(a)), cmp.Compare(a, b))
	})
	return names
}

// withoutLeaks returns the slice s in which a network imports no routes.
func withoutLeaks(s model.Slice, name string) model.Slice {
	s.Networks = slices.Clone(s.Networks)
	for i := range s.Networks {
		if s.Networks[i].Name == name {
			s.Networks[i].Import = nil
		}
	}
	return s
}

// limitNetwork returns the slice s without the ports and routes of a network that the
// slice to lacks.
func limitNetwork(s, to model.Slice, name string) model.Slice {
	ports, prefixes := map[string]bool{}, map[netip.Prefix]bool{}
	for _, p := range to.All {
		ports[p.Name] = true
	}
	for _, r := range to.Routes {
		if r.Network == name {
			prefixes[r.Prefix] = true
		}
	}
	s.All = slices.DeleteFunc(slices.Clone(s.All), func(p *model.CompactPort) bool { return p.Network == name && !ports[p.Name] })
	s.Routes = slices.DeleteFunc(slices.Clone(s.Routes), func(r model.Route) bool { return r.Network == name && !prefixes[r.Prefix] })
	return s
}
