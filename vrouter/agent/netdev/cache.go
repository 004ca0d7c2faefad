package netdev

import (
	"net/netip"

	"github.com/vishvananda/netlink"
)

// nsCache caches the addresses, limits and routes of a network namespace during one pass, so
// that the pass lists them once for all ports. A pass that changes the namespace also updates the
// cache. The devices of the node's namespace stay cached for the next pass.
type nsCache struct {
	*Space
	devices   *Devices
	addresses map[int][]netip.Prefix // by device
	buckets   map[int]*netlink.Tbf   // the agent's limits, by device
	defaults  map[int]bool           // whether there is a default route, by family
	netnsID   *int                   // id of this namespace in the node's namespace; negative: none
}

func (s *nsCache) addressesOf(l netlink.Link) ([]netip.Prefix, error) {
	if s.addresses == nil {
		all, err := listAddresses(s.Links)
		if err != nil {
			return nil, err
		}
		s.addresses = map[int][]netip.Prefix{}
		for _, a := range all {
			if prefix, ok := PrefixOf(a.IPNet); ok {
				s.addresses[a.LinkIndex] = append(s.addresses[a.LinkIndex], prefix)
			}
		}
	}
	return s.addresses[l.Attrs().Index], nil
}

// bucketOf returns the limit of a device; nil: none.
func (s *nsCache) bucketOf(l netlink.Link) (*netlink.Tbf, error) {
	if s.buckets == nil {
		all, err := listQueues(s.Links)
		if err != nil {
			return nil, err
		}
		s.buckets = map[int]*netlink.Tbf{}
		for _, q := range all {
			if tbf, ok := q.(*netlink.Tbf); ok && tbf.Handle == limiter {
				s.buckets[tbf.LinkIndex] = tbf
			}
		}
	}
	return s.buckets[l.Attrs().Index], nil
}

// hasDefault reports whether there is a default route of a family.
func (s *nsCache) hasDefault(family int) (bool, error) {
	if has, known := s.defaults[family]; known {
		return has, nil
	}
	all, err := Routes(s.Links, family)
	if err != nil {
		return false, err
	}
	s.hasNow(family, HasDefault(all))
	return s.defaults[family], nil
}

func (s *nsCache) hasNow(family int, has bool) {
	if s.defaults == nil {
		s.defaults = map[int]bool{}
	}
	s.defaults[family] = has
}

// idIn returns the id of this namespace in the node's namespace. It is negative for
// the node's namespace itself, and if no device of the node has a peer in this
// namespace.
func (s *nsCache) idIn(node *nsCache) int {
	if s == node {
		return -1
	}
	if s.netnsID == nil {
		id, err := node.Links.GetNetNsIdByFd(int(s.Ns))
		if err != nil {
			id = -1
		}
		s.netnsID = &id
	}
	return *s.netnsID
}
