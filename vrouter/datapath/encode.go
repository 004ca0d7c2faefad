package datapath

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

func encodeNexthop(id uint32, f fib.Nexthop) (v layout.Nexthop, err error) {
	v.Type, v.VRF, v.Vif, v.Oif, v.MTU, v.Remote = uint8(f.Type), f.VRF, f.Vif, f.Oif, f.MTU, f.Remote
	v.Fallback = f.Fallback
	v.DMAC, v.SMAC, v.Port = f.DMAC, f.SMAC, layout.Network16(f.Port)
	v.Encap = layout.Number(f.Encapsulation)
	v.Flags = layout.If[uint8](f.Multicast, layout.NexthopMulticast) | layout.If[uint8](f.DF, layout.NexthopDF) | layout.If[uint8](f.Peer, layout.NexthopPeer) | layout.If[uint8](f.Cut, layout.NexthopCut) | layout.If[uint8](f.NAT, layout.NexthopNAT)
	if len(f.Members) > layout.MaxMembers {
		return v, fmt.Errorf("nexthop %d (%s): %d members, at most %d", id, f.Name, len(f.Members), layout.MaxMembers)
	}
	v.Members = uint16(len(f.Members))
	if len(f.Paths) > layout.MaxPaths {
		return v, fmt.Errorf("nexthop %d (%s): %d paths, at most %d", id, f.Name, len(f.Paths), layout.MaxPaths)
	}
	for _, p := range f.Paths {
		v.Family = layout.Family(p.Destination)
		if p.Oif == 0 {
			continue // down: its flows go by the others
		}
		v.Path[v.Paths] = layout.Path{
			Source: layout.AddressOf(p.Source), Destination: layout.AddressOf(p.Destination), Gateway: layout.AddressOf(p.Gateway),
			Oif: p.Oif, GatewayFamily: layout.Family(p.Gateway), Locators: p.Locators,
		}
		v.Paths++
	}
	return v, nil
}

// encodePolicy returns a policy with its first rules, and its other rules by their keys.
func encodePolicy(id uint32, f fib.Policy) (v layout.Policy, more map[layout.RulesKey]layout.RuleChunk, err error) {
	if len(f.Rules) > layout.MaxRules {
		return v, nil, fmt.Errorf("policy of vif %d: %d rules, at most %d are allowed; merge some", id, len(f.Rules), layout.MaxRules)
	}
	v.AllowIn, v.AllowOut, v.Rules = layout.If[uint8](f.AllowIn, 1), layout.If[uint8](f.AllowOut, 1), uint16(len(f.Rules))
	v.Group, v.Revision, v.ClosedIn, v.ClosedOut = f.Group.Number, f.Revision, layout.If[uint8](f.Group.In, 1), layout.If[uint8](f.Group.Out, 1)
	chunks := make([]layout.RuleChunk, max(1, (len(f.Rules)+layout.ChunkRules-1)/layout.ChunkRules))
	for i, r := range f.Rules {
		chunks[i/layout.ChunkRules].Rule[i%layout.ChunkRules] = r
	}
	v.First = chunks[0]
	sum := crc32.NewIEEE()
	for _, part := range []any{&v, chunks[1:]} {
		if err := binary.Write(sum, binary.LittleEndian, part); err != nil {
			return v, nil, fmt.Errorf("policy of vif %d: %w", id, err)
		}
	}
	v.Generation = sum.Sum32()
	more = map[layout.RulesKey]layout.RuleChunk{}
	for i, c := range chunks[1:] {
		more[layout.RulesKey{Vif: id, Generation: v.Generation, Chunk: uint32(i + 1)}] = c
	}
	return v, more, nil
}
