package layout

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// Nexthop.Type: enum nexthop_type. The type decides which fields of a nexthop are used.
const (
	Discard uint8 = iota
	Receive
	Encap
	Tunnel
	Composite
	VRFTranslate
	L2Receive
)

// Flags of structs. A test compares them with types.h.
const (
	NexthopMulticast = 1 << 0
	NexthopDF        = 1 << 1
	NexthopPeer      = 1 << 2
	NexthopPolicy    = 1 << 3
	NexthopServices  = 1 << 4
	NexthopChecksum  = 1 << 5
	NexthopCut       = 1 << 6
	NexthopNAT       = 1 << 7

	RouteMAC      = 1 << 0
	RouteFloating = 1 << 1

	VifL2       = 1 << 0
	VifL3       = 1 << 1
	VifPolicy   = 1 << 2
	VifAgent    = 1 << 3
	VifRouter   = 1 << 4
	VifNetkit   = 1 << 5
	VifNode     = 1 << 6
	VifServices = 1 << 7
	VifOpen     = 1 << 8
	VifFloating = 1 << 9

	ServiceDrop = 1 << 0

	SettingsStrict           = 1 << 0
	SettingsOneEncapsulation = 1 << 1
	SettingsMPLSUDP          = 1 << 2
	SettingsMPLSGRE          = 1 << 3

	RuleEgress = 1 << 0
	RuleAllow  = 1 << 1
	RuleLog    = 1 << 2
	RuleAlways = 1 << 3
)

// Sizes of structs.
const (
	MaxPaths   = 4                // of a tunnel
	MaxMembers = 128              // of a composite
	MaxRules   = model.MaxRules   // of a policy
	ChunkRules = 64               // of a policy, in one entry
	MaxLocal   = 4                // underlay addresses of a node, of a family
	MaxSources = model.MaxSources // source prefixes of a vif, of a family
	MaxVRFs    = 4096
)

// If returns a flag if on is true, else 0.
func If[F ~uint8 | ~uint16 | ~uint32](on bool, flag F) F {
	if on {
		return flag
	}
	return 0
}

// Encapsulations are the names of enum encapsulation, by number. Number 0 has no name.
var Encapsulations = [...]model.Encapsulation{"", model.MPLSoGRE, model.MPLSoUDP, model.VXLAN, model.Direct, model.Translated}

// Number returns the number of an encapsulation.
func Number(e model.Encapsulation) uint8 { return uint8(slices.Index(Encapsulations[:], e)) }

// Accepts reports whether the remote may use an encapsulation.
func (r Remote) Accepts(e model.Encapsulation) bool { return r.Encaps>>Number(e)&1 != 0 }

// Bits returns the value of Remote.Encaps for encapsulations.
func Bits(all ...model.Encapsulation) (bits uint8) {
	for _, e := range all {
		bits |= 1 << Number(e)
	}
	return bits
}

// PathOf returns a path through the device with an ifindex. gateway is the next hop; on the
// destination's link it is the destination.
func PathOf(source, destination, gateway netip.Addr, oif uint32) Path {
	return Path{Source: AddressOf(source), Destination: AddressOf(destination), Gateway: AddressOf(gateway), GatewayFamily: family(gateway), Oif: oif}
}

// SetPaths sets the paths of a tunnel: at most MaxPaths, all of one family.
func (n *Nexthop) SetPaths(all ...Path) {
	n.Path = [MaxPaths]Path{}
	n.Paths = uint8(copy(n.Path[:], all))
	n.Family = 0
	if len(all) > 0 {
		n.Family = family(all[0].Destination.Addr())
	}
}

// Ways returns the paths of a tunnel.
func (n *Nexthop) Ways() []Path { return n.Path[:min(n.Paths, MaxPaths)] }

// Encapsulation returns the encapsulation of a tunnel.
func (n Nexthop) Encapsulation() model.Encapsulation {
	return Encapsulations[min(int(n.Encap), len(Encapsulations)-1)]
}

// SetLocator sets the locator of this node.
func (s *NodeSettings) SetLocator(p netip.Prefix) {
	w := Words96(p.Addr())
	s.Locator = [2]uint32{w[0], w[1]}
	if p.Bits() == model.LongLocatorBits {
		s.LocatorEnd, s.LocatorMask = uint16(w[2]), 0xffff
	}
}

// SetLocal sets the underlay addresses of this node. It returns an error if there are too many.
func (s *NodeSettings) SetLocal(all []netip.Addr) error {
	n4, n6 := 0, 0
	for _, a := range all {
		switch {
		case a.Is4() && n4 < MaxLocal:
			s.Local4[n4] = Network4(a)
			n4++
		case a.Is6() && n6 < MaxLocal:
			s.Local6[n6] = AddressOf(a)
			n6++
		default:
			return fmt.Errorf("underlay address %s: a node has at most %d of a family", a, MaxLocal)
		}
	}
	return nil
}

// SetSources sets the prefixes that the workload may send from. It returns an error if there are
// too many.
func (v *Vif) SetSources(all []netip.Prefix) error {
	v.Sources4, v.Sources6 = 0, 0
	for _, p := range all {
		switch m := MaskOf(p.Bits()); {
		case p.Addr().Is4() && v.Sources4 < MaxSources:
			s := &v.Source4[v.Sources4]
			s.Address, s.Mask = Network4(p.Masked().Addr()), binary.NativeEndian.Uint32(m.Bytes[:])
			v.Sources4++
		case p.Addr().Is6() && v.Sources6 < MaxSources:
			s := &v.Source6[v.Sources6]
			s.Address, s.Mask = AddressOf(p.Masked().Addr()), m
			v.Sources6++
		default:
			return fmt.Errorf("source %s: a port has at most %d source prefixes of a family", p, MaxSources)
		}
	}
	return nil
}

// Sources returns the prefixes that the workload may send from, IPv4 first.
func (v *Vif) Sources() (all []netip.Prefix) {
	for _, s := range v.Source4[:min(v.Sources4, MaxSources)] {
		all = append(all, netip.PrefixFrom(Addr4(s.Address), bits.OnesCount32(s.Mask)))
	}
	for _, s := range v.Source6[:min(v.Sources6, MaxSources)] {
		all = append(all, netip.PrefixFrom(netip.AddrFrom16(s.Address.Bytes), s.Mask.Bits()))
	}
	return all
}

// MaskOf returns a mask with n bits.
func MaskOf(n int) (m Address) {
	for i := range n {
		m.Bytes[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

// Bits returns the number of bits of a mask.
func (a Address) Bits() (n int) {
	for _, b := range a.Bytes {
		n += bits.OnesCount8(b)
	}
	return n
}
