package datapath

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

var sameAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
var samePrefix = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func TestAppliedTablesAreInTheMaps(t *testing.T) {
	d := shared(t)
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	want.Policies[1] = fib.Policy{AllowOut: true, Rules: []layout.Rule{
		layout.Rule{Flags: layout.RuleAllow, Protocol: 6, FirstPort: 80, LastPort: 443}.With(netip.MustParsePrefix("10.1.0.0/16")),
		layout.Rule{Flags: layout.RuleEgress | layout.RuleLog, LastPort: 65535}.With(netip.MustParsePrefix("fd00::/8")),
	}}
	c, err := d.Apply(want)
	if err != nil || c.Updated == 0 || c.Deleted != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	got := must.Get(d.Dump())(t)
	must.Equal(t, want, got, sameAddr, samePrefix)
	if c, err = d.Apply(want); err != nil || c != (Changes{}) {
		t.Errorf("the same again changed %+v, %v", c, err)
	}
	c, err = d.Apply(fib.Tables{Settings: want.Settings})
	if err != nil || c.Updated != 0 || c.Deleted == 0 {
		t.Errorf("nothing wanted: %+v, %v", c, err)
	}
	if got, err = d.Dump(); err != nil || len(got.Routes)+len(got.Nexthops)+len(got.Vifs)+len(got.ILM)+len(got.VRFs) != 0 {
		t.Errorf("left: %+v, %v", got, err)
	}
}

// randomTables need not make sense: the maps hold what they are given.
func randomTables(r *rand.Rand) fib.Tables {
	f := scene(r.IntN(20)+2, r.IntN(20)+30, r.IntN(20)+60, []model.Encapsulation{model.MPLSoGRE, model.MPLSoUDP, model.VXLAN}[r.IntN(3)], r.IntN(2) == 1)
	for range r.IntN(300) {
		a := netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(32))})
		bits := 32 - r.IntN(2)*r.IntN(24)
		f.Routes[fib.RouteKey{VRF: uint32(r.IntN(3)), Prefix: netip.PrefixFrom(a, bits).Masked()}] = layout.Route{Nexthop: uint32(r.IntN(8)), Label: uint32(r.IntN(1 << 20))}
	}
	for range r.IntN(100) {
		a := netip.AddrFrom16([16]byte{0: 0xfd, 7: byte(r.IntN(4)), 15: byte(r.IntN(32))})
		bits := 128 - r.IntN(2)*r.IntN(100)
		f.Routes[fib.RouteKey{VRF: uint32(r.IntN(3)), Prefix: netip.PrefixFrom(a, bits).Masked()}] = layout.Route{Nexthop: uint32(r.IntN(8)), MAC: macB, Flags: layout.RouteMAC}
	}
	for range r.IntN(50) {
		f.ILM[uint32(r.IntN(200))] = layout.Target{Nexthop: 1 + uint32(r.IntN(7)), Ethernet: uint8(r.IntN(2))}
	}
	for range r.IntN(10) {
		delete(f.Nexthops, uint32(r.IntN(9)))
	}
	return f
}

func TestTheMapsFollowAnySequenceOfTables(t *testing.T) {
	d := shared(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range must.Rounds(200) {
		want := randomTables(r)
		if _, err := d.Apply(want); err != nil {
			t.Fatalf("state %d: %v", i, err)
		}
		got := must.Get(d.Dump())(t)
		if diff := cmp.Diff(want, got, sameAddr, samePrefix); diff != "" {
			t.Fatalf("state %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestDriftIsRepaired(t *testing.T) {
	d := shared(t)
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(d.Apply(want))(t)
	gone := layout.Host4Key{VRF: 1, Address: layout.Network4(addrB)}
	stray := layout.Host4Key{VRF: 3, Address: layout.Network4(addrB)}
	must.Succeed(t, errors.Join(d.maps.Hosts4.Delete(&gone), d.maps.Hosts4.Put(&stray, &layout.Route{Nexthop: 9}),
		d.maps.Ilm.Put(uint32(18), &layout.Target{Nexthop: 99})))
	differing := map[Entry]bool{{"hosts4", gone}: true, {"hosts4", stray}: true, {"ilm", uint32(18)}: true}
	if got, err := d.Differs(want); err != nil || !maps.Equal(got, differing) {
		t.Errorf("the differing entries are %v, %v; want %v", got, err, differing)
	}
	c, err := d.Apply(want)
	if err != nil || c.Updated != 2 || c.Deleted != 1 {
		t.Errorf("mended %+v, %v; want 2 updated, 1 deleted", c, err)
	}
	if got, err := d.Differs(want); err != nil || len(got) > 0 {
		t.Errorf("after Apply these entries differ: %v, %v", got, err)
	}
	got, err := d.Dump()
	if diff := cmp.Diff(want, got, sameAddr, samePrefix); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestATableAtItsLimitIsRefusedWhole(t *testing.T) {
	limits := small
	limits.Routes = 8
	d := open(t, Options{Pins: pins(t), Limits: limits})
	before := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(d.Apply(before))(t)
	more := scene(7, 8, 9, model.VXLAN, false)
	for i := range 10 {
		more.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 2, 0, byte(i)}), 32)}] = layout.Route{Nexthop: 1}
	}
	_, err := d.Apply(more)
	var limit *fib.LimitError
	if !errors.As(err, &limit) || limit.Table != "hosts4" || limit.Limit != 8 || limit.Want != 14 {
		t.Fatalf("%v", err)
	}
	if got, err := d.Dump(); err != nil || cmp.Diff(before, got, sameAddr, samePrefix) != "" {
		t.Errorf("the running state changed: %v", err)
	}
	// A full table can still change its contents.
	for i := range 4 {
		before.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 3, 0, byte(i)}), 32)}] = layout.Route{Nexthop: 1}
	}
	must.Get(d.Apply(before))(t)
	for i := range 4 {
		delete(before.Routes, fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 3, 0, byte(i)}), 32)})
		before.Routes[fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 4, 0, byte(i)}), 32)}] = layout.Route{Nexthop: 1}
	}
	if _, err := d.Apply(before); err != nil {
		t.Errorf("replacing entries of a full table: %v", err)
	}
}

func TestPinnedMapsAreAdoptedAndOtherSizesMakeANewGeneration(t *testing.T) {
	dir := pins(t)
	first := open(t, Options{Pins: dir})
	want := scene(7, 8, 9, model.MPLSoUDP, false)
	must.Get(first.Apply(want))(t)
	key := layout.FlowKey{Vif: 1, Protocol: 6, LocalPort: 80}
	must.Succeed(t, first.maps.Flows.Put(&key, &layout.Flow{CreatedNs: 1, Packets: [2]uint64{3, 4}}))
	first.Close()
	second := open(t, Options{Pins: dir})
	if got, err := second.Dump(); err != nil || cmp.Diff(want, got, sameAddr, samePrefix) != "" {
		t.Errorf("the maps were not adopted: %v", err)
	}
	second.Close()
	larger := small
	larger.Flows *= 2
	third := open(t, Options{Pins: dir, Limits: larger})
	if got, _ := third.Dump(); len(got.Routes) != 0 {
		t.Errorf("a new generation begins with %d routes", len(got.Routes))
	}
	var flow layout.Flow
	if err := third.maps.Flows.Lookup(&key, &flow); err != nil || flow.Packets != [2]uint64{3, 4} {
		t.Errorf("the flow was not carried over: %+v, %v", flow, err)
	}
	_, err := third.Apply(want)
	must.Succeed(t, errors.Join(err, third.Retire()))
	if left, err := third.others(); err != nil || len(left) != 0 {
		t.Errorf("older generations left: %v, %v", left, err)
	}
}

func TestTheLayoutVersionIsThatOfTheSource(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("bpf", "layout.h")))(t)
	m := regexp.MustCompile(`LAYOUT_VERSION (\d+)`).FindSubmatch(text)
	if m == nil || string(m[1]) != strconv.Itoa(layoutVersion) {
		t.Errorf("bpf/layout.h has %q, Go %d", m, layoutVersion)
	}
}

func TestEveryReasonHasANameAndAMeaning(t *testing.T) {
	seen := map[string]bool{}
	for i, r := range Reasons() {
		if int(r.Number) != i || r.Name == "" || r.Meaning == "" || seen[r.Name] {
			t.Errorf("%+v", r)
		}
		seen[r.Name] = true
	}
	if len(Reasons()) < 35 || !seen["no_route"] || ReasonOf(9999).Name != "unknown" {
		t.Errorf("%d reasons", len(Reasons()))
	}
}
