package datapath

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/netip"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Values of the C enums and flags in bpf/types.h.
const (
	nhMulticast = 1 << 0
	nhDF        = 1 << 1
	nhPeer      = 1 << 2
	nhPolicy    = 1 << 3
	nhForeign   = 1 << 4
	nhChecksum  = 1 << 5
	nhCut       = 1 << 6

	routeMAC = 1 << 0

	vifL2     = 1 << 0
	vifL3     = 1 << 1
	vifPolicy = 1 << 2
	vifRouter = 1 << 4
	vifNetkit = 1 << 5
	vifNode   = 1 << 6

	setStrict   = 1 << 0
	setOneEncap = 1 << 1
	setMPLSUDP  = 1 << 2
	setMPLSGRE  = 1 << 3

	ruleEgress = 1 << 0
	ruleAllow  = 1 << 1
	ruleLog    = 1 << 2

	// In the padding of an array's entry: it tells an entry that is all zero,
	// such as a discarding nexthop, from none.
	inUse = 1

	maxPaths   = 4
	maxMembers = 128
	maxRules   = 255
	chunkRules = 64
	maxLocal   = 4
	maxSources = 4
	maxVRFs    = 4096
)

var encapNumbers = map[model.Encapsulation]uint8{"": 0, model.MPLSoGRE: 1, model.MPLSoUDP: 2, model.VXLAN: 3, model.Direct: 4, model.Translated: 5}
var encapNames = map[uint8]model.Encapsulation{0: "", 1: model.MPLSoGRE, 2: model.MPLSoUDP, 3: model.VXLAN, 4: model.Direct, 5: model.Translated}

func addressOf(a netip.Addr) (v vrouterAddress) {
	if a.IsValid() {
		v.Bytes = a.As16()
	}
	return v
}

func addrOf(a vrouterAddress) netip.Addr {
	if a == (vrouterAddress{}) {
		return netip.Addr{}
	}
	return netip.AddrFrom16(a.Bytes).Unmap()
}

// be32 is an IPv4 address as the maps hold it: network order in memory.
func be32(a netip.Addr) uint32 {
	if !a.IsValid() || !a.Is4() {
		return 0
	}
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}

func addr4(v uint32) netip.Addr {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

// netOrder32 is an integer as the maps hold it where they want network order.
func netOrder32(v uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return binary.NativeEndian.Uint32(b[:])
}

func netOrder16(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

func maskOf(bits int) (m [16]byte) {
	for i := range bits {
		m[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

func encodeSettings(s fib.Settings) (v vrouterNodeSettings, err error) {
	v.Flags = flagIf[uint32](s.Strict, setStrict) | flagIf[uint32](s.OneEncapsulation, setOneEncap) | flagIf[uint32](s.MPLSoUDP, setMPLSUDP) | flagIf[uint32](s.MPLSoGRE, setMPLSGRE)
	v.VxlanPort, v.LastLabel = netOrder16(s.VXLANPort), netOrder16(uint16(s.LastLabel))
	if s.Locator.IsValid() {
		b := s.Locator.Addr().As16()
		v.Locator = [2]uint32{binary.NativeEndian.Uint32(b[:]), binary.NativeEndian.Uint32(b[4:])}
		if s.Locator.Bits() == model.LongLocatorBits {
			v.LocatorEnd, v.LocatorMask = binary.NativeEndian.Uint16(b[8:]), 0xffff
		}
	}
	n4, n6 := 0, 0
	for _, a := range s.Local {
		switch {
		case a.Is4() && n4 < maxLocal:
			v.Local4[n4], n4 = be32(a), n4+1
		case a.Is6() && n6 < maxLocal:
			v.Local6[n6], n6 = addressOf(a), n6+1
		default:
			return v, fmt.Errorf("underlay address %s: a node has at most %d of a family", a, maxLocal)
		}
	}
	return v, nil
}

func encodeVif(f fib.Vif) (v vrouterVif, err error) {
	v.Id, v.Vrf, v.Nexthop, v.Mtu, v.Egress = f.ID, f.VRF, f.Nexthop, f.MTU, f.Egress
	v.Mac, v.RouterMac = f.MAC, f.RouterMAC
	v.Gateway4, v.Gateway6 = be32(f.Gateway4), addressOf(f.Gateway6)
	v.Flags = flagIf[uint16](f.L2, vifL2) | flagIf[uint16](f.L3, vifL3) | flagIf[uint16](f.Policy, vifPolicy) | flagIf[uint16](f.Router, vifRouter) | flagIf[uint16](f.Netkit, vifNetkit) | flagIf[uint16](f.Node, vifNode)
	for _, p := range f.Sources {
		switch {
		case p.Addr().Is4() && v.Sources4 < maxSources:
			m := maskOf(p.Bits())
			s := &v.Source4[v.Sources4]
			s.Address, s.Mask = be32(p.Masked().Addr()), binary.NativeEndian.Uint32(m[:4])
			v.Sources4++
		case p.Addr().Is6() && v.Sources6 < maxSources:
			s := &v.Source6[v.Sources6]
			s.Address, s.Mask = addressOf(p.Masked().Addr()), vrouterAddress{Bytes: maskOf(p.Bits())}
			v.Sources6++
		default:
			return v, fmt.Errorf("port %s: source %s: a port has at most %d source prefixes of a family", f.Name, p, maxSources)
		}
	}
	return v, nil
}

// flagIf returns flag if on, else 0.
func flagIf[F uint8 | uint16 | uint32](on bool, flag F) F {
	if on {
		return flag
	}
	return 0
}

func encodeVRF(f fib.VRF) vrouterVrf {
	v := vrouterVrf{Pad: inUse, Flood: f.Flood, Flags: flagIf[uint16](f.L2, vifL2) | flagIf[uint16](f.L3, vifL3), RouterMac: f.RouterMAC}
	if f.Prefix6.IsValid() {
		b := f.Prefix6.Addr().As16()
		for i := range v.Prefix6 {
			v.Prefix6[i] = binary.NativeEndian.Uint32(b[4*i:])
		}
	}
	return v
}

func encodeNexthop(id uint32, f fib.Nexthop) (v vrouterNexthop, err error) {
	v.Pad = inUse
	v.Type, v.Vrf, v.Vif, v.Oif, v.Mtu, v.Remote = uint8(f.Type), f.VRF, f.Vif, f.Oif, f.MTU, f.Remote
	v.Fallback = f.Fallback
	v.Dmac, v.Smac, v.Port = f.DMAC, f.SMAC, netOrder16(f.Port)
	var known bool
	if v.Encap, known = encapNumbers[f.Encapsulation]; !known {
		return v, fmt.Errorf("nexthop %d (%s): unknown encapsulation %q", id, f.Name, f.Encapsulation)
	}
	v.Flags = flagIf[uint8](f.Multicast, nhMulticast) | flagIf[uint8](f.DF, nhDF) | flagIf[uint8](f.Peer, nhPeer) | flagIf[uint8](f.Foreign, nhForeign)
	if len(f.Members) > maxMembers {
		return v, fmt.Errorf("nexthop %d (%s): %d members, at most %d", id, f.Name, len(f.Members), maxMembers)
	}
	v.Members = uint16(len(f.Members))
	if len(f.Paths) > maxPaths {
		return v, fmt.Errorf("nexthop %d (%s): %d paths, at most %d", id, f.Name, len(f.Paths), maxPaths)
	}
	for _, p := range f.Paths {
		v.Family = family(p.Destination)
		if p.Oif == 0 {
			continue // down: its flows go by the others
		}
		v.Path[v.Paths] = vrouterPath{
			Source: addressOf(p.Source), Destination: addressOf(p.Destination), Gateway: addressOf(p.Gateway),
			Oif: p.Oif, GatewayFamily: family(p.Gateway), Locators: uint8(p.Locators),
		}
		v.Paths++
	}
	return v, nil
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return 4
	}
	return 6
}

func encodeRoute(f fib.Route) vrouterRoute {
	v := vrouterRoute{Nexthop: f.Nexthop, Label: f.Label, Mac: f.MAC}
	if !f.MAC.IsZero() {
		v.Flags |= routeMAC
	}
	return v
}

func encodeTarget(f fib.Target) vrouterTarget {
	return vrouterTarget{Nexthop: f.Nexthop, Ethernet: flagIf[uint8](f.Ethernet, 1), Used: inUse}
}

func encodeRemote(a netip.Addr, f fib.Remote) (v vrouterRemote, err error) {
	v.Nexthop, v.Ethernet, v.Id, v.Locators = f.Nexthop, f.Ethernet, f.ID, uint8(f.Locators)
	for _, e := range f.Encapsulations {
		n, known := encapNumbers[e]
		if !known {
			return v, fmt.Errorf("remote %s: unknown encapsulation %q", a, e)
		}
		v.Encaps |= 1 << n
	}
	return v, nil
}

func encodeSender(f fib.SenderKey) vrouterSenderKey {
	v := vrouterSenderKey{Prefixlen: 64, Remote: netOrder32(f.Remote), Vrf: netOrder16(uint16(f.VRF))}
	if !f.Prefix.IsValid() {
		return v
	}
	a := f.Prefix.Masked().Addr()
	v.Family, v.Address = family(a), addressOf(a)
	v.Prefixlen += uint32(f.Prefix.Bits())
	if a.Is4() {
		v.Prefixlen += 96
	}
	return v
}

// encodePolicy returns a policy with its first rules, and its other rules by their keys.
func encodePolicy(id uint32, f fib.Policy) (v vrouterPolicy, more map[vrouterRulesKey]vrouterRuleChunk, err error) {
	if len(f.Rules) > maxRules {
		return v, nil, fmt.Errorf("policy of vif %d: %d rules, at most %d are allowed; merge some", id, len(f.Rules), maxRules)
	}
	v.AllowIn, v.AllowOut, v.Rules = flagIf[uint8](f.AllowIn, 1), flagIf[uint8](f.AllowOut, 1), uint16(len(f.Rules))
	chunks := make([]vrouterRuleChunk, max(1, (len(f.Rules)+chunkRules-1)/chunkRules))
	for i, r := range f.Rules {
		chunks[i/chunkRules].Rule[i%chunkRules] = encodeRule(r)
	}
	v.First = chunks[0]
	sum := crc32.NewIEEE()
	for _, part := range []any{&v, chunks[1:]} {
		if err := binary.Write(sum, binary.LittleEndian, part); err != nil {
			return v, nil, fmt.Errorf("policy of vif %d: %w", id, err)
		}
	}
	v.Generation = sum.Sum32()
	more = map[vrouterRulesKey]vrouterRuleChunk{}
	for i, c := range chunks[1:] {
		more[vrouterRulesKey{Vif: id, Generation: v.Generation, Chunk: uint32(i + 1)}] = c
	}
	return v, more, nil
}

func encodeRule(r fib.Rule) vrouterRule {
	v := vrouterRule{
		FirstPort: r.FirstPort, LastPort: r.LastPort, Protocol: r.Protocol,
		Flags: flagIf[uint8](r.Egress, ruleEgress) | flagIf[uint8](r.Allow, ruleAllow) | flagIf[uint8](r.Log, ruleLog),
	}
	if !r.Remote.IsValid() {
		return v
	}
	a := r.Remote.Masked().Addr()
	v.Family, v.Remote = family(a), addressOf(a)
	bits := r.Remote.Bits()
	if a.Is4() {
		bits += 96
	}
	v.Mask.Bytes = maskOf(bits)
	return v
}
