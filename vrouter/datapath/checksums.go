package datapath

import (
	"windtunnel/vrouter/layout"
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
	for id, nh := range v.Nexthops {
		udp := nh.Encap == layout.Number(model.VXLAN) || nh.Encap == layout.Number(model.MPLSoUDP)
		if nh.Type != layout.Tunnel || !udp || c == ChecksumsOff || c == ChecksumsAuto && nh.Family == 4 {
			nh.Flags &^= layout.NexthopCut
		} else {
			nh.Flags |= layout.NexthopChecksum | layout.If[uint8](c == ChecksumsOn, layout.NexthopCut)
		}
		v.Nexthops[id] = nh
	}
}
