package bgp

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/bgp/bgptest"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/model/modeltest"
)

func target(text string) model.RouteTarget {
	t, err := model.ParseRouteTarget(text)
	if err != nil {
		panic(err)
	}
	return t
}

// compareAddresses lets cmp compare addresses and prefixes by their values.
var compareAddresses = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

// overWire returns the path as a neighbour receives it: it serializes an UPDATE message and parses it.
func overWire(t testing.TB, p Path, from netip.Addr) Path {
	t.Helper()
	w := must.Get(p.toWire())(t)
	message := must.Get(bgp.NewBGPUpdateMessage(nil, w.Attrs, nil).Serialize())(t)
	parsed := must.Get(bgp.ParseBGPMessage(message))(t)
	got := &apiutil.Path{Family: w.Family, PeerAddress: from, Attrs: parsed.Body.(*bgp.BGPUpdate).PathAttributes}
	for _, a := range got.Attrs {
		if reach, is := a.(*bgp.PathAttributeMpReachNLRI); is {
			got.Nlri = reach.Value[0].NLRI
		}
	}
	received, ok := fromWire(got)
	if !ok {
		t.Fatalf("fromWire ignores the announced path %+v", p)
	}
	return received
}

// exporting returns a random state. Its first node has BGP, and each network exports three targets, the
// first of them its own.
func exporting(r *rand.Rand) model.State {
	s := modeltest.Random(r, 12).WithDefaults()
	n := &s.Nodes[0]
	n.BGP = &model.BGP{ASN: 64512, RouterID: netip.MustParseAddr("10.0.0.1"), Neighbors: []model.Neighbor{{Address: netip.MustParseAddr("10.0.0.254")}}}
	for i := range s.Networks {
		s.Networks[i].Export = []model.RouteTarget{target(fmt.Sprintf("64512:%d", s.Networks[i].ID)), target("192.0.2.1:7"), target("70000:1")}
	}
	return s
}

// announced returns the paths that the state's first node announces.
func announced(s model.State) []Path {
	ports := slices.DeleteFunc(slices.Clone(s.Ports), func(p model.Port) bool { return p.Node != s.Nodes[0].Name })
	return Export(s.Nodes[0], s.Networks, ports, s.Routes)
}

// A neighbour receives each path exactly as the node announces it.
func TestANeighborReceivesPathsAsAnnounced(t *testing.T) {
	kinds := map[Kind]int{}
	neighbor := netip.MustParseAddr("10.0.0.1")
	for seed := range uint64(300) {
		for _, p := range announced(exporting(rand.New(rand.NewPCG(seed, 38)))) {
			kinds[p.Kind]++
			got := overWire(t, p, neighbor)
			p.Neighbor, p.LocalPref = neighbor, defaultLocalPref
			if !reflect.DeepEqual(got, p) {
				t.Fatalf("seed %d: the neighbour receives a different path (-sent +received):\n%s", seed, cmp.Diff(p, got, compareAddresses))
			}
		}
	}
	for _, k := range []Kind{VPN, Station, Multicast, Prefix} {
		if kinds[k] < 20 {
			t.Errorf("the random states have only %d paths of kind %s, want at least 20", kinds[k], k)
		}
	}
}

// A received path that vrouter does not support has a reason, or is ignored.
func TestUnsupportedPathsHaveAReason(t *testing.T) {
	rd := bgp.NewRouteDistinguisherTwoOctetAS(64512, 1)
	tagged := must.Get(bgp.NewEVPNMacIPAdvertisementRoute(rd, bgp.EthernetSegmentIdentifier{}, 5, "02:00:00:00:00:01", netip.Addr{}, []uint32{7}))(t)
	gateway := must.Get(bgp.NewEVPNIPPrefixRoute(rd, bgp.EthernetSegmentIdentifier{}, 0, 24, netip.MustParseAddr("10.9.0.0"), netip.MustParseAddr("10.9.9.9"), 7))(t)
	stack := must.Get(bgp.NewLabeledVPNIPAddrPrefix(netip.MustParsePrefix("10.9.0.0/24"), *bgp.NewMPLSLabelStack(17, 18), rd))(t)
	for want, w := range map[string]*apiutil.Path{
		"its Ethernet tag is 5, but VLAN-aware bundles are not supported":                    {Family: bgp.RF_EVPN, Nlri: tagged},
		"it has the gateway address 10.9.9.9, which is not supported (RFC 9136 section 4.1)": {Family: bgp.RF_EVPN, Nlri: gateway},
		"it has 2 labels, but only one is supported":                                         {Family: bgp.RF_IPv4_VPN, Nlri: stack},
		"it asks for broadcast by pim-ssm-tree, but only ingress replication is supported": {Family: bgp.RF_EVPN, Nlri: multicastRoute(t, rd), Attrs: []bgp.PathAttributeInterface{
			bgp.NewPathAttributePmsiTunnel(bgp.PMSI_TUNNEL_TYPE_PIM_SSM_TREE, false, 7, bgp.NewDefaultPmsiTunnelID([]byte{1, 2, 3, 4})),
		}},
	} {
		if p, ok := fromWire(w); !ok || p.Unusable != want {
			t.Errorf("fromWire accepts the path: %v, with reason %q; want true, %q", ok, p.Unusable, want)
		}
	}
	if p, ok := fromWire(&apiutil.Path{Family: bgp.RF_EVPN, Nlri: bgp.NewEVPNEthernetAutoDiscoveryRoute(rd, bgp.EthernetSegmentIdentifier{}, 0, 7)}); ok {
		t.Errorf("fromWire accepts an EVPN route of type 1, as %+v", p)
	}
}

func multicastRoute(t testing.TB, rd bgp.RouteDistinguisherInterface) bgp.NLRI {
	t.Helper()
	n := must.Get(bgp.NewEVPNMulticastEthernetTagRoute(rd, 0, netip.MustParseAddr("10.0.0.9")))(t)
	return n
}

// fromWire reads the attributes that select the best path. It does not take communities of other types for
// route targets.
func TestAttributesOfOtherRoutersAreRead(t *testing.T) {
	p := Path{}
	esImport := bgp.NewESImportRouteTarget("02:00:00:00:00:01")
	for _, a := range []bgp.PathAttributeInterface{
		bgp.NewPathAttributeLocalPref(200), bgp.NewPathAttributeMultiExitDisc(30), bgp.NewPathAttributeOrigin(2),
		bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{1, 2, 3})}),
		bgp.NewPathAttributeExtendedCommunities([]bgp.ExtendedCommunityInterface{esImport, bgp.NewEncapExtended(bgp.TUNNEL_TYPE_NVGRE)}),
		bgp.NewPathAttributeCommunities([]uint32{64512<<16 | 77, uint32(bgp.COMMUNITY_LLGR_STALE)}),
		bgp.NewPathAttributeLargeCommunities([]*bgp.LargeCommunity{bgp.NewLargeCommunity(70000, 1, 2)}),
	} {
		p.setAttribute(a)
	}
	want := Path{LocalPref: 200, MED: 30, Source: 2, ASPath: 3, Tunnels: []bgp.TunnelType{bgp.TUNNEL_TYPE_NVGRE}, LongLivedStale: true,
		Communities: []string{"es-import rt: 02:00:00:00:00:01", "64512:77", "llgr-stale", "70000:1:2"}}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("the attributes are read as %+v, want %+v", p, want)
	}
}

// updates returns the paths and withdrawals of an UPDATE message, as GoBGP gives them to the speaker. If GoBGP treats an error
// in it as a withdrawal, updates returns withdrawals. It returns nil if the message ends the session.
func updates(message []byte) (all []*apiutil.Path) {
	handling := bgptest.Handling(message)
	if handling == bgp.ERROR_HANDLING_SESSION_RESET {
		return nil
	}
	parsed, _ := bgp.ParseBGPMessage(message)
	attributes := parsed.Body.(*bgp.BGPUpdate).PathAttributes
	add := func(f bgp.Family, nlris []bgp.PathNLRI, withdrawal bool) {
		for _, n := range nlris {
			all = append(all, &apiutil.Path{Family: f, Nlri: n.NLRI, Attrs: attributes, PeerAddress: router, PeerASN: bgptest.ASN, Withdrawal: withdrawal})
		}
	}
	for _, a := range attributes {
		switch a := a.(type) {
		case *bgp.PathAttributeMpReachNLRI:
			add(bgp.NewFamily(a.AFI, a.SAFI), a.Value, handling == bgp.ERROR_HANDLING_TREAT_AS_WITHDRAW)
		case *bgp.PathAttributeMpUnreachNLRI:
			add(bgp.NewFamily(a.AFI, a.SAFI), a.Value, true)
		}
	}
	return all
}

// quiet returns a speaker without sessions.
func quiet() *Speaker {
	return &Speaker{node: testSite().Node, limits: map[netip.Addr]int{router: model.DefaultMaximumPrefix}, table: newTable(nil), changed: func(bool) {}}
}

// take lets the speaker receive a message. The paths can be resolved, printed and stored, and the table is as before when
// they are withdrawn.
func take(t *testing.T, message []byte) {
	t.Helper()
	s, all, networks := quiet(), updates(message), testSite().Networks
	s.ReceivedFor(networks)
	s.receive(all)
	s.ReceivedFor(networks)
	_, verdicts := testSite().Resolve(s.Received())
	must.Get(json.Marshal(verdicts))(t)
	for i := range verdicts {
		_, _ = verdicts[i].Destination(), verdicts[i].TunnelNames()
	}
	kept := must.Get(json.Marshal(s.Received()))(t)
	var again []Path
	must.Succeed(t, json.Unmarshal(kept, &again))
	if got := newTable(again); !maps.EqualFunc(got.paths, s.table.paths, func(a, b value) bool { return a.label == b.label && a.routed == b.routed }) {
		t.Errorf("the stored paths are read as %v, want %v", got.paths, s.table.paths)
	}
	for _, w := range all {
		w.Withdrawal = true
	}
	s.receive(all)
	if left, _ := s.ReceivedFor(networks); len(left) > 0 {
		t.Errorf("after the withdrawal of all paths, the networks import %v", left)
	}
	if x := s.table; len(x.paths)+len(x.numbers)+len(x.hops) > 0 || len(x.free) != len(x.sets) {
		t.Errorf("after the withdrawal of all paths, the table has %v, the attributes %v and the next hops %v", x.paths, x.numbers, x.hops)
	}
}

// A VPN route of a family that the node does not have, such as IPv4 VPN multicast (RFC 6514), is ignored, also if an older
// agent has stored it.
func TestRoutesOfOtherFamiliesAreIgnored(t *testing.T) {
	p := path("10.9.0.0/24", nil)
	w := must.Get(p.toWire())(t)
	w.Family = bgp.NewFamily(bgp.AFI_IP, bgp.SAFI_MPLS_VPN_MULTICAST)
	if got, ok := fromWire(w); ok {
		t.Errorf("a path of family multicast is taken as %+v, want none", got)
	}
	p.Family = ""
	must.Equal(t, 0, len(newTable([]Path{p}).paths))
}

// A speaker takes each UPDATE message that GoBGP accepts.
func FuzzUpdate(f *testing.F) {
	for _, p := range announced(exporting(rand.New(rand.NewPCG(1, 38)))) {
		w := must.Get(p.toWire())(f)
		message := must.Get(bgp.NewBGPUpdateMessage(nil, w.Attrs, nil).Serialize())(f)
		f.Add(message)
	}
	for _, message := range bgptest.Messages(router, 1, 3) {
		f.Add(message)
	}
	f.Fuzz(take)
}

// A speaker takes random changes of valid UPDATE messages.
func TestRandomUpdatesAreAccepted(t *testing.T) {
	r, all, handled := rand.New(rand.NewPCG(38, 1)), bgptest.Messages(router, 1, 3), map[bgp.ErrorHandling]int{}
	for range must.Rounds(20_000) {
		message := bgptest.Mutate(r, all[r.IntN(len(all))])
		handled[bgptest.Handling(message)]++
		if take(t, message); t.Failed() {
			t.Fatalf("the message is %x", message)
		}
	}
	t.Logf("valid: %d; an attribute is ignored: %d; the routes are withdrawn: %d; the session ends: %d", handled[bgp.ERROR_HANDLING_NONE],
		handled[bgp.ERROR_HANDLING_ATTRIBUTE_DISCARD], handled[bgp.ERROR_HANDLING_TREAT_AS_WITHDRAW], handled[bgp.ERROR_HANDLING_SESSION_RESET])
	must.Equal(t, 4, len(handled))
}
