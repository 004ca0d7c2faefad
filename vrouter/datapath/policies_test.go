package datapath

import (
	"fmt"
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// remoteOf returns the destination of the rule with an index. A policy of 255 rules has
// rules up to 10.9.0.254.
func remoteOf(index int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 9, byte(index >> 8), byte(index)})
}

// withRules returns a change of the scene: vif 1 may send only to the destinations of n
// rules.
func withRules(n int) func(*fib.Tables) {
	return func(f *fib.Tables) {
		p := fib.Policy{AllowIn: true}
		for i := range n {
			p.Rules = append(p.Rules, layout.Rule{Flags: layout.RuleEgress | layout.RuleAllow}.With(netip.PrefixFrom(remoteOf(i), 32)))
		}
		f.Policies[1] = p
		for device, v := range f.Vifs {
			v.Flags |= layout.If[uint16](v.ID == 1, layout.VifPolicy)
			f.Vifs[device] = v
		}
	}
}

func (r *rig) sendTo(t testing.TB, to netip.Addr) (code uint32) {
	t.Helper()
	code, _ = r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, to, 0, 64, "x")))
	return code
}

func TestEachOf255RulesDecides(t *testing.T) {
	limits := small
	limits.Flows = 4096
	dir, devices := pins(t), enterSpace(t, 3)
	r := &rig{Datapath: open(t, Options{Pins: dir, Limits: limits}), vif: devices[0], vif2: devices[1], fabric: devices[2]}
	f := scene(r.vif, r.vif2, r.fabric, model.MPLSoUDP, false)
	withRules(layout.MaxRules)(&f)
	must.Get(r.Apply(f))(t)
	for i := range layout.MaxRules {
		if code := r.sendTo(t, remoteOf(i)); code != actRedirect {
			t.Errorf("the packet that rule %d allows has action %d, want a redirect", i+1, code)
		}
	}
	flows := 0
	err := table[layout.FlowKey, layout.Flow]{"flows", r.maps.Flows, false}.each(func(k layout.FlowKey, v layout.Flow) {
		flows++
		if want := k.Remote.Bytes[15] + 1; v.Rule != want {
			t.Errorf("the flow to %s has rule %d, want %d", k.Remote.Addr(), v.Rule, want)
		}
	})
	if err != nil || flows != layout.MaxRules {
		t.Errorf("%d flows, want %d; error %v", flows, layout.MaxRules, err)
	}
	before := must.Get(r.Drops())(t)
	r.sendTo(t, remoteOf(layout.MaxRules))
	if got := r.drop(t, before); got != "policy" {
		t.Errorf("a packet that no rule allows is dropped as %s, want policy", got)
	}
}

// The default of this policy allows. A chunk is absent for a moment after the agent
// replaced a policy.
func TestAMissingChunkOfRulesDenies(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, func(f *fib.Tables) {
		withRules(layout.ChunkRules + 1)(f)
		p := f.Policies[1]
		p.AllowOut = true
		f.Policies[1] = p
	})
	if code := r.sendTo(t, remoteOf(layout.MaxRules)); code != actRedirect {
		t.Fatalf("the default allows the packet, but its action is %d", code)
	}
	var keys []layout.RulesKey
	more := r.Datapath.tables().moreRules
	if err := more.each(func(k layout.RulesKey, _ layout.RuleChunk) { keys = append(keys, k) }); err != nil || len(keys) != 1 {
		t.Fatalf("chunks %v, want one; error %v", keys, err)
	}
	must.Succeed(t, more.remove(keys))
	before := must.Get(r.Drops())(t)
	r.sendTo(t, addrB)
	must.Equal(t, "policy", r.drop(t, before))
}

func TestASmallPolicyNeedsNoChunks(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, withRules(layout.MaxRules))
	chunks := func() (n int) {
		must.Succeed(t, r.Datapath.tables().moreRules.each(func(layout.RulesKey, layout.RuleChunk) { n++ }))
		return n
	}
	if got := chunks(); got != 3 {
		t.Errorf("%d rules have %d chunks, want 3", layout.MaxRules, got)
	}
	withRules(layout.ChunkRules)(&r.tables)
	must.Get(r.Apply(r.tables))(t)
	if got := chunks(); got != 0 {
		t.Errorf("%d rules have %d chunks, want none", layout.ChunkRules, got)
	}
}

// Packets of a known flow do not read the policy, but its generation.
func TestANewPolicyEndsTheFlowsThatItDenies(t *testing.T) {
	r := newRig(t, model.MPLSoUDP, false, withRules(2))
	for range 3 {
		if code := r.sendTo(t, remoteOf(1)); code != actRedirect {
			t.Fatalf("a packet that rule 2 allows has action %d, want a redirect", code)
		}
	}
	withRules(1)(&r.tables)
	must.Get(r.Apply(r.tables))(t)
	before := must.Get(r.Drops())(t)
	r.sendTo(t, remoteOf(1))
	if got := r.drop(t, before); got != "policy" {
		t.Errorf("a packet of the flow is dropped as %s, want policy", got)
	}
	withRules(2)(&r.tables)
	delete(r.tables.Policies, 1)
	must.Get(r.Apply(r.tables))(t)
	var generation uint32
	if err := r.maps.PolicyGenerations.Lookup(uint32(1), &generation); err != nil || generation != 0 {
		t.Errorf("vif 1 without a policy has generation %d, want 0; error %v", generation, err)
	}
}

func TestMoreRulesThanALimitAreRefused(t *testing.T) {
	_, _, err := encodePolicy(7, fib.Policy{Rules: make([]layout.Rule, 256)})
	if want := "policy of vif 7: 256 rules, at most 255 are allowed; merge some"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// BenchmarkFirstPacket measures from_workload for a packet that begins a flow. No rule
// matches, and the policy denies the packet, so no entry shortens the next run.
func BenchmarkFirstPacket(b *testing.B) {
	for _, n := range []int{0, 3, 64, 100, 255} {
		b.Run(fmt.Sprintf("%d rules", n), func(b *testing.B) {
			r := newRig(b, model.MPLSoUDP, false, withRules(n))
			f := frame(macA, model.RouterMAC, packet(b, addrA, remoteOf(n), 0, 64, "x"))
			for b.Loop() {
				b.ReportMetric(nanoseconds(b, r.programs.FromWorkload, func() { r.run(b, r.programs.FromWorkload, r.vif, f) }), "ns/packet")
			}
		})
	}
}
