package inspect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
)

// A network has a line per used encapsulation, or one line of zeros.
func TestUnusedEncapsulationsAreLeftOut(t *testing.T) {
	rows := []VRFStats{
		{VRF: 1, Network: "red", ByEncapsulation: map[string]Traffic{"local": {}, "mpls-gre": {}, "mpls-udp": {TxPackets: 1, TxBytes: 98}, "vxlan": {RxPackets: 2, RxBytes: 196}}},
		{VRF: 2, Network: "blue", ByEncapsulation: map[string]Traffic{"local": {}}},
	}
	want := [][]string{
		{"1", "red", "mpls-udp", "1", "98", "0", "0"},
		{"1", "red", "vxlan", "0", "0", "2", "196"},
		{"2", "blue", "-", "0", "0", "0", "0"},
	}
	must.Equal(t, want, VRFStatsTable(rows).Rows)
}

func TestLaterReturnsTheNewEvents(t *testing.T) {
	at := func(second int, packet string) DropEvent {
		return DropEvent{Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC), Packet: packet}
	}
	log := []DropEvent{at(1, "a"), at(2, "b"), at(2, "c"), at(3, "d")}
	for name, c := range map[string]struct{ before, after, want []DropEvent }{
		"from nothing":                {nil, log, log},
		"nothing new":                 {log, log, nil},
		"one more":                    {log[:3], log, log[3:]},
		"one more of the same moment": {log[:2], log, log[2:]},
		"the oldest forgotten":        {log[:3], log[2:], log[3:]},
		"all seen ones forgotten":     {log[:1], log[2:], log[2:]},
		"emptied":                     {log, nil, nil},
	} {
		if diff := cmp.Diff(c.want, append([]DropEvent(nil), Later(c.before, c.after)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDropsWithoutAnEventAreCounted(t *testing.T) {
	counters := func(spoofed, policy uint64) []Drop {
		return []Drop{{Vif: 1, Reason: "spoofed_ip", Packets: spoofed}, {Vif: 2, Reason: "policy", Packets: policy}}
	}
	var m Missed
	for i, c := range []struct {
		events   int
		counters []Drop
		missed   int
	}{
		{1000, counters(5000, 7), 0}, // before the reader started
		{10, counters(5010, 7), 0},
		{1000, counters(9010, 7), 0}, // the events of some may still come
		{1000, counters(9010, 7), 2000},
		{0, counters(9010, 7), 0},
		{2, counters(9010, 8), 0},      // an event is read before it is counted
		{0, counters(9011, 8), 0},      // its counter is read
		{0, counters(0, 10), 0},        // another vif with the same id
		{1, counters(3, 10), 1},        // one of the two of policy
		{3, counters(3, 10), 0},        // those of the new vif
		{0, []Drop{}, 0},               // the tables are new
		{1, counters(0, 1), 0},         // counted and read
		{1000, counters(0, 100001), 0}, // and then a flood
		{1000, counters(0, 100001), 98000},
	} {
		if missed := m.Add(c.events, c.counters); missed != c.missed {
			t.Errorf("reading %d: missed %d, want %d", i, missed, c.missed)
		}
	}
}

func TestADropEventIsOneLine(t *testing.T) {
	e := DropEvent{Time: time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.Local), Reason: "no_route", Meaning: "no route to the destination",
		Vif: 1, Device: "tap0", VRF: 7, Length: 98, Packet: "10.0.0.3 → 10.0.9.9\nicmp echo"}
	want := "03:04:05.678900  no_route  vif 1 (tap0)  vrf 7  98 bytes  10.0.0.3 → 10.0.9.9 icmp echo  (no route to the destination)"
	if e.String() != want {
		t.Errorf("got  %q\nwant %q", e, want)
	}
}

func TestLongestMatchPrefersTheLongerPrefixOfTheVRF(t *testing.T) {
	for to, want := range map[string]string{"10.0.0.4": "10.0.0.4/32", "10.9.9.9": "10.0.0.0/8"} {
		if r, ok := LongestMatch(sampleRoutes, 7, addr(to)); !ok || r.Destination.String() != want || r.VRF != 7 {
			t.Errorf("%s: %v %v, want %s", to, r.Destination, ok, want)
		}
	}
	if r, ok := LongestMatch(sampleRoutes, 7, addr("192.0.2.1")); ok {
		t.Errorf("192.0.2.1 has no route, got %v", r)
	}
}
