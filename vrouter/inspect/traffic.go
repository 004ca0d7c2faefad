package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// VRFStatsTable shows the traffic of each network by encapsulation. TX is sent by
// this node's workloads, RX is delivered to them. It omits encapsulations without
// packets; a network without packets has one line of zeros.
func VRFStatsTable(rows []VRFStats) Table {
	t := Table{
		Empty: "no network has carried a packet yet",
		Columns: []Column{
			{Name: "Vrf", Right: true, Key: true},
			{Name: "Network", Least: 8},
			{Name: "Encapsulation", Key: true},
			{Name: "TX packets", Right: true},
			{Name: "TX bytes", Right: true, Leave: 1},
			{Name: "RX packets", Right: true},
			{Name: "RX bytes", Right: true, Leave: 1},
		},
	}
	for _, r := range rows {
		used := r.used()
		if len(used) == 0 {
			t.Add(number(r.VRF), orNone(r.Network), none, "0", "0", "0", "0")
		}
		for _, encapsulation := range used {
			x := r.ByEncapsulation[encapsulation]
			t.Add(number(r.VRF), orNone(r.Network), encapsulation, number(x.TxPackets), number(x.TxBytes),
				number(x.RxPackets), number(x.RxBytes))
		}
	}
	return t
}

// used returns the encapsulations that have carried packets since the tables were
// created, sorted.
func (r VRFStats) used() []string {
	var names []string
	for _, e := range slices.Sorted(maps.Keys(r.ByEncapsulation)) {
		if r.ByEncapsulation[e] != (Traffic{}) {
			names = append(names, e)
		}
	}
	return names
}

// FallbackTable shows the packets that direct cannot carry, with a row per network and reason.
func FallbackTable(rows []Fallback) Table {
	t := Table{
		Empty: "direct has carried all packets of nodes that use it",
		Columns: []Column{
			{Name: "Vrf", Right: true, Key: true},
			{Name: "Network", Least: 8},
			{Name: "Reason", Key: true},
			{Name: "Packets", Right: true},
			{Name: "Meaning", Least: 12, Leave: 1},
		},
	}
	for _, f := range rows {
		t.Add(number(f.VRF), orNone(f.Network), f.Reason, number(f.Packets), f.Meaning)
	}
	return t
}

// Rate is the traffic of a network and encapsulation per second, between two
// readings.
type Rate struct {
	VRF           uint32  `json:"vrf"`
	Network       string  `json:"network"`
	Encapsulation string  `json:"encapsulation"` // local: between this node's workloads
	TxPackets     float64 `json:"tx_packets_per_s"`
	TxBits        float64 `json:"tx_bits_per_s"`
	RxPackets     float64 `json:"rx_packets_per_s"`
	RxBits        float64 `json:"rx_bits_per_s"`
}

type rateKey struct {
	vrf           uint32
	encapsulation string
}

// Rates computes the rates between two readings, busiest first. apart is the
// time between them. It omits encapsulations that have never carried a packet.
// If a counter has decreased, it was reset, and Rates takes its first value as
// 0.
func Rates(before, after []VRFStats, apart time.Duration) []Rate {
	if apart <= 0 {
		return nil
	}
	earlier := map[rateKey]Traffic{}
	for _, r := range before {
		for e, x := range r.ByEncapsulation {
			earlier[rateKey{r.VRF, e}] = x
		}
	}
	rates := []Rate{} // its JSON is [] if it is empty
	for _, r := range after {
		for _, e := range r.used() {
			x := r.ByEncapsulation[e].since(earlier[rateKey{r.VRF, e}])
			rates = append(rates, rate(r, e, x, apart.Seconds()))
		}
	}
	slices.SortFunc(rates, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(b.TxBits+b.RxBits, a.TxBits+a.RxBits),
			cmp.Compare(a.VRF, b.VRF), cmp.Compare(a.Encapsulation, b.Encapsulation))
	})
	return rates
}

func rate(r VRFStats, encapsulation string, x Traffic, seconds float64) Rate {
	return Rate{
		VRF: r.VRF, Network: r.Network, Encapsulation: encapsulation,
		TxPackets: float64(x.TxPackets) / seconds, TxBits: 8 * float64(x.TxBytes) / seconds,
		RxPackets: float64(x.RxPackets) / seconds, RxBits: 8 * float64(x.RxBytes) / seconds,
	}
}

func (x Traffic) since(was Traffic) Traffic {
	if x.TxPackets < was.TxPackets || x.RxPackets < was.RxPackets || x.TxBytes < was.TxBytes || x.RxBytes < was.RxBytes {
		return x
	}
	return Traffic{x.TxPackets - was.TxPackets, x.TxBytes - was.TxBytes, x.RxPackets - was.RxPackets, x.RxBytes - was.RxBytes}
}

// RateTable shows rates in SI units.
func RateTable(rows []Rate) Table {
	t := Table{
		Empty: "no network has carried a packet yet",
		Columns: []Column{
			{Name: "Network", Least: 8},
			{Name: "Vrf", Right: true, Key: true, Leave: 1},
			{Name: "Encapsulation", Key: true},
			{Name: "TX p/s", Right: true},
			{Name: "TX bit/s", Right: true},
			{Name: "RX p/s", Right: true},
			{Name: "RX bit/s", Right: true},
		},
	}
	for _, r := range rows {
		t.Add(orNone(r.Network), number(r.VRF), r.Encapsulation, si(r.TxPackets), si(r.TxBits), si(r.RxPackets), si(r.RxBits))
	}
	return t
}

// si formats a quantity with three digits and an SI prefix: 999, 1.23 k.
func si(x float64) string {
	if x < 999.5 {
		return fmt.Sprintf("%.0f", x)
	}
	prefixes := "kMGTPE"
	for x /= 1000; x >= 999.5 && len(prefixes) > 1; x /= 1000 {
		prefixes = prefixes[1:]
	}
	decimals := 0
	switch {
	case x < 9.995:
		decimals = 2
	case x < 99.95:
		decimals = 1
	}
	return fmt.Sprintf("%.*f %c", decimals, x, prefixes[0])
}
