package datapath

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

// source makes random values of what a node's tables may hold.
type source struct{ *rand.Rand }

func (s source) bool() bool { return s.IntN(2) == 1 }

func (s source) addr(v6 bool) netip.Addr {
	var b [16]byte
	for i := range b {
		b[i] = byte(s.IntN(256))
	}
	b[0] = 0xfd
	if v6 {
		return netip.AddrFrom16(b)
	}
	return netip.AddrFrom4([4]byte(b[1:5]))
}

func (s source) prefix(v6 bool) netip.Prefix {
	a := s.addr(v6)
	return netip.PrefixFrom(a, s.IntN(a.BitLen()+1)).Masked()
}

func (s source) policy() fib.Policy {
	p := fib.Policy{AllowIn: s.bool(), AllowOut: s.bool(), Group: fib.Group{Number: s.Uint32(), In: s.bool(), Out: s.bool()}, Revision: s.Uint32()}
	for range s.IntN(layout.MaxRules + 1) {
		r := layout.Rule{
			Flags: uint8(s.IntN(8)), Protocol: uint8(s.IntN(256)), FirstPort: uint16(s.IntN(1 << 16)), LastPort: uint16(s.IntN(1 << 16)),
		}
		if s.bool() {
			r = r.With(s.prefix(s.bool()))
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

func TestDecodingReversesEncoding(t *testing.T) {
	s := source{rand.New(rand.NewPCG(5, 6))}
	same := func(what string, i int, want, got any) {
		t.Helper()
		if reflect.DeepEqual(want, got) {
			return // checked first, because cmp.Diff takes much longer
		}
		if diff := cmp.Diff(want, got, sameAddr, samePrefix, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s %d (-want +got):\n%s", what, i, diff)
		}
	}
	for i := range must.Rounds(500) {
		var v layout.Vif
		var sources []netip.Prefix
		for _, v6 := range []bool{false, true} {
			for range s.IntN(layout.MaxSources + 1) {
				sources = append(sources, s.prefix(v6))
			}
		}
		must.Succeed(t, v.SetSources(sources))
		same("sources", i, sources, v.Sources())

		policy := s.policy()
		p, more, err := encodePolicy(1, policy)
		must.Succeed(t, err)
		same("policy", i, policy, decodePolicy(1, &p, more))
	}
}

func TestThePolicysGenerationFollowsItsRules(t *testing.T) {
	s := source{rand.New(rand.NewPCG(7, 8))}
	generation := func(p fib.Policy) uint32 {
		v, _, err := encodePolicy(1, p)
		must.Succeed(t, err)
		return v.Generation
	}
	for range must.Rounds(500) {
		p := s.policy()
		before := generation(p)
		if generation(fib.Policy{AllowIn: p.AllowIn, AllowOut: p.AllowOut, Rules: slices.Clone(p.Rules), Group: p.Group, Revision: p.Revision}) != before {
			t.Fatal("the same rules have two generations")
		}
		p.AllowIn = !p.AllowIn
		if generation(p) == before {
			t.Fatalf("another default, the same generation: %+v", p)
		}
		p.AllowIn = !p.AllowIn
		p.Revision++
		if generation(p) == before {
			t.Fatalf("another revision, the same generation: %+v", p)
		}
		p.Revision--
		if len(p.Rules) > 0 {
			r := &p.Rules[s.IntN(len(p.Rules))]
			r.Flags ^= layout.RuleAllow
			if generation(p) == before {
				t.Fatalf("another rule, the same generation: %+v", p)
			}
		}
	}
}

// Macros do not show in the object's types, so Go repeats their values.
func TestConstantsAreThoseOfTheSource(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("bpf", "types.h")))(t)
	headers := must.Get(os.ReadFile(filepath.Join("bpf", "headers.h")))(t)
	text = append(text, headers...)
	for name, want := range map[string]int{
		"NH_F_MULTICAST": layout.NexthopMulticast, "NH_F_DF": layout.NexthopDF, "NH_F_PEER": layout.NexthopPeer, "NH_F_CHECKSUM": layout.NexthopChecksum, "NH_F_CUT": layout.NexthopCut, "NH_F_SERVICES": layout.NexthopServices, "VIF_F_SERVICES": layout.VifServices, "SERVICE_F_DROP": layout.ServiceDrop, "ROUTE_F_MAC": layout.RouteMAC, "ROUTE_F_FLOATING": layout.RouteFloating, "VIF_F_FLOATING": layout.VifFloating,
		"VIF_F_L2": layout.VifL2, "VIF_F_L3": layout.VifL3, "VIF_F_POLICY": layout.VifPolicy, "VIF_F_OPEN": layout.VifOpen, "VIF_F_AGENT": layout.VifAgent, "VIF_F_NETKIT": layout.VifNetkit, "VIF_F_NODE": layout.VifNode, "SET_F_STRICT": layout.SettingsStrict, "SET_F_MPLS_UDP": layout.SettingsMPLSUDP, "SET_F_MPLS_GRE": layout.SettingsMPLSGRE,
		"RULE_F_EGRESS": layout.RuleEgress, "RULE_F_ALLOW": layout.RuleAllow, "RULE_F_LOG": layout.RuleLog, "RULE_F_ALWAYS": layout.RuleAlways,
		"FLOW_TCP_SYN": tcpSYN, "FLOW_TCP_ESTABLISHED": tcpEstablished, "FLOW_TCP_FIN_OUT": tcpFINOut,
		"FLOW_TCP_FIN_IN": tcpFINIn, "FLOW_TCP_RST": tcpRST,
		"MAX_PATHS": layout.MaxPaths, "MAX_MEMBERS": layout.MaxMembers, "MAX_RULES": layout.MaxRules, "CHUNK_RULES": layout.ChunkRules, "MAX_LOCAL": layout.MaxLocal,
		"MAX_SOURCES": layout.MaxSources, "MAX_VRFS": layout.MaxVRFs,
	} {
		m := regexp.MustCompile(`(?m)^#define ` + name + `\s+(?:\(1 << (\d+)\)|(\d+))`).FindSubmatch(text)
		if m == nil {
			t.Errorf("%s is not in the source", name)
			continue
		}
		got, err := strconv.Atoi(string(m[1]) + string(m[2]))
		if len(m[1]) > 0 {
			got = 1 << got
		}
		if err != nil || got != want {
			t.Errorf("%s is %d in the source, %d in Go", name, got, want)
		}
	}
}

func TestTheObjectsSizesAreTheDefaultLimits(t *testing.T) {
	spec := must.Get(loadVrouter())(t)
	for name, size := range (Limits{}).WithDefaults().sizes() {
		if got := spec.Maps[name].MaxEntries; got != size {
			t.Errorf("map %s has %d entries in the source, %d by default", name, got, size)
		}
	}
	for name := range pinned {
		if spec.Maps[name] == nil {
			t.Errorf("map %s is not in the object", name)
		}
	}
}
