package agent

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/bgp"
	"windtunnel/vrouter/model"
)

// The paths on disk are those that the networks import now, although the neighbours have sent nothing since.
func TestPathsOfANewNetworkAreStored(t *testing.T) {
	self, neighbor := netip.MustParseAddr("127.0.39.1"), netip.MustParseAddr("127.0.39.2")
	listener := must.Get(net.Listen("tcp", netip.AddrPortFrom(self, 0).String()))(t)
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	must.Succeed(t, listener.Close())
	c := config.Config{Node: "a", StateDir: t.TempDir()}
	var stale []bgp.Path
	s := model.State{Nodes: []model.Node{{
		Name: "a", Underlay: []netip.Addr{self}, Encapsulations: model.DefaultEncapsulations,
		BGP: &model.BGP{ASN: 64512, RouterID: self, Port: port, Neighbors: []model.Neighbor{{Address: neighbor}}},
	}}}
	for i, name := range []string{"red", "blue"} {
		target := model.RouteTarget{1: 2, 3: 1, 7: byte(i + 1)}
		s.Networks = append(s.Networks, model.Network{Name: name, ID: uint32(i + 1), Import: []model.RouteTarget{target}})
		stale = append(stale, bgp.Path{
			Family: model.VPNv4, Kind: bgp.VPN, Prefix: netip.MustParsePrefix("10.9.0.0/16"), RD: model.RouteDistinguisher{3: 1, 7: byte(i)}, NextHop: neighbor, Neighbor: neighbor,
			Label: 100, Targets: []model.RouteTarget{target},
		})
	}
	b := must.Get(openBGP(c, slog.New(slog.DiscardHandler), follow.KeptOf(c)))(t)
	b.stale = stale
	b.start(s.Nodes[0], nil)
	defer b.close(false)
	must.Equal(t, "", b.problem())
	for i, network := range []string{"red", "blue"} {
		s.Ports = append(s.Ports, model.Port{Name: network, Network: network, Node: "a"})
		slice := s.Slice("a")
		b.external(slice, func(netip.Addr) string { return "" })
		b.save(true)
		must.Equal(t, i+1, len(must.Get(b.kept.LoadPaths())(t)))
	}
}
