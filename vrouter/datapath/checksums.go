package datapath

import (
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Checksums says which tunnel packets over UDP have an outer checksum.
type Checksums int

const (
	ChecksumsAuto Checksums = iota // those over IPv6, except superpackets to other nodes
	ChecksumsOn                    // all; the kernel cuts superpackets on this node
	ChecksumsOff                   // none
)

// addChecksums sets the flags of the tunnels whose packets finish_tunnel() of bpf/encap.h must
// handle.
func (v *values) addChecksums(c Checksums) {
	for id, nh := range v.nexthops {
		udp := nh.Encap == encapNumbers[model.VXLAN] || nh.Encap == encapNumbers[model.MPLSoUDP]
		if fib.NexthopType(nh.Type) != fib.Tunnel || !udp || c == ChecksumsOff || c == ChecksumsAuto && nh.Family == 4 {
			continue
		}
		nh.Flags |= nhChecksum | flagIf[uint8](c == ChecksumsOn || nh.Flags&nhForeign != 0, nhCut)
		v.nexthops[id] = nh
	}
}
