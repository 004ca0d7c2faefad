package flowtest

import (
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
)

// rule is a policy's rule in the words of a test.
type rule struct {
	egress, allow, log bool
	protocol           uint8
	remote             netip.Prefix // zero: any
	first, last        uint16       // 0, 0: any
}

// policy is what the tests judge by; encode makes what the map holds.
type policy struct {
	generation        uint32
	allowIn, allowOut bool
	rules             []rule
}

func (p policy) encode() layout.Policy {
	c := layout.Policy{Generation: p.generation, Rules: uint16(len(p.rules)), AllowIn: layout.If[uint8](p.allowIn, 1), AllowOut: layout.If[uint8](p.allowOut, 1)}
	for i, r := range p.rules {
		c.First.Rule[i] = layout.Rule{
			Flags:    layout.If[uint8](r.egress, layout.RuleEgress) | layout.If[uint8](r.allow, layout.RuleAllow) | layout.If[uint8](r.log, layout.RuleLog),
			Protocol: r.protocol, FirstPort: r.first, LastPort: r.last,
		}.With(r.remote)
	}
	return c
}

// applyAt writes the policy of a vif as the agent does: the generation after the rules.
func (h *harness) applyAt(vif uint32, p policy) {
	h.t.Helper()
	h.put(h.Policies, vif, p.encode())
	h.put(h.Generations, vif, p.generation)
}

func (h *harness) apply(p policy) {
	h.t.Helper()
	h.applyAt(vifID, p)
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestEachFieldOfARuleDecidesWhatItMatches(t *testing.T) {
	h := load(t)
	ping4 := icmp(local4.Addr(), remote4.Addr(), 8, 5)
	ping6 := icmp(local6.Addr(), remote6.Addr(), 128, 5)
	for _, c := range []struct {
		name  string
		rule  rule
		d     direction
		frame []byte
		match bool
	}{
		{"direction egress, packet from the workload", rule{egress: true}, fromWorkload, tcp(local4, remote4, "S"), true},
		{"direction egress, packet to the workload", rule{egress: true}, toWorkload, tcp(remote4, local4, "S"), false},
		{"direction ingress, packet to the workload", rule{}, toWorkload, tcp(remote4, local4, "S"), true},
		{"direction ingress, packet from the workload", rule{}, fromWorkload, tcp(local4, remote4, "S"), false},
		{"protocol TCP, TCP", rule{egress: true, protocol: 6}, fromWorkload, tcp(local4, remote4, "S"), true},
		{"protocol TCP, UDP", rule{egress: true, protocol: 6}, fromWorkload, udp(local4, remote4, 1), false},
		{"protocol UDP, UDP over IPv6", rule{egress: true, protocol: 17}, fromWorkload, udp(local6, remote6, 1), true},
		{"protocol ICMP, ping", rule{egress: true, protocol: 1}, fromWorkload, ping4, true},
		{"protocol ICMP, ping over IPv6", rule{egress: true, protocol: 1}, fromWorkload, ping6, false},
		{"protocol ICMPv6, ping over IPv6", rule{egress: true, protocol: 58}, fromWorkload, ping6, true},
		{"protocol 47, GRE", rule{egress: true, protocol: 47}, fromWorkload, raw(local4.Addr(), remote4.Addr(), 47, make([]byte, 8)), true},
		{"prefix holds the remote end", rule{egress: true, remote: prefix("198.51.100.0/24")}, fromWorkload, udp(local4, remote4, 1), true},
		{"prefix is next to the remote end", rule{egress: true, remote: prefix("198.51.101.0/24")}, fromWorkload, udp(local4, remote4, 1), false},
		{"prefix holds the local end only", rule{egress: true, remote: prefix("10.0.0.0/8")}, fromWorkload, udp(local4, remote4, 1), false},
		{"ingress: the remote end is the source", rule{remote: prefix("198.51.100.9/32")}, toWorkload, udp(remote4, local4, 1), true},
		{"prefix of an odd length, inside", rule{egress: true, remote: prefix("198.51.100.8/31")}, fromWorkload, udp(local4, remote4, 1), true},
		{"prefix of an odd length, outside", rule{egress: true, remote: prefix("198.51.100.10/31")}, fromWorkload, udp(local4, remote4, 1), false},
		{"all of IPv4, IPv4", rule{egress: true, remote: prefix("0.0.0.0/0")}, fromWorkload, udp(local4, remote4, 1), true},
		{"all of IPv4, IPv6", rule{egress: true, remote: prefix("0.0.0.0/0")}, fromWorkload, udp(local6, remote6, 1), false},
		{"all of IPv6, IPv6", rule{egress: true, remote: prefix("::/0")}, fromWorkload, udp(local6, remote6, 1), true},
		{"all of IPv6, IPv4", rule{egress: true, remote: prefix("::/0")}, fromWorkload, udp(local4, remote4, 1), false},
		{"IPv6 prefix, inside", rule{egress: true, remote: prefix("2001:db8::/61")}, fromWorkload, udp(local6, remote6, 1), true},
		{"IPv6 prefix, outside", rule{egress: true, remote: prefix("2001:db8:0:8::/61")}, fromWorkload, udp(local6, remote6, 1), false},
		{"first port of the range", rule{egress: true, first: 80, last: 90}, fromWorkload, udp(local4, remote4, 1), true},
		{"last port of the range", rule{egress: true, first: 70, last: 80}, fromWorkload, udp(local4, remote4, 1), true},
		{"below the range", rule{egress: true, first: 81, last: 90}, fromWorkload, udp(local4, remote4, 1), false},
		{"above the range", rule{egress: true, first: 70, last: 79}, fromWorkload, udp(local4, remote4, 1), false},
		{"the source's port does not count", rule{egress: true, first: 40000, last: 40000}, fromWorkload, udp(local4, remote4, 1), false},
		{"ingress: the destination is the workload's port", rule{first: 40000, last: 40000}, toWorkload, udp(remote4, local4, 1), true},
		{"all ports, a protocol without ports", rule{egress: true, last: 65535}, fromWorkload, ping4, true},
		{"one port, a protocol without ports", rule{egress: true, last: 1}, fromWorkload, ping4, false},
		{"log alone changes nothing", rule{egress: true, log: true}, fromWorkload, udp(local4, remote4, 1), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			h.forget()
			c.rule.allow = true
			h.apply(policy{generation: 1, rules: []rule{c.rule}})
			want := denied
			if c.match {
				want = admitted
			}
			h.expect("allowing rule, default deny", want, c.d, c.frame)
			c.rule.allow = false
			h.apply(policy{generation: 2, allowIn: true, allowOut: true, rules: []rule{c.rule}})
			want = admitted
			if c.match {
				want = denied
			}
			h.expect("denying rule, default allow", want, c.d, c.frame)
		})
	}
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	h := load(t)
	rules := make([]rule, 64)
	for i := range rules {
		rules[i] = rule{egress: true, first: uint16(1000 + i), last: 2000, allow: i%2 == 0}
	}
	h.apply(policy{generation: 1, allowOut: true, rules: rules})
	for i := range rules {
		to := netip.AddrPortFrom(remote4.Addr(), uint16(1000+i))
		// Rule 0 covers every port from 1000 on, so it decides them all.
		h.expect("in every rule's range", admitted, fromWorkload, udp(local4, to, 1))
		if got := h.flow(flowKey(17, local4, to)).Rule; got != 1 {
			t.Errorf("port %d was decided by rule %d, want 1", to.Port(), got)
		}
	}
	for i, j := 0, len(rules)-1; i < j; i, j = i+1, j-1 {
		rules[i], rules[j] = rules[j], rules[i]
	}
	h.apply(policy{generation: 2, allowOut: true, rules: rules})
	for i := range rules {
		to := netip.AddrPortFrom(remote4.Addr(), uint16(1000+i))
		want := denied
		if i%2 == 0 {
			want = admitted
		}
		h.expect("reversed", want, fromWorkload, udp(local4, to, 1))
		if got, want := h.flow(flowKey(17, local4, to)).Rule, uint8(64-i); got != want {
			t.Errorf("reversed: port %d was decided by rule %d, want %d", to.Port(), got, want)
		}
	}
}

func TestTheDefaultOfTheDirectionDecidesWhatNoRuleMatches(t *testing.T) {
	for _, p := range []policy{{}, {allowIn: true}, {allowOut: true}, {allowIn: true, allowOut: true}} {
		h := load(t)
		p.generation = 1
		h.apply(p)
		in, out := denied, denied
		if p.allowIn {
			in = admitted
		}
		if p.allowOut {
			out = admitted
		}
		h.expect("in", in, toWorkload, udp(remote4, local4, 1))
		other := netip.AddrPortFrom(remote4.Addr(), 99)
		h.expect("out", out, fromWorkload, udp(local4, other, 1))
		if p.allowOut {
			must.Equal(t, 0, h.flow(flowKey(17, local4, other)).Rule)
		}
	}
}

func TestWithoutAPolicyOnlyKnownFlowsPass(t *testing.T) {
	h := load(t)
	h.apply(policy{generation: 1, allowOut: true})
	h.expect("first", admitted, fromWorkload, udp(local4, remote4, 1))
	h.put(h.Generations, uint32(vifID), uint32(0))
	must.Succeed(t, h.Policies.Delete(uint32(vifID)))
	h.expect("known flow", admitted, fromWorkload, udp(local4, remote4, 1))
	h.expect("its reply", admitted, toWorkload, udp(remote4, local4, 1))
	h.expect("new flow", denied, fromWorkload, udp(local6, remote6, 1))
	must.Equal(t, 1, h.count(h.Flows))
}
