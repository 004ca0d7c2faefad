package layout

import (
	"fmt"
	"net/netip"

	"windtunnel/vrouter/model"
)

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
