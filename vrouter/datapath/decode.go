package datapath

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

func bitsOf(mask []byte) (n int) {
	for _, b := range mask {
		n += bits.OnesCount8(b)
	}
	return n
}

func decodeVif(v layout.Vif) fib.Vif {
	f := fib.Vif{
		ID: v.ID, VRF: v.VRF, Nexthop: v.Nexthop, MTU: v.MTU, Egress: v.Egress, MAC: v.MAC, RouterMAC: v.RouterMAC,
		L2: v.Flags&layout.VifL2 != 0, L3: v.Flags&layout.VifL3 != 0, Policy: v.Flags&layout.VifPolicy != 0, Router: v.Flags&layout.VifRouter != 0, Netkit: v.Flags&layout.VifNetkit != 0, Node: v.Flags&layout.VifNode != 0,
		Gateway6: v.Gateway6.Addr(),
	}
	if v.Gateway4 != 0 {
		f.Gateway4 = layout.Addr4(v.Gateway4)
	}
	for _, s := range v.Source4[:min(v.Sources4, layout.MaxSources)] {
		var m [4]byte
		binary.NativeEndian.PutUint32(m[:], s.Mask)
		f.Sources = append(f.Sources, netip.PrefixFrom(layout.Addr4(s.Address), bitsOf(m[:])))
	}
	for _, s := range v.Source6[:min(v.Sources6, layout.MaxSources)] {
		f.Sources = append(f.Sources, netip.PrefixFrom(netip.AddrFrom16(s.Address.Bytes), bitsOf(s.Mask.Bytes[:])))
	}
	return f
}

func decodeNexthop(v layout.Nexthop) fib.Nexthop {
	f := fib.Nexthop{
		Type: fib.NexthopType(v.Type), VRF: v.VRF, Vif: v.Vif, Oif: v.Oif, MTU: v.MTU, Remote: v.Remote, Fallback: v.Fallback,
		DMAC: v.DMAC, SMAC: v.SMAC, Port: layout.Network16(v.Port), Encapsulation: layout.Encapsulations[min(int(v.Encap), len(layout.Encapsulations)-1)],
		Multicast: v.Flags&layout.NexthopMulticast != 0, DF: v.Flags&layout.NexthopDF != 0, Peer: v.Flags&layout.NexthopPeer != 0, Cut: v.Flags&layout.NexthopCut != 0,
	}
	for _, p := range v.Path[:min(v.Paths, layout.MaxPaths)] {
		f.Paths = append(f.Paths, fib.Path{Source: p.Source.Addr(), Destination: p.Destination.Addr(), Gateway: p.Gateway.Addr(), Oif: p.Oif, Locators: p.Locators})
	}
	return f
}

func decodePolicy(id uint32, v *layout.Policy, more map[layout.RulesKey]layout.RuleChunk) fib.Policy {
	f := fib.Policy{AllowIn: v.AllowIn != 0, AllowOut: v.AllowOut != 0}
	chunk := v.First
	for i := range int(min(v.Rules, layout.MaxRules)) {
		if n := i / layout.ChunkRules; n > 0 && i%layout.ChunkRules == 0 {
			chunk = more[layout.RulesKey{Vif: id, Generation: v.Generation, Chunk: uint32(n)}]
		}
		f.Rules = append(f.Rules, decodeRule(chunk.Rule[i%layout.ChunkRules]))
	}
	return f
}

func decodeRule(v layout.Rule) fib.Rule {
	r := fib.Rule{
		Egress: v.Flags&layout.RuleEgress != 0, Allow: v.Flags&layout.RuleAllow != 0, Log: v.Flags&layout.RuleLog != 0,
		Protocol: v.Protocol, FirstPort: v.FirstPort, LastPort: v.LastPort,
	}
	switch n := bitsOf(v.Mask.Bytes[:]); v.Family {
	case 4:
		r.Remote = netip.PrefixFrom(netip.AddrFrom16(v.Remote.Bytes).Unmap(), n-96)
	case 6:
		r.Remote = netip.PrefixFrom(netip.AddrFrom16(v.Remote.Bytes), n)
	}
	return r
}
