package model

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"windtunnel/internal/phrase"
)

// Limits of the objects.
const (
	MaxNetworkID = 4095
	MaxVNI       = 1<<24 - 1
	MaxLabel     = 1<<20 - 1
	MaxECMP      = 16
	MaxRules     = 255 // rules that apply to one port
	maxUnderlay  = 4   // addresses of a family on a node
	MaxSources   = 4   // addresses and allowed prefixes of a family on a port
)

// MaxProblems is the maximum number of problems that an error lists. The error
// counts the others.
const MaxProblems = 50

// MaxName is the maximum length of a name in characters.
const MaxName = 63

// IsName reports whether s can be a name: 1 to MaxName ASCII letters, digits, dots, dashes and
// underscores, beginning with a letter or a digit.
func IsName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i == 0 || c != '.' && c != '-' && c != '_':
			return false
		}
	}
	return 0 < len(s) && len(s) <= MaxName
}

// Validate returns nil, or all problems of the state. Each names the object, the
// field, the reason and the remedy. Validate fills in the defaults first.
func (s State) Validate() error {
	v := newValidation(s.WithDefaults())
	v.checkObjects()
	v.checkPairs()
	return v.result()
}

// newValidation makes the validation of a state with its defaults filled in.
func newValidation(s State) *validation {
	return &validation{
		s: s, nodes: map[string]*Node{}, networks: map[string]*Network{}, ports: make(map[string]*Port, len(s.Ports)),
		gateways: map[string]*Gateway{}, policies: map[string]*Policy{},
		prefixes: map[networkKey[netip.Prefix]]owner{}, ips: make(map[networkKey[netip.Addr]]string, len(s.Ports)),
		macs: make(map[networkKey[MAC]]owner, len(s.Ports)), faulty: map[owner]bool{},
	}
}

// checkObjects checks the whole state except that nodes can reach each other; checkPairs
// checks that.
func (v *validation) checkObjects() {
	v.index()
	v.checkSettings()
	v.checkNodes()
	v.checkNetworks()
	v.checkOverlaps()
	v.checkPolicies()
	v.checkPorts()
	v.checkGateways()
	v.checkRoutes()
}

// validation is the state of one Validate call.
type validation struct {
	s        State
	nodes    map[string]*Node
	networks map[string]*Network
	ports    map[string]*Port
	gateways map[string]*Gateway
	policies map[string]*Policy
	prefixes map[networkKey[netip.Prefix]]owner // the object that has a route to each prefix
	ips      map[networkKey[netip.Addr]]string  // the port that has each address
	macs     map[networkKey[MAC]]owner          // the object that has each MAC
	faulty   map[owner]bool                     // objects that State.Sound removes
	errs     []error
	more     int
}

func (v *validation) fail(object, name, format string, args ...any) {
	v.faulty[owner{object, name}] = true
	v.problem(object, name, format, args...)
}

// failTaken reports that an object has an address, MAC or prefix of the object by. If by
// is a port, Sound removes the port, else the object: nodes write ports, but operators
// write all other objects.
func (v *validation) failTaken(by owner, object, name, format string, args ...any) {
	if by.object == "port" {
		v.faulty[by] = true
		v.problem(object, name, format, args...)
		return
	}
	v.fail(object, name, format, args...)
}

func (v *validation) problem(object, name, format string, args ...any) {
	if len(v.errs) == MaxProblems {
		v.more++
		return
	}
	v.errs = append(v.errs, fmt.Errorf("%s %q: %s", object, name, fmt.Sprintf(format, args...)))
}

// missing says that an object does not exist. It suggests a similar name, or where to
// define it.
func missing[E any](v *validation, kind, given string, known map[string]*E) string {
	if len(v.errs) < MaxProblems { // later problems are only counted, so they need no text
		if meant := phrase.Nearest(given, slices.Sorted(maps.Keys(known))); meant != "" {
			return fmt.Sprintf("there is no %s %q; did you mean %q?", kind, given, meant)
		}
	}
	return fmt.Sprintf("there is no %s %q; define it %s", kind, given, definitions[kind])
}

// definitions says where each kind of object is defined.
var definitions = map[string]string{
	"node":    `under nodes in the state, or with "vrouter node add"`,
	"network": `under networks in the state, or with "vrouter network create"`,
	"policy":  `under policies in the state, or with "vrouter policy create"`,
	"gateway": `under gateways in the state, or with "vrouter gateway create"`,
	"port":    `under ports in the state, or with "vrouter port add"`,
}

func (v *validation) result() error {
	if v.more > 0 {
		v.errs = append(v.errs, fmt.Errorf("and %d more problems", v.more))
	}
	return errors.Join(v.errs...)
}

// index fills the maps of objects by name.
func (v *validation) index() {
	indexByName(v, "node", v.s.Nodes, v.nodes, func(n *Node) string { return n.Name })
	indexByName(v, "network", v.s.Networks, v.networks, func(n *Network) string { return n.Name })
	indexByName(v, "port", v.s.Ports, v.ports, func(p *Port) string { return p.Name })
	indexByName(v, "gateway", v.s.Gateways, v.gateways, func(g *Gateway) string { return g.Name })
	indexByName(v, "policy", v.s.Policies, v.policies, func(p *Policy) string { return p.Name })
}

func indexByName[E any](v *validation, object string, all []E, into map[string]*E, name func(*E) string) {
	for i := range all {
		n := name(&all[i])
		if !IsName(n) {
			v.fail(object, n, "name: up to 63 letters, digits, dots, dashes and underscores, a letter or digit first")
		} else if into[n] != nil {
			v.fail(object, n, "name: two objects have it; rename one")
		}
		into[n] = &all[i]
	}
}

// mplsUDPPort is the port of MPLSoUDP (RFC 7510).
const mplsUDPPort = 6635

func (v *validation) checkSettings() {
	if v.s.Settings.VXLANPort == mplsUDPPort {
		v.errs = append(v.errs, fmt.Errorf("settings: vxlan_port: %d is the port of MPLSoUDP (RFC 7510); choose another, such as %d", mplsUDPPort, DefaultVXLANPort))
	}
	if l := v.s.Settings.Locators; l.IsValid() && !isLocators(l) {
		v.errs = append(v.errs, fmt.Errorf("settings: locators: %s is not a unicast IPv6 prefix of at most %d bits without host bits; write one such as fd00:77::/32", l, maxLocatorsBits))
	}
	v.checkFlowExport()
}

func (v *validation) checkNodes() {
	owners, locators, routers := map[netip.Addr]string{}, OwnersOfLocators(nil), map[netip.Addr]string{}
	for _, n := range v.s.Nodes {
		if len(n.Underlay) == 0 {
			v.fail("node", n.Name, "underlay: needs an address by which other nodes reach it")
		}
		count := map[bool]int{}
		for _, a := range n.Underlay {
			switch other, taken := owners[a]; {
			case !usable(a):
				v.fail("node", n.Name, "underlay: %s cannot be a node's address; write a unicast one such as 192.0.2.1", a)
			case taken && other == n.Name:
				v.fail("node", n.Name, "underlay: %s is listed twice; remove one", a)
			case taken:
				v.fail("node", n.Name, "underlay: %s is already used by node %q; choose another", a, other)
			}
			owners[a] = n.Name
			if count[a.Is4()]++; count[a.Is4()] == maxUnderlay+1 {
				v.fail("node", n.Name, "underlay: more than %d addresses of a family", maxUnderlay)
			}
		}
		seen := map[Encapsulation]bool{}
		for _, e := range n.Encapsulations {
			v.checkEncapsulation("node", n.Name, "encapsulations", e)
			if seen[e] {
				v.fail("node", n.Name, "encapsulations: %s is listed twice; remove one", e)
			}
			seen[e] = true
		}
		v.checkLocator(n, locators)
		v.checkBGP(n, routers)
	}
}

func (v *validation) checkEncapsulation(object, name, field string, e Encapsulation) {
	choice := "direct, mpls-udp, mpls-gre or vxlan"
	if object == "gateway" {
		choice = "mpls-udp, mpls-gre or vxlan"
	}
	switch {
	case !slices.Contains(DefaultEncapsulations, e):
		v.fail(object, name, "%s: %q is not known; write %s", field, e, choice)
	case e == Direct && object == "gateway":
		v.fail(object, name, "%s: direct is only for packets between nodes; write %s", field, choice)
	}
}

// usable reports whether an address is unicast and has no zone.
func usable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a.Zone() == "" && !a.Is4In6() && !a.IsLinkLocalUnicast()
}

func (v *validation) checkNetworks() {
	ids, vnis, distinguishers := map[uint32]string{}, map[uint32]string{}, map[RouteDistinguisher]string{}
	for _, n := range v.s.Networks {
		switch other, taken := ids[n.ID]; {
		case n.ID == 0 || n.ID > MaxNetworkID:
			v.fail("network", n.Name, "id: %d is not from 1 to %d, from which its VRF and labels follow", n.ID, MaxNetworkID)
		case taken:
			v.fail("network", n.Name, "id: %d is already used by network %q; choose another", n.ID, other)
		}
		ids[n.ID] = n.Name
		switch other, taken := vnis[n.VNI]; {
		case n.VNI == 0 || n.VNI > MaxVNI:
			v.fail("network", n.Name, "vni: %d is not from 1 to %d", n.VNI, MaxVNI)
		case taken:
			v.fail("network", n.Name, "vni: %d is already used by network %q; choose another", n.VNI, other)
		}
		vnis[n.VNI] = n.Name
		if other, taken := distinguishers[n.RD]; taken && !n.RD.IsZero() {
			v.fail("network", n.Name, "rd: %s is already used by network %q; choose another, or write auto", n.RD, other)
		}
		distinguishers[n.RD] = n.Name
		if !slices.Contains([]Forwarding{L3, L2, L2L3}, n.Forwarding) {
			v.fail("network", n.Name, "forwarding: %q is not known; write l3, l2 or l2l3", n.Forwarding)
		}
		if len(n.Subnets) == 0 && n.Forwarding != L2 {
			v.fail("network", n.Name, "subnets: a network that routes needs one")
		}
		if n.NodeAccess && !n.Routes() {
			v.fail("network", n.Name, "node_access: a network that only bridges sends no packets to the node; make it l3 or l2l3")
		}
		v.checkDHCP(n)
		v.checkDNS(n)
		v.checkSubnets(n)
		v.checkRanges(n)
		v.checkTargets(n)
		v.checkPool(n)
		v.checkPolicyNames("network", n.Name, n.Policies)
	}
}

// checkDHCP refuses DHCP in a network whose router has no IPv4 address: the DHCP server uses that address.
func (v *validation) checkDHCP(n Network) {
	switch {
	case !n.DHCP:
	case !n.Routes():
		v.fail("network", n.Name, "dhcp: the DHCP server uses the router's address, and a network that only bridges has no router; make the network l3 or l2l3, or set router for the port of a DHCP server")
	case !slices.ContainsFunc(n.Subnets, func(s netip.Prefix) bool { return s.Addr().Is4() }):
		v.fail("network", n.Name, "dhcp: the network has no IPv4 subnet; add one such as 10.1.0.0/16, or remove dhcp")
	}
}

// checkDNS refuses DNS addresses that workloads cannot reach, and several of one family.
func (v *validation) checkDNS(n Network) {
	for i, a := range n.DNS {
		subnet, inside := n.Subnet(a)
		switch {
		case !n.Routes():
			v.fail("network", n.Name, "dns: a network that only bridges sends no packets to the agent; make it l3 or l2l3, or remove dns")
		case !inside:
			v.fail("network", n.Name, "dns: %s is in no subnet of the network, which has %v; choose an address in one of them, such as the gateway's", a, n.Subnets)
		case a == subnet.Masked().Addr() || a == BroadcastAddress(subnet):
			v.fail("network", n.Name, "dns: %s is the first or last address of subnet %s; choose another", a, subnet)
		case slices.ContainsFunc(n.DNS[:i], func(b netip.Addr) bool { return a.Is4() == b.Is4() }):
			v.fail("network", n.Name, "dns: %s is the second address of its family; write at most one IPv4 and one IPv6 address", a)
		}
	}
}

func (v *validation) checkSubnets(n Network) {
	for i, p := range n.Subnets {
		switch {
		case notCanonical(p) != "":
			v.fail("network", n.Name, "subnets: %s", notCanonical(p))
		case p.Addr().BitLen()-p.Bits() < 2:
			v.fail("network", n.Name, "subnets: %s is too small for a gateway and a port; use /%d or shorter", p, p.Addr().BitLen()-2)
		case !usable(p.Addr()):
			v.fail("network", n.Name, "subnets: %s is not a prefix for workloads; write one such as 10.1.0.0/16", p)
		}
		for _, q := range n.Subnets[:i] {
			if p.Overlaps(q) {
				v.fail("network", n.Name, "subnets: %s overlaps %s; change one of them", p, q)
			}
		}
	}
}

// checkRanges refuses ranges outside the subnets.
func (v *validation) checkRanges(n Network) {
	for _, r := range n.Ranges {
		inside := slices.ContainsFunc(n.Subnets, func(s netip.Prefix) bool { return s.Contains(r.First) && s.Contains(r.Last) })
		if !inside {
			v.fail("network", n.Name, "ranges: %s is not within one of the subnets %v", r, n.Subnets)
		}
	}
}

func (v *validation) checkPolicyNames(object, name string, policies []string) {
	for _, p := range policies {
		if v.policies[p] == nil {
			v.fail(object, name, "policies: %s", missing(v, "policy", p, v.policies))
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
	} else if r.Ports != "" && protocol != 6 && protocol != 17 && protocol != 132 {
		fail("ports: only tcp, udp and sctp have ports; add a protocol, or remove ports")
	}
	if r.Remote.IsValid() {
		if wrong := notCanonical(r.Remote); wrong != "" {
			fail("remote: %s", wrong)
		}
	}
}

// notCanonical returns the reason why a prefix is not canonical; "": the prefix
// is canonical.
func notCanonical(p netip.Prefix) string {
	switch {
	case !p.IsValid():
		return "an empty prefix; write one such as 10.1.0.0/16"
	case p.Addr().Is4In6():
		return fmt.Sprintf("%s is IPv4 written as IPv6; write it as IPv4", p)
	case p.Masked() != p:
		return fmt.Sprintf("%s has host bits set; did you mean %s?", p, p.Masked())
	}
	return ""
}

// owner is the object that has an address, MAC or prefix.
type owner struct{ object, name string }

func (o owner) String() string {
	if o.name == "" {
		return o.object
	}
	return fmt.Sprintf("%s %q", o.object, o.name)
}

// networkKey is an address, a prefix or another key within one network.
// Different networks can have equal keys.
type networkKey[K comparable] struct {
	network string
	key     K
}

func (v *validation) checkPorts() {
	points := map[AttachPoint]string{}
	for i := range v.s.Ports {
		p := &v.s.Ports[i]
		if v.nodes[p.Node] == nil {
			v.fail("port", p.Name, "node: %s", missing(v, "node", p.Node, v.nodes))
		}
		n := v.networks[p.Network]
		if n == nil {
			v.fail("port", p.Name, "network: %s", missing(v, "network", p.Network, v.networks))
			continue
		}
		v.checkMAC(p)
		v.checkAddresses(p, n)
		v.checkFloating(p, n)
		v.checkAttachment(p, points)
		if p.Attach.Host && n.NodeAccess && p.Attach.Interface != "" {
			v.fail("port", p.Name, "attach: the agent names the node's device of a network with node_access; remove interface %q", p.Attach.Interface)
		}
		v.checkBandwidth(p)
		v.checkPolicyNames("port", p.Name, p.Policies)
		if rules := v.rulesOf(p, n); rules > MaxRules {
			v.fail("port", p.Name, "policies: the port's and its network's policies have %d rules, at most %d are allowed; merge some", rules, MaxRules)
		}
	}
}

func (v *validation) rulesOf(p *Port, n *Network) (count int) {
	switch {
	case n.NodeAccess:
		count = 2 * MaxSources // one for each address of the node's port
	case p.Attach.Host && len(p.Policies) == 0:
		count = 1 // a host port without policies has an implicit rule that denies ingress
	}
	for _, names := range [][]string{p.Policies, n.Policies} {
		for _, name := range names {
			if policy := v.policies[name]; policy != nil {
				count += len(policy.Rules)
			}
		}
	}
	return count
}

func (v *validation) checkMAC(p *Port) {
	key := networkKey[MAC]{p.Network, p.MAC}
	switch other, taken := v.macs[key]; {
	case p.MAC.IsZero():
		v.fail("port", p.Name, "mac: is missing; write one such as 02:00:00:00:00:01")
	case !p.MAC.IsUnicast():
		v.fail("port", p.Name, "mac: %s is a multicast address; make its first byte even, such as 02", p.MAC)
	case p.MAC == RouterMAC:
		v.fail("port", p.Name, "mac: %s is the router's; choose another", p.MAC)
	case taken:
		v.fail("port", p.Name, "mac: %s is already used by %s; choose another", p.MAC, other)
	}
	v.macs[key] = owner{"port", p.Name}
}

func (v *validation) checkAddresses(p *Port, n *Network) {
	if len(p.IPs) == 0 && n.Forwarding == L3 {
		v.fail("port", p.Name, "ips: a port of a network that routes needs an address")
	}
	var four, six int
	note := func(a netip.Addr) {
		if a.Is4() {
			four++
		} else {
			six++
		}
	}
	for _, a := range p.IPs {
		v.checkAddress(p, n, a)
		key := networkKey[netip.Addr]{p.Network, a}
		switch other, taken := v.ips[key]; {
		case taken && other == p.Name:
			v.fail("port", p.Name, "ips: %s is listed twice; remove one", a)
		case taken:
			v.fail("port", p.Name, "ips: %s is already used by port %q; choose another", a, other)
		}
		v.ips[key] = p.Name
		note(a)
	}
	for _, s := range p.AllowSources {
		if wrong := notCanonical(s); wrong != "" {
			v.fail("port", p.Name, "allow_sources: %s", wrong)
		}
		note(s.Addr())
	}
	if p.Attach.Host && n.NodeAccess {
		four, six = four+1, six+1 // the node forwards packets of addresses outside the network
	}
	if max(four, six) > MaxSources {
		v.fail("port", p.Name, "ips: more than %d addresses and allowed sources of a family", MaxSources)
	}
}

func (v *validation) checkAddress(p *Port, n *Network, a netip.Addr) {
	if !usable(a) {
		v.fail("port", p.Name, "ips: %s cannot be a workload's address; write a unicast one of a subnet of network %q", a, n.Name)
		return
	}
	i := slices.IndexFunc(n.Subnets, func(s netip.Prefix) bool { return s.Contains(a) })
	if i < 0 {
		v.fail("port", p.Name, "ips: %s is in no subnet of network %q, which has %v", a, n.Name, n.Subnets)
		return
	}
	if slices.Contains(n.DNS, a) {
		v.fail("port", p.Name, "ips: %s is the DNS address of network %q; choose another, or change the network's dns", a, n.Name)
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

func (v *validation) checkAttachment(p *Port, points map[AttachPoint]string) {
	a := p.Attach
	point, attached := p.AttachPoint()
	if !attached {
		return
	}
	device := func(field, name string) {
		if err := CheckDevice(name); err != nil {
			v.fail("port", p.Name, "attach: %s %v", field, err)
		}
	}
	switch {
	case a.Netns != "" && a.Device != "":
		v.fail("port", p.Name, "attach: has both netns and device; keep one: netns creates a pair of devices, device uses an existing device")
		return
	case a.Host && a.Netns+a.Device != "":
		v.fail("port", p.Name, "attach: has host together with netns or device; keep one")
		return
	case a.Host:
		if a.Interface != "" {
			device("interface", a.Interface)
		}
	case a.Netns != "":
		device("interface", a.Interface)
	default:
		device("device", a.Device)
	}
	if a.AcceptRA && a.Netns == "" {
		v.fail("port", p.Name, "attach: accept_ra needs netns, since the agent configures only devices that it creates; remove accept_ra")
	}
	if other, taken := points[point]; taken {
		v.fail("port", p.Name, "attach: port %q is already attached there; choose another namespace, interface or device", other)
	}
	points[point] = p.Name
}
