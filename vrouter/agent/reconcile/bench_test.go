package reconcile

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// BenchmarkOnePortBesideMany measures the time in which a node applies one more port on
// another node, beside 100,000 ports in network red: in that network, and in network blue. It
// also measures a check for drift.
func BenchmarkOnePortBesideMany(b *testing.B) {
	const ports = 100_000
	w := newWriter(b, 2*ports)
	w.publish = func() {}
	defer w.Close()
	s := model.State{Nodes: []model.Node{
		{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.1")}}, {Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.2")}},
	}}
	for i, name := range []string{"red", "blue"} {
		s.Networks = append(s.Networks, model.Network{Name: name, ID: uint32(1 + i), Subnets: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(10 + i)}), 8)}})
	}
	port := func(network string, i int, node string) model.Port {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], 10<<24+2+uint32(i))
		if network == "blue" {
			a[0]++
		}
		return model.Port{Name: fmt.Sprintf("%s%06d", network, i), Network: network, Node: node, MAC: model.MAC{2, 0, a[0], a[1], a[2], a[3]}, IPs: []netip.Addr{netip.AddrFrom4(a)}}
	}
	for i := range ports {
		s.Ports = append(s.Ports, port("red", i, "b"))
	}
	for _, network := range []string{"red", "blue"} {
		s.Ports = append(s.Ports, port(network, ports, "a"))
	}
	s.Ports = append(s.Ports, port("blue", 0, "b"))
	slice := s.Slice("a")
	w.Want = nil
	must.Succeed(b, w.Adopt(NewDesired("a", slice, &fib.IDs{}, nil)))
	n := ports
	for _, network := range []string{"red", "blue"} {
		b.Run(network, func(b *testing.B) {
			for b.Loop() {
				n++
				p := port(network, n, "b")
				slice.All = slices.Clone(slice.All)
				c := p.Compact(&model.Place{Network: p.Network, Node: p.Node})
				at, _ := slices.BinarySearchFunc(slice.All, &c, model.ComparePorts)
				slice.All = slices.Insert(slice.All, at, &c)
				must.Succeed(b, w.Adopt(NewDesired("a", slice, w.IDs, w.Want)))
			}
			if got := w.Last.RouteCount(); len(w.Last.Failures) > 0 || got < n {
				b.Fatalf("%d routes, want more than %d; problems: %v", got, n, w.Last.Failures)
			}
		})
	}
	b.Run("drift", func(b *testing.B) {
		for b.Loop() {
			w.Pass(Looking)
			if w.Compared(<-w.Comparison.Done); len(w.Last.Failures) > 0 || w.Repairs > 0 {
				b.Fatalf("problems: %v; %d repairs", w.Last.Failures, w.Repairs)
			}
		}
	})
}
