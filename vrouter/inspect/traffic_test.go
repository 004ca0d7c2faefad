package inspect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRatesArePerSecondAndBusiestFirst(t *testing.T) {
	before := []VRFStats{{VRF: 1, Network: "red", ByEncapsulation: map[string]Traffic{"vxlan": {TxPackets: 100, TxBytes: 10000, RxPackets: 50, RxBytes: 500}}}}
	after := []VRFStats{
		{VRF: 1, Network: "red", ByEncapsulation: map[string]Traffic{"vxlan": {TxPackets: 300, TxBytes: 30000, RxPackets: 54, RxBytes: 1500}}},
		{VRF: 2, Network: "blue", ByEncapsulation: map[string]Traffic{"local": {TxPackets: 2000, TxBytes: 1000000}}},
	}
	want := []Rate{
		{VRF: 2, Network: "blue", Encapsulation: "local", TxPackets: 1000, TxBits: 4e6},
		{VRF: 1, Network: "red", Encapsulation: "vxlan", TxPackets: 100, TxBits: 80000, RxPackets: 2, RxBits: 4000},
	}
	if diff := cmp.Diff(want, Rates(before, after, 2*time.Second)); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
}

// A network has a line per used encapsulation, or one line of zeros.
func TestWhatNeverCarriedAPacketIsLeftOut(t *testing.T) {
	rows := []VRFStats{
		{VRF: 1, Network: "red", ByEncapsulation: map[string]Traffic{"local": {}, "mpls-gre": {}, "mpls-udp": {TxPackets: 1, TxBytes: 98}, "vxlan": {RxPackets: 2, RxBytes: 196}}},
		{VRF: 2, Network: "blue", ByEncapsulation: map[string]Traffic{"local": {}}},
	}
	want := [][]string{
		{"1", "red", "mpls-udp", "1", "98", "0", "0"},
		{"1", "red", "vxlan", "0", "0", "2", "196"},
		{"2", "blue", "-", "0", "0", "0", "0"},
	}
	if diff := cmp.Diff(want, VRFStatsTable(rows).Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if rates := Rates(rows, rows, time.Second); len(rates) != 2 || rates[0].Encapsulation != "mpls-udp" || rates[1].Encapsulation != "vxlan" {
		t.Errorf("rates of %v", rates)
	}
}

// Counters start at 0 again when a network is deleted and created again.
func TestRatesOfCountersThatWereResetCountFromZero(t *testing.T) {
	before := []VRFStats{{VRF: 1, ByEncapsulation: map[string]Traffic{"vxlan": {TxPackets: 1000, TxBytes: 1000, RxPackets: 1, RxBytes: 1}}}}
	after := []VRFStats{{VRF: 1, ByEncapsulation: map[string]Traffic{"vxlan": {TxPackets: 3, TxBytes: 300, RxPackets: 2, RxBytes: 2}}}}
	want := []Rate{{VRF: 1, Encapsulation: "vxlan", TxPackets: 3, TxBits: 2400, RxPackets: 2, RxBits: 16}}
	if diff := cmp.Diff(want, Rates(before, after, time.Second)); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
	if got := Rates(nil, nil, time.Second); got == nil || len(got) != 0 {
		t.Errorf("of nothing: %#v, want an empty list", got)
	}
	if got := Rates(before, after, 0); got != nil {
		t.Errorf("readings of the same instant have a rate: %v", got)
	}
}

func TestQuantitiesHaveThreeDigitsAndAPrefix(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.4: "0", 1: "1", 999: "999", 999.4: "999", 999.5: "1.00 k", 1234: "1.23 k", 9994: "9.99 k", 9996: "10.0 k",
		99940: "99.9 k", 99960: "100 k", 999499: "999 k", 999500: "1.00 M", 1e9: "1.00 G", 9.41e9: "9.41 G", 4.2e11: "420 G", 1e12: "1.00 T", 5e14: "500 T",
	} {
		if got := si(x); got != want {
			t.Errorf("si(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestLaterIsWhatTheLogGained(t *testing.T) {
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

func TestADropEventIsOneLine(t *testing.T) {
	e := DropEvent{Time: time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.Local), Reason: "no_route", Meaning: "no route to the destination",
		Vif: 1, Device: "tap0", VRF: 7, Length: 98, Packet: "10.0.0.3 → 10.0.9.9\nicmp echo"}
	want := "03:04:05.678900  no_route  vif 1 (tap0)  vrf 7  98 bytes  10.0.0.3 → 10.0.9.9\uFFFDicmp echo  (no route to the destination)"
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
