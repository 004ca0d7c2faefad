package datapath

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

func maskOf(bits int) (m [16]byte) {
	for i := range bits {
		m[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

func encodeVif(f fib.Vif) (v layout.Vif, err error) {
	v.ID, v.VRF, v.Nexthop, v.MTU, v.Egress = f.ID, f.VRF, f.Nexthop, f.MTU, f.Egress
	v.MAC, v.RouterMAC = f.MAC, f.RouterMAC
	v.Gateway4, v.Gateway6 = layout.Network4(f.Gateway4), layout.AddressOf(f.Gateway6)
	v.Flags = layout.If[uint16](f.L2, layout.VifL2) | layout.If[uint16](f.L3, layout.VifL3) | layout.If[uint16](f.Policy, layout.VifPolicy) | layout.If[uint16](f.Router, layout.VifRouter) | layout.If[uint16](f.Netkit, layout.VifNetkit) | layout.If[uint16](f.Node, layout.VifNode)
	for _, p := range f.Sources {
		switch {
		case p.Addr().Is4() && v.Sources4 < layout.MaxSources:
			m := maskOf(p.Bits())
			s := &v.Source4[v.Sources4]
			s.Address, s.Mask = layout.Network4(p.Masked().Addr()), binary.NativeEndian.Uint32(m[:4])
			v.Sources4++
		case p.Addr().Is6() && v.Sources6 < layout.MaxSources:
			s := &v.Source6[v.Sources6]
			s.Address, s.Mask = layout.AddressOf(p.Masked().Addr()), layout.Address{Bytes: maskOf(p.Bits())}
			v.Sources6++
		default:
			return v, fmt.Errorf("port %s: source %s: a port has at most %d source prefixes of a family", f.Name, p, layout.MaxSources)
		}
	}
	return v, nil
}

func encodeNexthop(id uint32, f fib.Nexthop) (v layout.Nexthop, err error) {
	v.Type, v.VRF, v.Vif, v.Oif, v.MTU, v.Remote = uint8(f.Type), f.VRF, f.Vif, f.Oif, f.MTU, f.Remote
	v.Fallback = f.Fallback
	v.DMAC, v.SMAC, v.Port = f.DMAC, f.SMAC, layout.Network16(f.Port)
	v.Encap = layout.Number(f.Encapsulation)
	v.Flags = layout.If[uint8](f.Multicast, layout.NexthopMulticast) | layout.If[uint8](f.DF, layout.NexthopDF) | layout.If[uint8](f.Peer, layout.NexthopPeer) | layout.If[uint8](f.Cut, layout.NexthopCut)
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
	chunks := make([]layout.RuleChunk, max(1, (len(f.Rules)+layout.ChunkRules-1)/layout.ChunkRules))
	for i, r := range f.Rules {
		chunks[i/layout.ChunkRules].Rule[i%layout.ChunkRules] = encodeRule(r)
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

func encodeRule(r fib.Rule) layout.Rule {
	v := layout.Rule{
		FirstPort: r.FirstPort, LastPort: r.LastPort, Protocol: r.Protocol,
		Flags: layout.If[uint8](r.Egress, layout.RuleEgress) | layout.If[uint8](r.Allow, layout.RuleAllow) | layout.If[uint8](r.Log, layout.RuleLog),
	}
	if !r.Remote.IsValid() {
		return v
	}
	a := r.Remote.Masked().Addr()
	v.Family, v.Remote = layout.Family(a), layout.AddressOf(a)
	bits := r.Remote.Bits()
	if a.Is4() {
		bits += 96
	}
	v.Mask.Bytes = maskOf(bits)
	return v
}
