package bgp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Site is the input of Resolve: a node, its networks and its fleet.
type Site struct {
	Node     model.Node      // with BGP
	Networks []model.Network // with ports on the node
	Nodes    []model.Node    // all nodes of the fleet, including Node
	// Unreachable returns why the underlay has no path to an address; "" if it has one. A nil function
	// means that every address is reachable.
	Unreachable func(netip.Addr) string
	// MaxRoutes is the maximum number of routes that the node uses; 0: unlimited.
	MaxRoutes int
}

// States of a path.
const (
	Used      = "used"
	Backup    = "backup" // other paths to the same destination are used
	Unused    = "unused"
	Announced = "announced" // by this node
)

// Verdict says whether the node uses a path, and why not.
type Verdict struct {
	Path
	State         string              `json:"state"`
	Why           string              `json:"why,omitempty"`      // of Unused and Backup; of Used: its limits
	Networks      []string            `json:"networks,omitempty"` // networks that import the path and can use it
	Encapsulation model.Encapsulation `json:"encapsulation,omitempty"`
	// Value is the label or VNI of packets to the destination. If bridged and routed packets to a Station
	// have different ones, it is that of bridged packets.
	Value uint32 `json:"value,omitempty"`
}

// Resolve chooses the routes that a node uses. Each network with ports on the node imports the paths
// that have one of its import targets. Of several paths to one destination in a network, the node uses
// the best ones together. The verdicts are in the order of the paths.
func (s Site) Resolve(paths []Path) (*fib.External, []Verdict) { return s.resolve(paths, nil) }

// Explain returns the verdict on each path, as the node's tables have decided it: ignored is fib.Compiled.Ignored of these
// tables.
func (s Site) Explain(paths []Path, ignored map[fib.ExternalDestination]string) []Verdict {
	_, verdicts := s.resolve(paths, ignored)
	for i := range verdicts {
		v := &verdicts[i]
		if v.State == Unused {
			continue
		}
		for _, n := range s.importers(&v.Path) {
			d, why := destinationIn(n, &v.Path)
			if why != "" {
				continue
			}
			why = ignored[d]
			at := slices.IndexFunc(n.Subnets, func(s netip.Prefix) bool {
				return d.Prefix.IsValid() && s.Contains(d.Prefix.Addr()) && d.Prefix.IsSingleIP()
			})
			switch {
			case why != "":
				v.note("network %s does not use it: %s", n.Name, why)
			case v.State == Used && at >= 0:
				v.note("no port has this address of the subnet %s of network %s", n.Subnets[at], n.Name)
			}
		}
	}
	return verdicts
}

// note adds a sentence to Why.
func (v *Verdict) note(format string, args ...any) {
	if v.Why != "" {
		v.Why += "; "
	}
	v.Why += fmt.Sprintf(format, args...)
}

// Update returns the routes that Resolve chooses. last are those that it chose for the same site before some paths changed.
// It looks only at the paths to the changed destinations, unless there may be more than MaxRoutes.
func (s Site) Update(last *fib.External, paths []Path, changed Changes) *fib.External {
	if s.MaxRoutes > 0 && len(last.Routes)+len(changed)*len(s.Networks) > s.MaxRoutes {
		x, _ := s.Resolve(paths)
		return x
	}
	r := s.resolver(0)
	r.MaxRoutes, r.only = 0, changed
	for i := range paths {
		if changed.concern(&paths[i]) {
			r.add(&paths[i])
		}
	}
	routes := r.choose().Routes
	for _, n := range s.Networks {
		for d := range changed {
			if d.Network = n.Name; r.groups[d] == nil {
				routes = append(routes, fib.ExternalRoute{ExternalDestination: d})
			}
		}
	}
	slices.SortFunc(routes, func(a, b fib.ExternalRoute) int { return compareRoutes(&a, &b) })
	return &fib.External{Routes: merge(last.Routes, routes, compareRoutes, func(r *fib.ExternalRoute) bool { return len(r.Via) > 0 })}
}

func compareRoutes(a, b *fib.ExternalRoute) int {
	return compareDestinations(a.ExternalDestination, b.ExternalDestination)
}

func compareDestinations(a, b destination) int {
	return cmp.Or(strings.Compare(a.Network, b.Network), a.Prefix.Compare(b.Prefix), slices.Compare(a.MAC[:], b.MAC[:]))
}

func (s Site) resolve(paths []Path, ignored map[fib.ExternalDestination]string) (*fib.External, []Verdict) {
	r := s.resolver(len(paths))
	r.ignored = ignored
	for i := range paths {
		r.add(&paths[i])
	}
	return r.choose(), r.verdicts
}

// resolver returns a resolver for about n paths.
func (s Site) resolver(n int) *resolver {
	r := &resolver{Site: s, fleet: map[netip.Addr]string{}, groups: make(map[destination][]int, n), verdicts: make([]Verdict, 0, n)}
	for _, n := range s.Nodes {
		for _, a := range n.Underlay {
			r.fleet[a] = n.Name
		}
	}
	return r
}

type resolver struct {
	Site
	ignored  map[fib.ExternalDestination]string
	only     Changes               // destinations that matter; nil: all
	fleet    map[netip.Addr]string // names of the fleet's nodes by underlay address
	verdicts []Verdict
	groups   map[destination][]int // indexes in verdicts of the usable paths to each destination
}

// destination is a prefix or MAC address of a network. If it has neither, it stands for broadcast,
// unknown unicast and multicast.
type destination = fib.ExternalDestination

// Changes are the destinations, without networks, of paths that have changed.
type Changes map[destination]bool

// destinations calls yield with the destinations that a path can have, without networks.
func (p *Path) destinations(yield func(destination) bool) {
	_ = (!p.Prefix.IsValid() || yield(destination{Prefix: p.Prefix})) &&
		(p.Kind != Station || yield(destination{MAC: p.MAC})) &&
		(p.Kind != Multicast || yield(destination{}))
}

func (c Changes) add(p *Path) {
	for d := range p.destinations {
		c[d] = true
	}
}

func (c Changes) concern(p *Path) bool {
	for d := range p.destinations {
		if c[d] {
			return true
		}
	}
	return false
}

// add decides whether the node can use a path, without comparing it with other paths.
func (r *resolver) add(p *Path) {
	v := Verdict{Path: *p, State: Unused}
	importers := r.importers(p)
	if v.Why = r.judge(&v, len(importers) > 0); v.Why == "" {
		for _, n := range importers {
			d, why := destinationIn(n, p)
			if r.only != nil && !r.only[destination{Prefix: d.Prefix, MAC: d.MAC}] {
				continue
			}
			var value uint32
			if why == "" {
				value, why = v.value(d)
			}
			if why != "" {
				v.Why = why
				continue
			}
			if v.Value == 0 || !d.Prefix.IsValid() {
				v.Value = value
			}
			v.Networks = append(v.Networks, n.Name)
			r.groups[d] = append(r.groups[d], len(r.verdicts))
		}
	}
	r.verdicts = append(r.verdicts, v)
}

func (s Site) importers(p *Path) (all []*model.Network) {
	for i := range s.Networks {
		n := &s.Networks[i]
		if slices.ContainsFunc(n.Import, func(t model.RouteTarget) bool { return slices.Contains(p.Targets, t) }) {
			all = append(all, n)
		}
	}
	return all
}

// judge returns why no network of the node can use a path, or "". It sets the path's encapsulation. imported
// says whether a network of the node imports the path.
func (r *resolver) judge(v *Verdict, imported bool) string {
	if v.Unusable != "" {
		return v.Unusable
	}
	if node := r.fleet[v.NextHop]; node != "" {
		return fmt.Sprintf("its next hop is node %s of this fleet, whose routes come from the store", node)
	}
	if !imported {
		return fmt.Sprintf("no network with ports on this node imports %s", orNone(v.Targets))
	}
	if why := r.encapsulate(v); why != "" {
		return why
	}
	if !slices.ContainsFunc(r.Node.Underlay, func(a netip.Addr) bool { return a.Is4() == v.NextHop.Is4() }) {
		return fmt.Sprintf("this node has no underlay address of the family of its next hop %s", v.NextHop)
	}
	if r.Unreachable != nil {
		if why := r.Unreachable(v.NextHop); why != "" {
			return fmt.Sprintf("its next hop %s is not reachable: %s", v.NextHop, why)
		}
	}
	return ""
}

// encapsulate sets the encapsulation of a path: of the encapsulations that both ends offer, the one that
// this node prefers. It returns why there is none, or "".
func (r *resolver) encapsulate(v *Verdict) string {
	offered := r.Node.Tunnels()
	if v.Kind == VPN {
		offered = slices.DeleteFunc(offered, func(e model.Encapsulation) bool { return e == model.VXLAN })
	}
	for _, e := range offered {
		if slices.ContainsFunc(v.Tunnels, func(t bgp.TunnelType) bool { return encapsulationOf(t) == e }) || len(v.Tunnels) == 0 && e == r.defaultEncapsulation(v, offered) {
			v.Encapsulation = e
			return ""
		}
	}
	return fmt.Sprintf("its encapsulation is %s, but for such routes this node offers %s", cmp.Or(v.TunnelNames(), "not announced"), orNone(offered))
}

// defaultEncapsulation returns the encapsulation of a path that announces none.
func (r *resolver) defaultEncapsulation(v *Verdict, offered []model.Encapsulation) model.Encapsulation {
	for _, n := range r.Node.BGP.Neighbors {
		if n.Address == v.Neighbor && n.Encapsulation != "" {
			return n.Encapsulation
		}
	}
	if slices.Contains(offered, model.VXLAN) {
		return model.VXLAN
	}
	return offered[0]
}

// value returns the label or VNI of packets to a destination, or why the path has none. Routed packets
// to a Station have the second label of the path (RFC 9135).
func (v *Verdict) value(d destination) (value uint32, why string) {
	if value = v.Label; v.Kind == Station && d.Prefix.IsValid() {
		value = v.RoutedLabel
	}
	if v.Encapsulation == model.VXLAN {
		if value == 0 {
			return 0, "its VNI is 0"
		}
		return value, ""
	}
	if v.Kind != VPN {
		value >>= labelShift
	}
	if value < model.FirstLabel || value > model.MaxLabel {
		return 0, fmt.Sprintf("its label %d is not from %d to %d", value, model.FirstLabel, model.MaxLabel)
	}
	return value, ""
}

// destinationIn returns the destination of a path in a network, or why the network cannot use the path.
func destinationIn(n *model.Network, p *Path) (d destination, why string) {
	d.Network = n.Name
	switch {
	case p.Kind == VPN, p.Kind == Prefix:
		if d.Prefix = p.Prefix; !n.Routes() {
			return d, fmt.Sprintf("network %s only bridges", n.Name)
		}
	case n.Bridges():
		if d.MAC = p.MAC; p.Kind == Station && (!p.MAC.IsUnicast() || p.MAC == model.RouterMAC) {
			return d, fmt.Sprintf("%s is not the MAC address of a station", p.MAC)
		}
	case p.Kind == Station && p.Prefix.IsValid() && p.RoutedLabel != 0:
		d.Prefix = p.Prefix
	default:
		return d, fmt.Sprintf("network %s only routes", n.Name)
	}
	return d, ""
}

// choose returns a route to each destination, by its best paths.
func (r *resolver) choose() *fib.External {
	x := &fib.External{}
	keys := slices.SortedFunc(maps.Keys(r.groups), compareDestinations)
	for _, d := range keys {
		slices.SortStableFunc(r.groups[d], func(i, j int) int {
			a, b := &r.verdicts[i], &r.verdicts[j]
			// not by Verdict.Value, which can be that of another destination
			v, _ := a.value(d)
			w, _ := b.value(d)
			return cmp.Or(better(&a.Path, &b.Path), a.NextHop.Compare(b.NextHop), r.rank(a)-r.rank(b), cmp.Compare(v, w))
		})
	}
	without := r.aboveLimit(keys)
	for _, d := range keys {
		group := r.groups[d]
		why := r.ignored[d]
		if without[d] {
			why = fmt.Sprintf("this node already uses %d routes of other routers; raise limits.routes, limits.prefixes and limits.bridge in its configuration", r.MaxRoutes)
		}
		if why != "" {
			for _, i := range group {
				v := &r.verdicts[i]
				if v.Networks = slices.DeleteFunc(v.Networks, func(n string) bool { return n == d.Network }); v.State == Unused && !strings.Contains(v.Why, why) {
					v.note("%s", why)
				}
			}
			continue
		}
		route := fib.ExternalRoute{ExternalDestination: d}
		for _, i := range group {
			r.verdicts[i].join(d, &r.verdicts[group[0]], &route)
		}
		for _, i := range group {
			if hop := r.verdicts[i].NextHop; !slices.ContainsFunc(route.Via, func(v fib.ExternalVia) bool { return v.Address == hop }) {
				route.Backups = append(route.Backups, hop)
			}
		}
		x.Routes = append(x.Routes, route)
	}
	return x
}

// aboveLimit returns the destinations to which the node has no routes because of MaxRoutes. The neighbours of the best paths
// take turns, so that a neighbour with very many routes does not displace those of others. keys are all destinations.
func (r *resolver) aboveLimit(keys []destination) map[destination]bool {
	without := map[destination]bool{}
	if r.MaxRoutes == 0 || len(keys) <= r.MaxRoutes {
		return without
	}
	turns, turn := map[netip.Addr]int{}, make(map[destination]int, len(keys))
	for _, d := range keys {
		neighbor := r.verdicts[r.groups[d][0]].Neighbor
		turn[d] = turns[neighbor]
		turns[neighbor]++
	}
	fair := slices.Clone(keys)
	slices.SortStableFunc(fair, func(a, b destination) int { return turn[a] - turn[b] })
	for _, d := range fair[r.MaxRoutes:] {
		without[d] = true
	}
	return without
}

// rank is the position of a path's encapsulation in the node's order of preference.
func (r *resolver) rank(v *Verdict) int { return slices.Index(r.Node.Encapsulations, v.Encapsulation) }

// join adds a path to the route to a destination, or sets why the path is a backup. best is the best path
// to the destination. A route has one next hop of each router. A route for broadcast has all routers, so
// that each gets a copy.
func (v *Verdict) join(d destination, best *Verdict, route *fib.ExternalRoute) {
	value, _ := v.value(d)
	via := fib.ExternalVia{Endpoint: fib.Endpoint{Address: v.NextHop, Encapsulation: v.Encapsulation}, Label: value}
	if v.Encapsulation == model.VXLAN && d.Prefix.IsValid() {
		via.RouterMAC = v.RouterMAC
	}
	broadcast, limit := !d.Prefix.IsValid() && d.MAC.IsZero(), model.MaxECMP
	if !d.MAC.IsZero() {
		limit = 1
	}
	why := ""
	switch {
	case !broadcast && v.LongLivedStale && !best.LongLivedStale:
		why = fmt.Sprintf("it is stale (LLGR_STALE, RFC 9494), and the path by %s is not", best.NextHop)
	case !broadcast && better(&best.Path, &v.Path) < 0:
		why = fmt.Sprintf("the path by %s is better", best.NextHop)
	case slices.Contains(route.Via, via): // several neighbours announce the same path
	case slices.ContainsFunc(route.Via, func(o fib.ExternalVia) bool { return o.Address == v.NextHop }):
		why = fmt.Sprintf("another path by %s is used", v.NextHop)
	case !broadcast && len(route.Via) >= limit:
		why = fmt.Sprintf("the route already uses %s, its maximum", phrase.Count(limit, "equal path"))
	default:
		route.Via = append(route.Via, via)
	}
	switch {
	case why == "":
		v.State, v.Why = Used, ""
	case v.State != Used: // by another network
		v.State, v.Why = Backup, why
	}
}

// orNone lists values as text; "none" if there are none.
func orNone[E any](all []E) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(lists.Map(all, func(e E) string { return fmt.Sprint(e) }), ", ")
}
