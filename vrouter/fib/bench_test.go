package fib

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// fleet has ports of one network spread over nodes.
func fleet(nodes, ports int, forwarding model.Forwarding) model.State {
	s := model.State{Networks: []model.Network{{Name: "red", ID: 7, Subnets: []netip.Prefix{prefix("10.0.0.0/8")}, Forwarding: forwarding}}}
	for i := range nodes {
		s.Nodes = append(s.Nodes, model.Node{Name: fmt.Sprint("node", i), Underlay: []netip.Addr{netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}).Next()}})
	}
	for i := range ports {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], 10<<24+2+uint32(i))
		s.Ports = append(s.Ports, model.Port{
			Name: fmt.Sprint("port", i), Network: "red", Node: fmt.Sprint("node", i%nodes), MAC: model.MAC{2, 0, a[0], a[1], a[2], a[3]}, IPs: []netip.Addr{netip.AddrFrom4(a)},
		})
	}
	return s.WithDefaults()
}

// BenchmarkCompile measures the work of one node for each change in a large fleet:
// it validates the state and compiles the tables.
func BenchmarkCompile(b *testing.B) {
	const ports = 100_000
	for _, c := range []struct {
		forwarding model.Forwarding
		bridge     int
	}{{model.L3, 0}, {model.L2L3, ports}} {
		b.Run(fmt.Sprintf("routes=%d/nodes=50/%s", ports, c.forwarding), func(b *testing.B) {
			s := fleet(50, ports, c.forwarding)
			if c.forwarding == model.L2L3 { // few enough to flood to
				for i := range s.Ports {
					s.Ports[i].Node = fmt.Sprint("node", 1+i%49)
				}
				for i := range 40 {
					s.Ports[i].Node = "node0"
				}
			}
			facts, ids := factsFor(s, "node0", nil), &IDs{}
			b.ReportAllocs()
			for b.Loop() {
				t, _, err := compile(s, "node0", facts, ids)
				must.Succeed(b, err)
				if len(t.Routes) != ports+1 || len(t.Bridge) != c.bridge {
					b.Fatalf("%d routes and %d bridge entries, want %d and %d", len(t.Routes), len(t.Bridge), ports+1, c.bridge)
				}
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	s := fleet(50, 100_000, model.L3)
	b.ReportAllocs()
	for b.Loop() {
		must.Succeed(b, s.Validate())
	}
}
