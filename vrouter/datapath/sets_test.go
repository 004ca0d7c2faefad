package datapath

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// withGroup returns a change of the scene. It puts vifs 1 and 2 into group 9, which is closed in both directions
// and has these entries. addrB has the identities 5 (pods) and 6 (block).
func withGroup(allows ...fib.Allow) func(*fib.Tables) {
	return func(f *fib.Tables) {
		f.Sets = fib.Sets{Identities: map[fib.RouteKey]layout.Identity{}, Allows: map[fib.Allow]bool{}}
		for text, id := range map[string]layout.Identity{addrB.String() + "/32": {Pods: 5, Block: 6}, "10.9.0.0/16": {Block: 6}, "10.9.3.0/24": {Block: 7}, "fd00:1::/64": {Block: 6}} {
			f.Sets.Identities[fib.RouteKey{VRF: 1, Prefix: netip.MustParsePrefix(text)}] = id
			f.Sets.Identities[fib.RouteKey{VRF: 2, Prefix: netip.MustParsePrefix(text)}] = layout.Identity{Pods: 55, Block: 66}
		}
		for _, a := range allows {
			f.Sets.Allows[a] = true
		}
		for _, id := range []uint32{1, 2} {
			f.Policies[id] = fib.Policy{AllowIn: true, AllowOut: true, Group: fib.Group{Number: 9, In: true, Out: true}, Revision: uint32(len(allows)) + 1}
		}
		for device, v := range f.Vifs {
			v.Flags |= layout.If[uint16](v.ID <= 2, layout.VifPolicy)
			f.Vifs[device] = v
		}
	}
}

// The packets are UDP to port 80.
func TestAGroupDecidesForFlowsOfTheWorkload(t *testing.T) {
	outside, except := netip.MustParseAddr("10.9.7.7"), netip.MustParseAddr("10.9.3.3")
	for _, c := range []struct {
		name   string
		allows []fib.Allow
		to     netip.Addr
		passes bool
	}{
		{"nothing is allowed", nil, addrB, false},
		{"any address and any protocol", []fib.Allow{{Group: 9, Egress: true}}, outside, true},
		{"any address and a port", []fib.Allow{{Group: 9, Egress: true, Protocol: 17, Port: 80, PortBits: 16}}, netip.MustParseAddr("10.8.0.1"), true},
		{"the other direction", []fib.Allow{{Group: 9}}, addrB, false},
		{"another group", []fib.Allow{{Group: 8, Egress: true}}, addrB, false},
		{"pods", []fib.Allow{{Group: 9, Identity: 5, Egress: true}}, addrB, true},
		{"pods, and the packet goes to another address", []fib.Allow{{Group: 9, Identity: 5, Egress: true}}, outside, false},
		{"a block that has the pod", []fib.Allow{{Group: 9, Identity: 6, Egress: true}}, addrB, true},
		{"a block", []fib.Allow{{Group: 9, Identity: 6, Egress: true}}, outside, true},
		{"a block, and the packet goes to its exception", []fib.Allow{{Group: 9, Identity: 6, Egress: true}}, except, false},
		{"an identity of another network", []fib.Allow{{Group: 9, Identity: 55, Egress: true}, {Group: 9, Identity: 66, Egress: true}}, addrB, false},
		{"all ports of the protocol", []fib.Allow{{Group: 9, Identity: 6, Egress: true, Protocol: 17}}, outside, true},
		{"another protocol", []fib.Allow{{Group: 9, Identity: 6, Egress: true, Protocol: 6}}, outside, false},
		{"ports 80 to 95", []fib.Allow{{Group: 9, Identity: 5, Egress: true, Protocol: 17, Port: 80, PortBits: 12}}, addrB, true},
		{"ports 64 to 79", []fib.Allow{{Group: 9, Identity: 5, Egress: true, Protocol: 17, Port: 64, PortBits: 12}}, addrB, false},
		{"port 81", []fib.Allow{{Group: 9, Identity: 5, Egress: true, Protocol: 17, Port: 81, PortBits: 16}}, addrB, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, model.MPLSoUDP, false, withGroup(c.allows...))
			before, err := r.Drops()
			must.Succeed(t, err)
			_, traced := r.trace(t, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, c.to, 0, 64, "x")))
			if (traced == actRedirect) != c.passes {
				t.Errorf("the trace ends with action %d; want that the packet passes: %v (then the action is %d)", traced, c.passes, actRedirect)
			}
			code := r.sendTo(t, c.to)
			if c.passes && code == actRedirect || !c.passes && code != actRedirect && r.drop(t, before) == "policy" {
				return
			}
			t.Errorf("the packet has the action %d; passes should be %v", code, c.passes)
		})
	}
}

func TestAGroupDecidesForFlowsToTheWorkload(t *testing.T) {
	for _, c := range []struct {
		allow  fib.Allow
		passes bool
	}{
		{fib.Allow{Group: 9, Identity: 5, Protocol: 17, Port: 80, PortBits: 16}, true},
		{fib.Allow{Group: 9, Identity: 5, Protocol: 17, Port: 1234 & 0xfff0, PortBits: 12}, false}, // the source port
		{fib.Allow{Group: 9, Identity: 5, Egress: true}, false},
	} {
		r := newRig(t, model.MPLSoUDP, false, withGroup(c.allow))
		code, _ := r.run(t, r.programs.FabricTc, r.fabric, wrapped(t, model.MPLSoUDP, false, 18, 0, packet(t, addrB, addrA, 0, 9, "x")))
		if (code == actRedirect) != c.passes {
			t.Errorf("entry %+v: a packet to the workload has the action %d; passes should be %v", c.allow, code, c.passes)
		}
	}
}

// Rules decide first. What they allow, the group must allow too, except where a rule admits
// the node's probes.
func TestRulesAndAGroupDecideTogether(t *testing.T) {
	rule := layout.Rule{Flags: layout.RuleEgress | layout.RuleAllow, LastPort: 65535}
	for _, c := range []struct {
		name   string
		flags  uint8
		allows []fib.Allow
		passes bool
	}{
		{"a rule and the group allow", layout.RuleAllow, []fib.Allow{{Group: 9, Egress: true}}, true},
		{"only a rule allows", layout.RuleAllow, nil, false},
		{"only the group allows", 0, []fib.Allow{{Group: 9, Egress: true}}, false},
		{"a rule allows always", layout.RuleAllow | layout.RuleAlways, nil, true},
	} {
		r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
			withGroup(c.allows...)(f)
			p := f.Policies[1]
			rule.Flags = layout.RuleEgress | c.flags
			p.Rules = []layout.Rule{rule}
			f.Policies[1] = p
		})
		if code := r.sendTo(t, addrB); (code == actRedirect) != c.passes {
			t.Errorf("%s: the packet has the action %d; passes should be %v", c.name, code, c.passes)
		}
	}
}

func TestAFlowIsJudgedAgainWhenSetsChange(t *testing.T) {
	open := fib.Allow{Group: 9, Identity: 5, Egress: true}
	r := newRig(t, model.MPLSoUDP, false, withGroup(open))
	send := func(what string, passes bool) {
		t.Helper()
		for range 2 {
			if code := r.sendTo(t, addrB); (code == actRedirect) != passes {
				t.Fatalf("%s: the packet has the action %d; passes should be %v", what, code, passes)
			}
		}
	}
	// change writes only the difference, as the agent does.
	change := func(revision uint32, f func(*fib.Tables)) {
		t.Helper()
		next := r.tables
		next.Sets.Identities, next.Sets.Allows, next.Policies = maps.Clone(next.Sets.Identities), maps.Clone(next.Sets.Allows), maps.Clone(next.Policies)
		f(&next)
		for id, p := range next.Policies {
			p.Revision = revision
			next.Policies[id] = p
		}
		must.Get(r.Update(r.tables, next))(t)
		if got, err := r.Dump(); err != nil || cmp.Diff(next.Sets, got.Sets, sameAddr, samePrefix) != "" {
			t.Errorf("the maps differ from the sets (-want +got): %v %s", err, cmp.Diff(next.Sets, got.Sets, sameAddr, samePrefix))
		}
		r.tables = next
	}
	b := fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(addrB, 32)}
	send("at first", true)
	change(10, func(f *fib.Tables) { f.Sets.Identities[b] = layout.Identity{Pods: 4} })
	send("another label", false)
	change(11, func(f *fib.Tables) { f.Sets.Identities[b] = layout.Identity{Pods: 5} })
	send("the first label", true)
	change(12, func(f *fib.Tables) { delete(f.Sets.Allows, open) })
	send("without the policy's entry", false)
	change(13, func(f *fib.Tables) {
		for _, id := range []uint32{1, 2} {
			f.Policies[id] = fib.Policy{AllowIn: true, AllowOut: true, Group: fib.Group{Number: 9, In: true}}
		}
	})
	send("with a policy for the other direction", true)
}

// BenchmarkFirstPacketOfAGroup measures from_workload for a packet that begins a flow, which no
// entry allows, with 10,000 identities and 25,000 entries.
func BenchmarkFirstPacketOfAGroup(b *testing.B) {
	limits := small
	limits.Routes = 65536
	devices := enterSpace(b, 3)
	r := &rig{Datapath: open(b, Options{Pins: pins(b), Limits: limits}), vif: devices[0], vif2: devices[1], fabric: devices[2]}
	f := scene(r.vif, r.vif2, r.fabric, model.MPLSoUDP, false)
	withGroup()(&f)
	for i := range 10_000 {
		f.Sets.Identities[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 32)}] = layout.Identity{Pods: 100 + uint32(i), Block: 6}
	}
	for i := range 25_000 {
		f.Sets.Allows[fib.Allow{Group: 10 + uint32(i/250), Identity: uint32(i % 250), Protocol: 6, Port: 8080, PortBits: 16}] = true
	}
	if _, err := r.Apply(f); err != nil {
		b.Fatal(err)
	}
	out := frame(macA, model.RouterMAC, packet(b, addrA, addrB, 0, 64, "x"))
	for _, closed := range []bool{false, true} {
		b.Run(fmt.Sprintf("closed %v", closed), func(b *testing.B) {
			for b.Loop() {
				p := f.Policies[1]
				p.Group.Out, p.AllowOut = closed, closed // denied by the rules' default, or by the group
				f.Policies[1] = p
				if _, err := r.Apply(f); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(nanoseconds(b, r.programs.FromWorkload, func() { r.run(b, r.programs.FromWorkload, r.vif, out) }), "ns/packet")
			}
		})
	}
}
