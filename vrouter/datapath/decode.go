package datapath

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

func decodeSettings(v vrouterNodeSettings) fib.Settings {
	s := fib.Settings{
		Strict: v.Flags&setStrict != 0, OneEncapsulation: v.Flags&setOneEncap != 0, MPLSoUDP: v.Flags&setMPLSUDP != 0, MPLSoGRE: v.Flags&setMPLSGRE != 0, VXLANPort: netOrder16(v.VxlanPort), LastLabel: uint32(netOrder16(v.LastLabel)),
	}
	if v.Locator != [2]uint32{} {
		var b [16]byte
		binary.NativeEndian.PutUint32(b[:], v.Locator[0])
		binary.NativeEndian.PutUint32(b[4:], v.Locator[1])
		binary.NativeEndian.PutUint16(b[8:], v.LocatorEnd)
		bits := model.LocatorBits
		if v.LocatorMask != 0 {
			bits = model.LongLocatorBits
		}
		s.Locator = netip.PrefixFrom(netip.AddrFrom16(b), bits)
	}
	for _, a := range v.Local4 {
		if a != 0 {
			s.Local = append(s.Local, addr4(a))
		}
	}
	for _, a := range v.Local6 {
		if a := addrOf(a); a.IsValid() {
			s.Local = append(s.Local, a)
		}
	}
	return s
}

func bitsOf(mask []byte) (n int) {
	for _, b := range mask {
		n += bits.OnesCount8(b)
	}
	return n
}

func decodeVif(v vrouterVif) fib.Vif {
	f := fib.Vif{
		ID: v.Id, VRF: v.Vrf, Nexthop: v.Nexthop, MTU: v.Mtu, Egress: v.Egress, MAC: v.Mac, RouterMAC: v.RouterMac,
		L2: v.Flags&vifL2 != 0, L3: v.Flags&vifL3 != 0, Policy: v.Flags&vifPolicy != 0, Router: v.Flags&vifRouter != 0, Netkit: v.Flags&vifNetkit != 0, Node: v.Flags&vifNode != 0,
		Gateway6: addrOf(v.Gateway6),
	}
	if v.Gateway4 != 0 {
		f.Gateway4 = addr4(v.Gateway4)
	}
	for _, s := range v.Source4[:min(v.Sources4, maxSources)] {
		var m [4]byte
		binary.NativeEndian.PutUint32(m[:], s.Mask)
		f.Sources = append(f.Sources, netip.PrefixFrom(addr4(s.Address), bitsOf(m[:])))
	}
	for _, s := range v.Source6[:min(v.Sources6, maxSources)] {
		f.Sources = append(f.Sources, netip.PrefixFrom(netip.AddrFrom16(s.Address.Bytes), bitsOf(s.Mask.Bytes[:])))
	}
	return f
}

func decodeVRF(v vrouterVrf) fib.VRF {
	f := fib.VRF{Flood: v.Flood, L2: v.Flags&vifL2 != 0, L3: v.Flags&vifL3 != 0, RouterMAC: v.RouterMac}
	if v.Prefix6 != [3]uint32{} {
		var b [16]byte
		for i, word := range v.Prefix6 {
			binary.NativeEndian.PutUint32(b[4*i:], word)
		}
		f.Prefix6 = netip.PrefixFrom(netip.AddrFrom16(b), 96)
	}
	return f
}

func decodeNexthop(v vrouterNexthop) fib.Nexthop {
	f := fib.Nexthop{
		Type: fib.NexthopType(v.Type), VRF: v.Vrf, Vif: v.Vif, Oif: v.Oif, MTU: v.Mtu, Remote: v.Remote, Fallback: v.Fallback,
		DMAC: v.Dmac, SMAC: v.Smac, Port: netOrder16(v.Port), Encapsulation: encapNames[v.Encap],
		Multicast: v.Flags&nhMulticast != 0, DF: v.Flags&nhDF != 0, Peer: v.Flags&nhPeer != 0, Foreign: v.Flags&nhForeign != 0,
	}
	for _, p := range v.Path[:min(v.Paths, maxPaths)] {
		f.Paths = append(f.Paths, fib.Path{Source: addrOf(p.Source), Destination: addrOf(p.Destination), Gateway: addrOf(p.Gateway), Oif: p.Oif, Locators: fib.Locators(p.Locators)})
	}
	return f
}

func decodeRoute(v vrouterRoute) fib.Route {
	f := fib.Route{Nexthop: v.Nexthop, Label: v.Label}
	if v.Flags&routeMAC != 0 {
		f.MAC = v.Mac
	}
	return f
}

func decodeTarget(v vrouterTarget) fib.Target {
	return fib.Target{Nexthop: v.Nexthop, Ethernet: v.Ethernet != 0}
}

func decodeRemote(v vrouterRemote) fib.Remote {
	f := fib.Remote{ID: v.Id, Nexthop: v.Nexthop, Ethernet: v.Ethernet, Locators: fib.Locators(v.Locators)}
	for _, e := range append(slices.Clone(model.DefaultEncapsulations), model.Translated) {
		if v.Encaps>>encapNumbers[e]&1 != 0 {
			f.Encapsulations = append(f.Encapsulations, e)
		}
	}
	return f
}

func decodeSender(v vrouterSenderKey) fib.SenderKey {
	f := fib.SenderKey{VRF: uint32(netOrder16(v.Vrf)), Remote: netOrder32(v.Remote)}
	bits := int(v.Prefixlen) - 64
	switch a := netip.AddrFrom16(v.Address.Bytes); v.Family {
	case 4:
		f.Prefix = netip.PrefixFrom(a.Unmap(), bits-96)
	case 6:
		f.Prefix = netip.PrefixFrom(a, bits)
	}
	return f
}

func decodePolicy(id uint32, v *vrouterPolicy, more map[vrouterRulesKey]vrouterRuleChunk) fib.Policy {
	f := fib.Policy{AllowIn: v.AllowIn != 0, AllowOut: v.AllowOut != 0}
	chunk := v.First
	for i := range int(min(v.Rules, maxRules)) {
		if n := i / chunkRules; n > 0 && i%chunkRules == 0 {
			chunk = more[vrouterRulesKey{Vif: id, Generation: v.Generation, Chunk: uint32(n)}]
		}
		f.Rules = append(f.Rules, decodeRule(chunk.Rule[i%chunkRules]))
	}
	return f
}

func decodeRule(v vrouterRule) fib.Rule {
	r := fib.Rule{
		Egress: v.Flags&ruleEgress != 0, Allow: v.Flags&ruleAllow != 0, Log: v.Flags&ruleLog != 0,
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
