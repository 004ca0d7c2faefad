package model

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// port2 changes the second port, which has no address.
func port2(change func(*Port)) func(*State) {
	return func(s *State) { change(&s.Ports[1]) }
}

func TestPortsAreChecked(t *testing.T) {
	ips := func(texts ...string) func(*State) {
		return port2(func(p *Port) { p.IPs = addrs(texts...) })
	}
	attach := func(a Attachment) func(*State) {
		return port2(func(p *Port) { p.Attach = a })
	}
	check(t, []refused{
		{"a node that is nearly there", func(s *State) {
			s.Nodes[1].Name = "compute-2"
			s.Ports[1].Node = "compute2"
		}, `port "web2": node: there is no node "compute2"; did you mean "compute-2"?`},
		{"a node that is not there", port2(func(p *Port) { p.Node = "elsewhere" }), `port "web2": node: there is no node "elsewhere"; define it under nodes in the state, or with "vrouter node add"`},
		{"a network that is nearly there", port2(func(p *Port) { p.Network = "rde" }), `port "web2": network: there is no network "rde"; did you mean "red"?`},
		{"a network in capitals", port2(func(p *Port) { p.Network = "Red" }), `port "web2": network: there is no network "Red"; did you mean "red"?`},
		{"no MAC", port2(func(p *Port) { p.MAC = MAC{} }), `port "web2": mac: is missing; write one such as 02:00:00:00:00:01`},
		{"a group's MAC", port2(func(p *Port) { p.MAC = MAC{1, 0, 0x5e, 0, 0, 1} }), `port "web2": mac: 01:00:5e:00:00:01 is a multicast address; make its first byte even, such as 02`},
		{"the router's MAC", port2(func(p *Port) { p.MAC = RouterMAC }), `port "web2": mac: 00:00:5e:00:01:00 is the router's; choose another`},
		{"another port's MAC", port2(func(p *Port) { p.MAC = MAC{2, 0, 0, 0, 0, 1} }), `port "web2": mac: 02:00:00:00:00:01 is already used by port "web1"; choose another`},
		{"another port's address", ips("10.1.0.5"), `port "web2": ips: 10.1.0.5 is already used by port "web1"; choose another`},
		{"an address twice", ips("10.1.0.6", "10.1.0.6"), `port "web2": ips: 10.1.0.6 is listed twice; remove one`},
		{"an address of no subnet", ips("10.2.0.6"), `port "web2": ips: 10.2.0.6 is in no subnet of network "red", which has [10.1.0.0/16 fd00:1::/64]`},
		{"the subnet's own address", ips("10.1.0.0"), `port "web2": ips: 10.1.0.0 is the address of subnet 10.1.0.0/16 itself; use a later one`},
		{"the gateway's address", ips("fd00:1::1"), `port "web2": ips: fd00:1::1 is the gateway of subnet fd00:1::/64; use a later one`},
		{"the broadcast address", ips("10.1.255.255"), `port "web2": ips: 10.1.255.255 is the broadcast address of subnet 10.1.0.0/16; use an earlier one`},
		{"a link-local address", ips("fe80::1"), `port "web2": ips: fe80::1 cannot be a workload's address; write a unicast one of a subnet of network "red"`},
		{"five addresses of a family", ips("10.1.0.6", "10.1.0.7", "10.1.0.8", "10.1.0.9", "10.1.0.10", "fd00:1::6"), `port "web2": ips: more than 4 addresses and allowed sources of a family`},
		{"addresses and sources that are five", func(s *State) { s.Ports[0].AllowSources = prefixes("1.0.0.0/8", "2.0.0.0/8", "3.0.0.0/8", "4.0.0.0/8") }, `port "web1": ips: more than 4 addresses and allowed sources of a family`},
		{"a source with more bits", port2(func(p *Port) { p.AllowSources = prefixes("198.51.100.7/24") }), `port "web2": allow_sources: 198.51.100.7/24 has host bits set; did you mean 198.51.100.0/24?`},
		{"no address where it routes only", func(s *State) {
			s.Networks = append(s.Networks, Network{Name: "blue", ID: 8, Tenant: "other", Subnets: prefixes("10.1.0.0/16")})
			s.Ports[1].Network = "blue"
		}, `port "web2": ips: a port of a network that routes needs an address`},
		{"router advertisements for a tap", attach(Attachment{Device: "tap0", AcceptRA: true}), `port "web2": attach: accept_ra needs netns, since the agent configures only devices that it creates; remove accept_ra`},
		{"two places", attach(Attachment{Netns: "two", Device: "tap0"}), `port "web2": attach: has both netns and device; keep one: netns creates a pair of devices, device uses an existing device`},
		{"the node, and a place besides", attach(Attachment{Host: true, Netns: "two", Interface: "eth0"}), `port "web2": attach: has host together with netns or device; keep one`},
		{"a second port of the node itself", func(s *State) {
			s.Ports[0].Attach = Attachment{Host: true}
			s.Ports[1].Node, s.Ports[1].Attach = "a", Attachment{Host: true, Interface: "red0"}
		}, `port "web2": attach: port "web1" is already attached there; choose another namespace, interface or device`},
		{"a node in two tenants with the same addresses", func(s *State) {
			s.Networks = append(s.Networks, Network{Name: "blue", ID: 8, Tenant: "other", Subnets: prefixes("10.1.128.0/17")})
			s.Ports[0].Attach = Attachment{Host: true}
			s.Ports[1].Node, s.Ports[1].Network, s.Ports[1].IPs, s.Ports[1].Attach = "a", "blue", addrs("10.1.128.9"), Attachment{Host: true}
		}, `port "web2": attach: host: network "blue" has addresses of network "red", to which port "web1" connects node "a"; delete one of the ports, or change the subnets of one network`},
		{"a node's port with node_access and four addresses", func(s *State) {
			s.Networks[0].NodeAccess, s.Networks[0].Policies = true, nil
			s.Ports[1].Attach, s.Ports[1].IPs = Attachment{Host: true}, addrs("10.1.0.6", "10.1.0.7", "10.1.0.8", "10.1.0.9")
		}, `port "web2": ips: more than 4 addresses and allowed sources of a family`},
		{"a node's port with node_access and a name of its own", func(s *State) {
			s.Networks[0].NodeAccess, s.Networks[0].Policies = true, nil
			s.Ports[1].Attach = Attachment{Host: true, Interface: "red0"}
		}, `port "web2": attach: the agent names the node's device of a network with node_access; remove interface "red0"`},
		{"a limit below sense", port2(func(p *Port) { p.Bandwidth.Ingress = 7999 }), `port "web2": bandwidth: ingress 7999 is not between 8k and 400G`},
		{"a limit where none can be", port2(func(p *Port) { p.Attach, p.Bandwidth.Egress = Attachment{Device: "tap0"}, 1e6 }), `port "web2": bandwidth: an egress limit needs attach with netns, not device, since the agent sets the limit in the network namespace; remove egress`},
		{"a device name that is too long", attach(Attachment{Device: "tap-of-sixteen-c"}), `port "web2": attach: device "tap-of-sixteen-c" is not a device name: it has 16 bytes, at most 15 are allowed`},
		{"an interface with a slash", attach(Attachment{Netns: "two", Interface: "eth/0"}), `port "web2": attach: interface "eth/0" is not a device name: the kernel refuses the byte '/'`},
		{"a pattern for the kernel", attach(Attachment{Netns: "two", Interface: "e%d"}), `port "web2": attach: interface "e%d" is not a device name: the kernel refuses the byte '%'`},
		{"a pattern for a device of the node", attach(Attachment{Host: true, Interface: "e%d"}), `port "web2": attach: interface "e%d" is not a device name: the kernel refuses the byte '%'`},
		{"a device named by dots", attach(Attachment{Device: ".."}), `port "web2": attach: device ".." is not a device name`},
		{"the place of another", func(s *State) {
			s.Ports[1].Node = "a"
			s.Ports[1].Attach = Attachment{Netns: "one", Interface: "eth1"}
		}, `port "web2": attach: port "web1" is already attached there; choose another namespace, interface or device`},
		{"a policy that is nearly there", port2(func(p *Port) { p.Policies = []string{"wbe", "webs"} }), "port \"web2\": policies: there is no policy \"wbe\"; did you mean \"web\"?\nport \"web2\": policies: there is no policy \"webs\"; did you mean \"web\"?"},
		{"more rules than a port can have", func(s *State) {
			s.Policies = append(s.Policies, Policy{Name: "long", Rules: make([]Rule, 254)})
			for i := range s.Policies[1].Rules {
				s.Policies[1].Rules[i] = Rule{Direction: Egress, Action: Deny}
			}
			s.Ports[1].Policies = []string{"long"}
		}, `port "web2": policies: the port's and its network's policies have 256 rules, at most 255 are allowed; merge some`},
	})
}

func TestTenantsMayHaveTheSameAddressesAndMACs(t *testing.T) {
	s := edited(func(s *State) {
		s.Networks = append(s.Networks, Network{Name: "blue", ID: 8, Tenant: "other", Subnets: prefixes("10.1.0.0/16")})
		s.Ports = append(s.Ports, Port{Name: "other", Network: "blue", Node: "a", MAC: s.Ports[0].MAC, IPs: s.Ports[0].IPs})
		s.Routes = append(s.Routes, Route{Network: "blue", Prefix: s.Routes[0].Prefix, Via: []Via{{Port: "other"}}})
	})
	must.Succeed(t, s.Validate())
}

func TestRulesAreChecked(t *testing.T) {
	rule := func(r Rule) func(*State) {
		return func(s *State) {
			s.Policies = []Policy{{Name: "web", Rules: []Rule{{Direction: Ingress, Action: Allow}, r}}}
		}
	}
	check(t, []refused{
		{"no direction", rule(Rule{Action: Deny}), `policy "web": rule 2: direction: "" is not known; write ingress (to the workload) or egress (from it)`},
		{"no action", rule(Rule{Direction: Egress}), `policy "web": rule 2: action: "" is not known; write allow or deny`},
		{"a protocol that is not known", rule(Rule{Direction: Egress, Action: Deny, Protocol: "tpc"}), `policy "web": rule 2: protocol "tpc" is not known; write tcp, udp, icmp, icmp6, sctp, gre, or a number from 1 to 255`},
		{"protocol 256", rule(Rule{Direction: Egress, Action: Deny, Protocol: "256"}), `policy "web": rule 2: protocol "256" is not known; write tcp, udp, icmp, icmp6, sctp, gre, or a number from 1 to 255`},
		{"a port that is none", rule(Rule{Direction: Egress, Action: Deny, Protocol: "tcp", Ports: "http"}), `policy "web": rule 2: ports "http" is not a port or a range; write 80 or 8000-8080`},
		{"port 0", rule(Rule{Direction: Egress, Action: Deny, Protocol: "tcp", Ports: "0"}), `policy "web": rule 2: ports "0" is not a port or a range; write 80 or 8000-8080`},
		{"a range backwards", rule(Rule{Direction: Egress, Action: Deny, Protocol: "udp", Ports: "90-80"}), `policy "web": rule 2: ports "90-80" is not a port or a range; write 80 or 8000-8080`},
		{"ports of ICMP", rule(Rule{Direction: Egress, Action: Deny, Protocol: "icmp", Ports: "80"}), `policy "web": rule 2: ports: only tcp, udp and sctp have ports; add a protocol, or remove ports`},
		{"ports of any protocol", rule(Rule{Direction: Egress, Action: Deny, Ports: "80"}), `policy "web": rule 2: ports: only tcp, udp and sctp have ports; add a protocol, or remove ports`},
		{"a remote with more bits", rule(Rule{Direction: Egress, Action: Deny, Remote: prefixes("10.0.0.1/8")[0]}), `policy "web": rule 2: remote: 10.0.0.1/8 has host bits set; did you mean 10.0.0.0/8?`},
	})
}

func TestRulesReadProtocolsAndPorts(t *testing.T) {
	for _, c := range []struct {
		protocol, ports string
		number          uint8
		first, last     uint16
	}{
		{"", "", 0, 0, 65535}, {"TCP", "80", 6, 80, 80}, {"udp", "8000-8080", 17, 8000, 8080}, {"sctp", " 1 - 65535 ", 132, 1, 65535},
		{"icmp", "", 1, 0, 65535}, {"icmp6", "", 58, 0, 65535}, {"gre", "", 47, 0, 65535}, {"255", "", 255, 0, 65535},
	} {
		r := Rule{Protocol: c.protocol, Ports: c.ports}
		number, err := r.ProtocolNumber()
		first, last, err2 := r.PortRange()
		if err != nil || err2 != nil || number != c.number || first != c.first || last != c.last {
			t.Errorf("protocol %q, ports %q: %d, %d to %d, %v, %v; want %d, %d to %d", c.protocol, c.ports, number, first, last, err, err2, c.number, c.first, c.last)
		}
	}
}

func TestAnErrorListsFiftyProblemsAndCountsTheRest(t *testing.T) {
	s := State{Networks: make([]Network, 60)}
	for i := range s.Networks {
		s.Networks[i] = Network{Name: fmt.Sprint("n", i), ID: uint32(5000 + i), Forwarding: L2}
	}
	err := s.Validate()
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Fatalf("%v is no list of errors", err)
	}
	lines := strings.Split(err.Error(), "\n")
	const first, last = `network "n0": id: 5000 is not from 1 to 4095, from which its VRF and labels follow`, "and 10 more problems"
	if len(joined.Unwrap()) != 51 || len(lines) != 51 || lines[0] != first || lines[50] != last {
		t.Errorf("%d errors in %d lines, from %q to %q; want 51, from %q to %q", len(joined.Unwrap()), len(lines), lines[0], lines[len(lines)-1], first, last)
	}
}

func TestNodesThatShareANetworkNeedACommonEncapsulationAndFamily(t *testing.T) {
	check(t, []refused{
		{"no encapsulation in common", func(s *State) { s.Nodes[1].Encapsulations = []Encapsulation{MPLSoUDP} }, `network "red": has ports on node "a", which offers vxlan mpls-gre, and on node "b", which offers mpls-udp; configure an encapsulation that both offer`},
		{"no family in common", func(s *State) { s.Nodes[0].Underlay, s.Nodes[1].Underlay = addrs("192.0.2.1"), addrs("2001:db8::2") }, `network "red": has ports on node "a", whose underlay is IPv4, and on node "b", whose is IPv6; give both an address of one family`},
	})
	apart := edited(func(s *State) {
		s.Nodes[1].Encapsulations = []Encapsulation{MPLSoUDP}
		s.Networks = append(s.Networks, Network{Name: "lan", ID: 8, Forwarding: L2})
		s.Ports[1].Network, s.Ports[1].Policies = "lan", nil
	})
	must.Succeed(t, apart.Validate())
}
