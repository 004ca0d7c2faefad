package datapath

import (
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

func decodeNexthop(v layout.Nexthop) fib.Nexthop {
	f := fib.Nexthop{
		Type: fib.NexthopType(v.Type), VRF: v.VRF, Vif: v.Vif, Oif: v.Oif, MTU: v.MTU, Remote: v.Remote, Fallback: v.Fallback,
		DMAC: v.DMAC, SMAC: v.SMAC, Port: layout.Network16(v.Port), Encapsulation: layout.Encapsulations[min(int(v.Encap), len(layout.Encapsulations)-1)],
		Multicast: v.Flags&layout.NexthopMulticast != 0, DF: v.Flags&layout.NexthopDF != 0, Peer: v.Flags&layout.NexthopPeer != 0, Cut: v.Flags&layout.NexthopCut != 0, NAT: v.Flags&layout.NexthopNAT != 0,
	}
	for _, p := range v.Path[:min(v.Paths, layout.MaxPaths)] {
		f.Paths = append(f.Paths, fib.Path{Source: p.Source.Addr(), Destination: p.Destination.Addr(), Gateway: p.Gateway.Addr(), Oif: p.Oif, Locators: p.Locators})
	}
	return f
}

func decodePolicy(id uint32, v *layout.Policy, more map[layout.RulesKey]layout.RuleChunk) fib.Policy {
	f := fib.Policy{AllowIn: v.AllowIn != 0, AllowOut: v.AllowOut != 0, Group: fib.Group{Number: v.Group, In: v.ClosedIn != 0, Out: v.ClosedOut != 0}, Revision: v.Revision}
	chunk := v.First
	for i := range int(min(v.Rules, layout.MaxRules)) {
		if n := i / layout.ChunkRules; n > 0 && i%layout.ChunkRules == 0 {
			chunk = more[layout.RulesKey{Vif: id, Generation: v.Generation, Chunk: uint32(n)}]
		}
		f.Rules = append(f.Rules, chunk.Rule[i%layout.ChunkRules])
	}
	return f
}
