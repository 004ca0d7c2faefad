package bgp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Site is what Resolve needs to know of a node and its fleet.
type Site struct {
	Node     model.Node      // with BGP
	Networks []model.Network // with ports on the node
	Nodes    []model.Node    // of the fleet, also this one
	// Unreachable returns the reason why the underlay does not lead to an address; "": it does.
	Unreachable func(netip.Addr) string
	// MaxRoutes is the maximum number of routes that the node uses; 0: unlimited.
	MaxRoutes int
}

// States of a path.
const (
	Used      = "used"
	Backup    = "backup" // a better path to the same destination is used
	Unused    = "unused"
	Announced = "announced" // by this node
)

// Verdict says whether the node uses a path, and why not.
type Verdict struct {
	Path
	State         string              `json:"state"`
	Why           string              `json:"why,omitempty"`      // of Unused and Backup
	Networks      []string            `json:"networks,omitempty"` // that import the path
	Encapsulation model.Encapsulation `json:"encapsulation,omitempty"`
	Value         uint32              `json:"value,omitempty"` // label or VNI that packets get
}

// Resolve chooses the routes that a node uses. A path is a route of each network that imports one
// of its targets, and has ports on the node. Of several paths to one destination, the best are used
// together. The verdicts have the order of the paths.
func (s Site) Resolve(paths []Path) (*fib.External, []Verdict) {
	r := resolver{Site: s, fleet: map[netip.Addr]string{}, reached: map[netip.Addr]string{}, groups: map[destination][]int{}}
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
	fleet    map[netip.Addr]string // names of the fleet's nodes by underlay address
	reached  map[netip.Addr]string // results of Unreachable
	verdicts []Verdict
	groups   map[destination][]int // verdicts of usable paths
}

// destination is where the paths of a group lead.
type destination struct {
	network string
	prefix  netip.Prefix
	mac     model.MAC
}

// add judges a path, without regard to others.
func (r *resolver) add(p *Path) {
	v := Verdict{Path: *p, State: Unused}
	if v.Why = r.judge(&v); v.Why == "" {
		v.Why = "no network with ports on this node can use it"
		for _, n := range r.importers(p) {
			d, why := destinationIn(n, p)
			if why != "" {
				v.Why = why
				continue
			}
			v.Networks = append(v.Networks, n.Name)
			r.groups[d] = append(r.groups[d], len(r.verdicts))
		}
	}
	r.verdicts = append(r.verdicts, v)
}

func (r *resolver) importers(p *Path) (all []model.Network) {
	for _, n := range r.Networks {
		if slices.ContainsFunc(n.Import, func(t model.RouteTarget) bool { return slices.Contains(p.Targets, t) }) {
			all = append(all, n)
		}
	}
	return all
}

// judge returns why the node cannot use a path; "": it can. It sets the encapsulation and the
// value of packets.
func (r *resolver) judge(v *Verdict) string {
	if v.Unusable != "" {
		return v.Unusable
	}
	if node := r.fleet[v.NextHop]; node != "" {
		return fmt.Sprintf("its next hop is node %s of this fleet, whose routes come from the store", node)
	}
	if len(r.importers(&v.Path)) == 0 {
		return fmt.Sprintf("no network with ports on this node imports %s", orNone(v.Targets))
	}
	if why := r.encapsulate(v); why != "" {
		return why
	}
	if !slices.ContainsFunc(r.Node.Underlay, func(a netip.Addr) bool { return a.Is4() == v.NextHop.Is4() }) {
		return fmt.Sprintf("this node has no underlay address of the family of its next hop %s", v.NextHop)
	}
	why, known := r.reached[v.NextHop]
	if !known && r.Unreachable != nil {
		why = r.Unreachable(v.NextHop)
		r.reached[v.NextHop] = why
	}
	if why != "" {
		return fmt.Sprintf("its next hop %s cannot be reached: %s", v.NextHop, why)
	}
	return ""
}

// encapsulate chooses the encapsulation of packets: of those that both ends offer, the one that
// this node prefers.
func (r *resolver) encapsulate(v *Verdict) string {
	offered := r.Node.Tunnels()
	if v.Kind == VPN {
		offered = slices.DeleteFunc(offered, func(e model.Encapsulation) bool { return e == model.VXLAN })
	}
	for _, e := range offered {
		if slices.ContainsFunc(v.Tunnels, func(t bgp.TunnelType) bool { return encapsulationOf(t) == e }) || len(v.Tunnels) == 0 && e == r.usual(v, offered) {
			v.Encapsulation = e
			break
		}
	}
	if v.Encapsulation == "" {
		return fmt.Sprintf("its encapsulation is %s, and for such routes this node offers %s", cmp.Or(v.TunnelNames(), "not announced"), orNone(offered))
	}
	v.Value = v.Label
	if v.RoutedLabel != 0 && !r.bridged(v) {
		v.Value = v.RoutedLabel
	}
	if v.Encapsulation == model.VXLAN {
		if v.Value == 0 {
			return "its VNI is 0"
		}
		return ""
	}
	if v.Kind != VPN {
		v.Value >>= labelShift
	}
	if v.Value < model.FirstLabel || v.Value > model.MaxLabel {
		return fmt.Sprintf("its label %d is not from %d to %d", v.Value, model.FirstLabel, model.MaxLabel)
	}
	return ""
}

// usual returns the encapsulation of a path that announces none.
func (r *resolver) usual(v *Verdict, offered []model.Encapsulation) model.Encapsulation {
	for _, n := range r.Node.BGP.Neighbors {
		if n.Address == v.Neighbor && n.Encapsulation != "" {
			return n.Encapsulation
		}
	}
	if v.Kind != VPN && slices.Contains(offered, model.VXLAN) {
		return model.VXLAN
	}
	i := slices.IndexFunc(offered, func(e model.Encapsulation) bool { return e != model.VXLAN })
	if i < 0 {
		return ""
	}
	return offered[i]
}

// bridged reports whether a network that bridges imports a path.
func (r *resolver) bridged(v *Verdict) bool {
	return slices.ContainsFunc(r.importers(&v.Path), model.Network.Bridges)
}

// destinationIn returns where a path leads in a network, or why the network cannot use it.
func destinationIn(n model.Network, p *Path) (d destination, why string) {
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

// choose sorts the paths of each destination and returns the routes to the best ones.
func (r *resolver) choose() *fib.External {
	x := &fib.External{}
	senders := map[fib.ExternalSender]bool{}
	keys := slices.SortedFunc(maps.Keys(r.groups), func(a, b destination) int {
		return cmp.Or(strings.Compare(a.network, b.network), a.prefix.Compare(b.prefix), slices.Compare(a.mac[:], b.mac[:]))
	})
	for _, d := range keys {
		group := r.groups[d]
		if r.MaxRoutes > 0 && len(x.Routes) >= r.MaxRoutes {
			for _, i := range group {
				r.verdicts[i].Why = fmt.Sprintf("this node already uses %d routes of other routers; raise limits.routes and limits.prefixes in its configuration", r.MaxRoutes)
			}
			continue
		}
		slices.SortStableFunc(group, func(i, j int) int {
			a, b := &r.verdicts[i], &r.verdicts[j]
			return cmp.Or(better(&a.Path, &b.Path), a.NextHop.Compare(b.NextHop), r.rank(a)-r.rank(b), cmp.Compare(a.Value, b.Value))
		})
		route := fib.ExternalRoute{Network: d.network, Prefix: d.prefix, MAC: d.mac}
		all := d.prefix == (netip.Prefix{}) && d.mac.IsZero() // of broadcast, each router gets a copy
		for _, i := range group {
			r.use(&r.verdicts[i], &r.verdicts[group[0]], &route, all)
			senders[fib.ExternalSender{Network: d.network, Address: r.verdicts[i].NextHop}] = true
		}
		x.Routes = append(x.Routes, route)
	}
	x.Senders = slices.SortedFunc(maps.Keys(senders), func(a, b fib.ExternalSender) int {
		return cmp.Or(strings.Compare(a.Network, b.Network), a.Address.Compare(b.Address))
	})
	return x
}

// rank is the place of a path's encapsulation among those that the node prefers.
func (r *resolver) rank(v *Verdict) int { return slices.Index(r.Node.Encapsulations, v.Encapsulation) }

// use adds a path to a route, unless the first path is better, or the route has another path by the
// same router. The same path from several neighbours is used once.
func (r *resolver) use(v, first *Verdict, route *fib.ExternalRoute, all bool) {
	byRouter := func(o fib.ExternalVia) bool { return o.Address == v.NextHop }
	via := fib.ExternalVia{Endpoint: fib.Endpoint{Address: v.NextHop, Encapsulation: v.Encapsulation}, Label: v.Value}
	if v.Encapsulation == model.VXLAN && route.Prefix.IsValid() {
		via.RouterMAC = v.RouterMAC
	}
	most := model.MaxECMP
	if !route.MAC.IsZero() {
		most = 1
	}
	switch {
	case v.State == Used: // by another network
		v.Why = ""
	case !all && better(&first.Path, &v.Path) < 0:
		v.State, v.Why = Backup, fmt.Sprintf("the path by %s is better", first.NextHop)
		return
	case slices.ContainsFunc(route.Via, byRouter) && !slices.Contains(route.Via, via):
		v.State, v.Why = Backup, fmt.Sprintf("another path by %s is used", v.NextHop)
		return
	case !all && len(route.Via) >= most && !slices.Contains(route.Via, via):
		v.State, v.Why = Backup, fmt.Sprintf("%d equal paths are used already", most)
		return
	}
	v.State, v.Why = Used, ""
	if !slices.Contains(route.Via, via) {
		route.Via = append(route.Via, via)
	}
}

// orNone lists values, or says that there are none.
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
