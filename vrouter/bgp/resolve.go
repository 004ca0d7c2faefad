package bgp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

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

// Explain returns the verdicts on paths, with the decisions of the compiler of the node's tables: ignored is that of
// fib.Compiled.
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
			why = ignored[d.external()]
			at := slices.IndexFunc(n.Subnets, func(s netip.Prefix) bool {
				return d.prefix.IsValid() && s.Contains(d.prefix.Addr()) && d.prefix.IsSingleIP()
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

func (s Site) resolve(paths []Path, ignored map[fib.ExternalDestination]string) (*fib.External, []Verdict) {
	r := resolver{Site: s, ignored: ignored, fleet: map[netip.Addr]string{}, groups: make(map[destination][]int, len(paths)), verdicts: make([]Verdict, 0, len(paths))}
	for _, n := range s.Nodes {
		for _, a := range n.Underlay {
			r.fleet[a] = n.Name
		}
	}
	for i := range paths {
		r.add(&paths[i])
	}
	return r.choose(), r.verdicts
}

type resolver struct {
	Site
	ignored  map[fib.ExternalDestination]string
	fleet    map[netip.Addr]string // names of the fleet's nodes by underlay address
	verdicts []Verdict
	groups   map[destination][]int // indexes in verdicts of the usable paths to each destination
}

// destination is a prefix or MAC address of a network. If it has neither, it stands for broadcast,
// unknown unicast and multicast.
type destination struct {
	network string
	prefix  netip.Prefix
	mac     model.MAC
}

func (d destination) external() fib.ExternalDestination {
	return fib.ExternalDestination{Network: d.network, Prefix: d.prefix, MAC: d.mac}
}

// add decides whether the node can use a path, without comparing it with other paths.
func (r *resolver) add(p *Path) {
	v := Verdict{Path: *p, State: Unused}
	importers := r.importers(p)
	if v.Why = r.judge(&v, len(importers) > 0); v.Why == "" {
		for _, n := range importers {
			d, why := destinationIn(n, p)
			var value uint32
			if why == "" {
				value, why = v.value(d)
			}
			if why != "" {
				v.Why = why
				continue
			}
			if v.Value == 0 || !d.prefix.IsValid() {
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
	if value = v.Label; v.Kind == Station && d.prefix.IsValid() {
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
	d.network = n.Name
	switch {
	case p.Kind == VPN, p.Kind == Prefix:
		if d.prefix = p.Prefix; !n.Routes() {
			return d, fmt.Sprintf("network %s only bridges", n.Name)
		}
	case n.Bridges():
		if d.mac = p.MAC; p.Kind == Station && (!p.MAC.IsUnicast() || p.MAC == model.RouterMAC) {
			return d, fmt.Sprintf("%s is not the MAC address of a station", p.MAC)
		}
	case p.Kind == Station && p.Prefix.IsValid() && p.RoutedLabel != 0:
		d.prefix = p.Prefix
	default:
		return d, fmt.Sprintf("network %s only routes", n.Name)
	}
	return d, ""
}

// choose returns a route to each destination, by its best paths.
func (r *resolver) choose() *fib.External {
	x := &fib.External{}
	senders := map[fib.ExternalSender]bool{}
	keys := slices.SortedFunc(maps.Keys(r.groups), func(a, b destination) int {
		return cmp.Or(strings.Compare(a.network, b.network), a.prefix.Compare(b.prefix), slices.Compare(a.mac[:], b.mac[:]))
	})
	for _, d := range keys {
		slices.SortStableFunc(r.groups[d], func(i, j int) int {
			a, b := &r.verdicts[i], &r.verdicts[j]
			return cmp.Or(better(&a.Path, &b.Path), a.NextHop.Compare(b.NextHop), r.rank(a)-r.rank(b), cmp.Compare(a.Value, b.Value))
		})
	}
	without := r.aboveLimit(keys)
	for _, d := range keys {
		group := r.groups[d]
		why := r.ignored[d.external()]
		if without[d] {
			why = fmt.Sprintf("this node already uses %d routes of other routers; raise limits.routes, limits.prefixes and limits.bridge in its configuration", r.MaxRoutes)
		}
		if why != "" {
			for _, i := range group {
				v := &r.verdicts[i]
				if v.Networks = slices.DeleteFunc(v.Networks, func(n string) bool { return n == d.network }); v.State == Unused {
					v.Why = why
				}
			}
			continue
		}
		route := fib.ExternalRoute{Network: d.network, Prefix: d.prefix, MAC: d.mac}
		for _, i := range group {
			r.verdicts[i].join(d, &r.verdicts[group[0]], &route)
			senders[fib.ExternalSender{Network: d.network, Address: r.verdicts[i].NextHop}] = true
		}
		x.Routes = append(x.Routes, route)
	}
	x.Senders = slices.SortedFunc(maps.Keys(senders), func(a, b fib.ExternalSender) int {
		return cmp.Or(strings.Compare(a.Network, b.Network), a.Address.Compare(b.Address))
	})
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
	if v.Encapsulation == model.VXLAN && d.prefix.IsValid() {
		via.RouterMAC = v.RouterMAC
	}
	broadcast, limit := !d.prefix.IsValid() && d.mac.IsZero(), model.MaxECMP
	if !d.mac.IsZero() {
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
	var words []string
	for _, e := range all {
		words = append(words, fmt.Sprint(e))
	}
	return strings.Join(words, ", ")
}
