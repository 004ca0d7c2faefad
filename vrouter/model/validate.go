package model

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
)

// Limits of the objects.
const (
	MaxNetworkID = 4095
	MaxVNI       = 1<<24 - 1
	MaxLabel     = 1<<20 - 1
	MaxECMP      = 16
	MaxRules     = 64 // that judge one port
	MaxUnderlay  = 4  // addresses of a family on a node
	MaxSources   = 4  // addresses and allowed prefixes of a family on a port
)

// MaxProblems is how many an error lists before it only counts.
const MaxProblems = 50

// mostName is the longest name, in characters.
const mostName = 63

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Validate returns nil, or every problem of the state, each naming object,
// field, reason and remedy. Defaults count as filled in.
func (s State) Validate() error {
	v := &validation{
		s: s.WithDefaults(), nodes: map[string]*Node{}, networks: map[string]*Network{}, ports: map[string]*Port{},
		gateways: map[string]*Gateway{}, policies: map[string]*Policy{},
		prefixes: map[station[netip.Prefix]]string{},
	}
	v.index()
	v.checkNodes()
	v.checkNetworks()
	v.checkPolicies()
	v.checkPorts()
	v.checkGateways()
	v.checkRoutes()
	return v.result()
}

// validation is the work of Validate.
type validation struct {
	s        State
	nodes    map[string]*Node
	networks map[string]*Network
	ports    map[string]*Port
	gateways map[string]*Gateway
	policies map[string]*Policy
	prefixes map[station[netip.Prefix]]string // what leads to each already
	errs     []error
	more     int
}

func (v *validation) fail(object, name, format string, args ...any) {
	if len(v.errs) == MaxProblems {
		v.more++
		return
	}
	v.errs = append(v.errs, fmt.Errorf("%s %q: %s", object, name, fmt.Sprintf(format, args...)))
}

func (v *validation) result() error {
	if v.more > 0 {
		v.errs = append(v.errs, fmt.Errorf("and %d problems more", v.more))
	}
	return errors.Join(v.errs...)
}

// index notes every object by its name.
func (v *validation) index() {
	named(v, "node", v.s.Nodes, v.nodes, func(n *Node) string { return n.Name })
	named(v, "network", v.s.Networks, v.networks, func(n *Network) string { return n.Name })
	named(v, "port", v.s.Ports, v.ports, func(p *Port) string { return p.Name })
	named(v, "gateway", v.s.Gateways, v.gateways, func(g *Gateway) string { return g.Name })
	named(v, "policy", v.s.Policies, v.policies, func(p *Policy) string { return p.Name })
}

func named[E any](v *validation, object string, all []E, into map[string]*E, name func(*E) string) {
	for i := range all {
		n := name(&all[i])
		if !nameForm.MatchString(n) {
			v.fail(object, n, "name: up to 63 letters, digits, dots, dashes and underscores, a letter or digit first")
		} else if into[n] != nil {
			v.fail(object, n, "name: two have it; rename one")
		}
		into[n] = &all[i]
	}
}

func (v *validation) checkNodes() {
	whose := map[netip.Addr]string{}
	for _, n := range v.s.Nodes {
		if len(n.Underlay) == 0 {
			v.fail("node", n.Name, "underlay: needs an address by which other nodes reach it")
		}
		count := map[bool]int{}
		for _, a := range n.Underlay {
			if !usable(a) {
				v.fail("node", n.Name, "underlay: %s cannot be a node's address", a)
			} else if other, taken := whose[a]; taken {
				v.fail("node", n.Name, "underlay: %s is also node %q's; give it another", a, other)
			}
			whose[a] = n.Name
			if count[a.Is4()]++; count[a.Is4()] == MaxUnderlay+1 {
				v.fail("node", n.Name, "underlay: more than %d addresses of a family", MaxUnderlay)
			}
		}
		seen := map[Encapsulation]bool{}
		for _, e := range n.Encapsulations {
			v.checkEncapsulation("node", n.Name, "encapsulations", e)
			if seen[e] {
				v.fail("node", n.Name, "encapsulations: %s stands there twice", e)
			}
			seen[e] = true
		}
	}
}

func (v *validation) checkEncapsulation(object, name, field string, e Encapsulation) {
	if !slices.Contains(DefaultEncapsulations, e) {
		v.fail(object, name, "%s: %q is not known; write mpls-udp, mpls-gre or vxlan", field, e)
	}
}

// usable: a unicast address without a zone.
func usable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a.Zone() == "" && !a.Is4In6() && !a.IsLinkLocalUnicast()
}

func (v *validation) checkNetworks() {
	ids, vnis := map[uint32]string{}, map[uint32]string{}
	for _, n := range v.s.Networks {
		switch other, taken := ids[n.ID]; {
		case n.ID == 0 || n.ID > MaxNetworkID:
			v.fail("network", n.Name, "id: %d is not from 1 to %d, from which its VRF and labels follow", n.ID, MaxNetworkID)
		case taken:
			v.fail("network", n.Name, "id: %d is also network %q's; give it another", n.ID, other)
		}
		ids[n.ID] = n.Name
		switch other, taken := vnis[n.VNI]; {
		case n.VNI == 0 || n.VNI > MaxVNI:
			v.fail("network", n.Name, "vni: %d is not from 1 to %d", n.VNI, MaxVNI)
		case taken:
			v.fail("network", n.Name, "vni: %d is also network %q's; give it another", n.VNI, other)
		}
		vnis[n.VNI] = n.Name
		if !slices.Contains([]Forwarding{L3, L2, L2L3}, n.Forwarding) {
			v.fail("network", n.Name, "forwarding: %q is not known; write l3, l2 or l2l3", n.Forwarding)
		}
		if len(n.Subnets) == 0 && n.Forwarding != L2 {
			v.fail("network", n.Name, "subnets: a network that routes needs one")
		}
		v.checkSubnets(n)
		v.checkPolicyNames("network", n.Name, n.Policies)
	}
}

func (v *validation) checkSubnets(n Network) {
	for i, p := range n.Subnets {
		switch {
		case !p.IsValid():
			v.fail("network", n.Name, "subnets: an empty prefix; write such as 10.1.0.0/16")
			continue
		case p.Masked() != p:
			v.fail("network", n.Name, "subnets: %s has bits behind its length; did you mean %s?", p, p.Masked())
		case p.Addr().BitLen()-p.Bits() < 2:
			v.fail("network", n.Name, "subnets: %s is too small for a gateway and a port; use /%d or shorter", p, p.Addr().BitLen()-2)
		case p.Addr().IsMulticast() || p.Addr().IsLinkLocalUnicast() || p.Addr().IsLoopback():
			v.fail("network", n.Name, "subnets: %s is no prefix for workloads", p)
		}
		for _, q := range n.Subnets[:i] {
			if p.Overlaps(q) {
				v.fail("network", n.Name, "subnets: %s overlaps %s; make them apart", p, q)
			}
		}
	}
}

func (v *validation) checkPolicyNames(object, name string, policies []string) {
	for _, p := range policies {
		if v.policies[p] == nil {
			v.fail(object, name, "policies: there is no policy %q; define it under policies", p)
		}
	}
}

func (v *validation) checkPolicies() {
	for _, p := range v.s.Policies {
		for i, r := range p.Rules {
			v.checkRule(p.Name, i+1, r)
		}
	}
}

func (v *validation) checkRule(policy string, number int, r Rule) {
	fail := func(format string, args ...any) {
		v.fail("policy", policy, "rule %d: %s", number, fmt.Sprintf(format, args...))
	}
	if r.Direction != Ingress && r.Direction != Egress {
		fail("direction: %q is not known; write ingress (to the workload) or egress (from it)", r.Direction)
	}
	if r.Action != Allow && r.Action != Deny {
		fail("action: %q is not known; write allow or deny", r.Action)
	}
	protocol, err := r.ProtocolNumber()
	if err != nil {
		fail("%v", err)
	}
	if _, _, err := r.PortRange(); err != nil {
		fail("%v", err)
	} else if err == nil && r.Ports != "" && protocol != 6 && protocol != 17 && protocol != 132 {
		fail("ports: only tcp, udp and sctp have ports; add a protocol, or leave ports out")
	}
	if r.Remote.IsValid() && r.Remote.Masked() != r.Remote {
		fail("remote: %s has bits behind its length; did you mean %s?", r.Remote, r.Remote.Masked())
	}
}

// station is a place in a network that only one port may have.
type station[K comparable] struct {
	network string
	key     K
}

func (v *validation) checkPorts() {
	macs := make(map[station[MAC]]string, len(v.s.Ports))
	ips := make(map[station[netip.Addr]]string, len(v.s.Ports))
	places := map[string]string{}
	for i := range v.s.Ports {
		p := &v.s.Ports[i]
		if v.nodes[p.Node] == nil {
			v.fail("port", p.Name, "node: there is no node %q; define it under nodes", p.Node)
		}
		n := v.networks[p.Network]
		if n == nil {
			v.fail("port", p.Name, "network: there is no network %q; define it under networks", p.Network)
			continue
		}
		v.checkMAC(p, macs)
		v.checkAddresses(p, n, ips)
		v.checkAttachment(p, places)
		v.checkPolicyNames("port", p.Name, p.Policies)
		if rules := v.rulesOf(p, n); rules > MaxRules {
			v.fail("port", p.Name, "policies: its own and its network's have %d rules together, at most %d; merge some", rules, MaxRules)
		}
	}
}

func (v *validation) rulesOf(p *Port, n *Network) (count int) {
	for _, names := range [][]string{p.Policies, n.Policies} {
		for _, name := range names {
			if policy := v.policies[name]; policy != nil {
				count += len(policy.Rules)
			}
		}
	}
	return count
}

func (v *validation) checkMAC(p *Port, macs map[station[MAC]]string) {
	switch other, taken := macs[station[MAC]{p.Network, p.MAC}]; {
	case p.MAC.IsZero():
		v.fail("port", p.Name, "mac: is missing; write such as 02:00:00:00:00:01")
	case !p.MAC.IsUnicast():
		v.fail("port", p.Name, "mac: %s is a group's address; make its first byte even, such as 02", p.MAC)
	case p.MAC == RouterMAC:
		v.fail("port", p.Name, "mac: %s is the router's; give it another", p.MAC)
	case taken:
		v.fail("port", p.Name, "mac: %s is also port %q's; give it another", p.MAC, other)
	}
	macs[station[MAC]{p.Network, p.MAC}] = p.Name
}

func (v *validation) checkAddresses(p *Port, n *Network, ips map[station[netip.Addr]]string) {
	if len(p.IPs) == 0 && n.Forwarding == L3 {
		v.fail("port", p.Name, "ips: a port of a network that routes needs an address")
	}
	count := map[bool]int{}
	for _, a := range p.IPs {
		v.checkAddress(p, n, a)
		key := station[netip.Addr]{p.Network, a}
		if other, taken := ips[key]; taken {
			v.fail("port", p.Name, "ips: %s is also port %q's; give it another", a, other)
		}
		ips[key] = p.Name
		count[a.Is4()]++
	}
	for _, s := range p.AllowSources {
		if !s.IsValid() || s.Masked() != s {
			v.fail("port", p.Name, "allow_sources: %s is no canonical prefix", s)
		}
		count[s.Addr().Is4()]++
	}
	if max(count[true], count[false]) > MaxSources {
		v.fail("port", p.Name, "ips: more than %d addresses and allowed sources of a family", MaxSources)
	}
}

func (v *validation) checkAddress(p *Port, n *Network, a netip.Addr) {
	if !usable(a) {
		v.fail("port", p.Name, "ips: %s cannot be a workload's address", a)
		return
	}
	i := slices.IndexFunc(n.Subnets, func(s netip.Prefix) bool { return s.Contains(a) })
	if i < 0 {
		v.fail("port", p.Name, "ips: %s is in no subnet of network %q, which has %v", a, n.Name, n.Subnets)
		return
	}
	switch s := n.Subnets[i]; a {
	case s.Masked().Addr():
		v.fail("port", p.Name, "ips: %s is the address of subnet %s itself; use a later one", a, s)
	case s.Masked().Addr().Next():
		v.fail("port", p.Name, "ips: %s is the gateway of subnet %s; use a later one", a, s)
	case BroadcastAddress(s):
		v.fail("port", p.Name, "ips: %s is the broadcast address of subnet %s; use an earlier one", a, s)
	}
}

var deviceForm = regexp.MustCompile(`^[^\s/:]{1,15}$`)

func (v *validation) checkAttachment(p *Port, places map[string]string) {
	a := p.Attach
	place := ""
	switch {
	case a.Netns != "" && a.Device != "":
		v.fail("port", p.Name, "attach: has both netns and device; keep one: netns makes a pair of devices, device takes one that exists")
	case a.Netns != "":
		place = p.Node + " netns " + a.Netns + " " + a.Interface
		if !deviceForm.MatchString(a.Interface) {
			v.fail("port", p.Name, "attach: interface %q is no device name of up to 15 characters", a.Interface)
		}
	case a.Device != "":
		place = p.Node + " device " + a.Device
		if !deviceForm.MatchString(a.Device) {
			v.fail("port", p.Name, "attach: device %q is no device name of up to 15 characters", a.Device)
		}
	default:
		return // where it is, its node will say
	}
	if other, taken := places[place]; taken {
		v.fail("port", p.Name, "attach: port %q is there already", other)
	}
	places[place] = p.Name
}

func (v *validation) checkGateways() {
	nodes := map[netip.Addr]string{}
	for _, n := range v.s.Nodes {
		for _, a := range n.Underlay {
			nodes[a] = n.Name
		}
	}
	for _, g := range v.s.Gateways {
		if len(g.Addresses) == 0 {
			v.fail("gateway", g.Name, "addresses: needs one")
		}
		for _, a := range g.Addresses {
			if !usable(a) {
				v.fail("gateway", g.Name, "addresses: %s cannot be a gateway's address", a)
			} else if other, taken := nodes[a]; taken {
				v.fail("gateway", g.Name, "addresses: %s is node %q's", a, other)
			}
		}
		v.checkEncapsulation("gateway", g.Name, "encapsulation", g.Encapsulation)
		for _, n := range g.Networks {
			v.checkGatewayNetwork(g, n)
		}
	}
}

func (v *validation) checkGatewayNetwork(g Gateway, gn GatewayNetwork) {
	n := v.networks[gn.Network]
	if n == nil {
		v.fail("gateway", g.Name, "networks: there is no network %q; define it under networks", gn.Network)
		return
	}
	if g.Encapsulation == VXLAN {
		if gn.VNI > MaxVNI {
			v.fail("gateway", g.Name, "network %q: vni: %d is larger than %d", gn.Network, gn.VNI, MaxVNI)
		}
	} else {
		if len(gn.Prefixes) > 0 && (gn.Label < FirstLabel || gn.Label > MaxLabel) {
			v.fail("gateway", g.Name, "network %q: label: %d is not from %d to %d; it needs the one that the gateway expects on IP packets", gn.Network, gn.Label, FirstLabel, MaxLabel)
		}
		if (len(gn.MACs) > 0 || gn.Flood) && (gn.EthernetLabel < FirstLabel || gn.EthernetLabel > MaxLabel) {
			v.fail("gateway", g.Name, "network %q: ethernet_label: %d is not from %d to %d; it needs the one that the gateway expects on Ethernet frames", gn.Network, gn.EthernetLabel, FirstLabel, MaxLabel)
		}
	}
	for _, p := range gn.Prefixes {
		if !p.IsValid() || p.Masked() != p {
			v.fail("gateway", g.Name, "network %q: prefixes: %s is no canonical prefix", gn.Network, p)
		}
		key := station[netip.Prefix]{gn.Network, p}
		if other, taken := v.prefixes[key]; taken {
			v.fail("gateway", g.Name, "network %q: prefixes: %s is behind %s already; a route with both gateways under via shares it between them", gn.Network, p, other)
		}
		v.prefixes[key] = fmt.Sprintf("gateway %q", g.Name)
	}
	for _, m := range gn.MACs {
		if !m.IsUnicast() {
			v.fail("gateway", g.Name, "network %q: macs: %s is a group's address", gn.Network, m)
		}
	}
	if !n.Routes() && len(gn.Prefixes) > 0 {
		v.fail("gateway", g.Name, "network %q: prefixes: the network only bridges; make it l3 or l2l3", gn.Network)
	}
	if n.Forwarding == L3 && (len(gn.MACs) > 0 || gn.Flood) {
		v.fail("gateway", g.Name, "network %q: macs and flood: the network only routes; make it l2 or l2l3", gn.Network)
	}
}

func (v *validation) checkRoutes() {
	for _, r := range v.s.Routes {
		name := r.Network + " " + r.Prefix.String()
		n := v.networks[r.Network]
		if n == nil {
			v.fail("route", name, "network: there is no network %q; define it under networks", r.Network)
			continue
		}
		if n.Forwarding == L2 {
			v.fail("route", name, "network: %q only bridges; make it l3 or l2l3", r.Network)
		}
		if !r.Prefix.IsValid() || r.Prefix.Masked() != r.Prefix {
			v.fail("route", name, "prefix: has bits behind its length; did you mean %s?", r.Prefix.Masked())
		}
		key := station[netip.Prefix]{r.Network, r.Prefix}
		if other, taken := v.prefixes[key]; taken {
			v.fail("route", name, "prefix: %s has it too; list both ways under one via", other)
		}
		v.prefixes[key] = "another route"
		switch {
		case r.Discard && len(r.Via) > 0:
			v.fail("route", name, "has both via and discard; keep one")
		case !r.Discard && len(r.Via) == 0:
			v.fail("route", name, "via: needs a port or a gateway, or set discard")
		case len(r.Via) > MaxECMP:
			v.fail("route", name, "via: %d ways, at most %d", len(r.Via), MaxECMP)
		}
		for _, w := range r.Via {
			v.checkVia(name, r, w)
		}
	}
}

func (v *validation) checkVia(name string, r Route, w Via) {
	switch {
	case (w.Port == "") == (w.Gateway == ""):
		v.fail("route", name, "via: each way is either a port or a gateway")
	case w.Port != "":
		if p := v.ports[w.Port]; p == nil {
			v.fail("route", name, "via: there is no port %q", w.Port)
		} else if p.Network != r.Network {
			v.fail("route", name, "via: port %q is in network %q", w.Port, p.Network)
		}
	default:
		g := v.gateways[w.Gateway]
		if g == nil {
			v.fail("route", name, "via: there is no gateway %q", w.Gateway)
		} else if !slices.ContainsFunc(g.Networks, func(n GatewayNetwork) bool { return n.Network == r.Network }) {
			v.fail("route", name, "via: gateway %q does not serve network %q", w.Gateway, r.Network)
		}
	}
}
