package agent

import (
	"net/netip"

	"github.com/vishvananda/netlink"
)

// site is a network namespace as a pass finds it. What a step asks for is listed
// once, for all the ports that have their devices there; what the pass changes
// itself is kept up.
type site struct {
	*space
	byIndex   map[int]netlink.Link
	addresses map[int][]netip.Prefix // by device
	buckets   map[int]*netlink.Tbf   // the agent's own limits, by device
	defaults  map[int]bool           // whether it has a default route, by family
	seenAs    *int                   // its number in the node's namespace, negative for none
}

// device finds one by its number; nil when there is none.
func (s *site) device(index int) (netlink.Link, error) {
	if s.byIndex == nil {
		all, err := listLinks(s.links)
		if err != nil {
			return nil, err
		}
		s.keep(all)
	}
	return s.byIndex[index], nil
}

func (s *site) keep(links []netlink.Link) {
	s.byIndex = make(map[int]netlink.Link, len(links))
	for _, l := range links {
		s.byIndex[l.Attrs().Index] = l
	}
}

// renew looks at one device again, if devices were listed already.
func (s *site) renew(index int) error {
	if s.byIndex == nil {
		return nil
	}
	l, err := s.links.LinkByIndex(index)
	if err == nil {
		s.byIndex[index] = l
	}
	return err
}

func (s *site) addressesOf(l netlink.Link) ([]netip.Prefix, error) {
	if s.addresses == nil {
		all, err := listAddresses(s.links)
		if err != nil {
			return nil, err
		}
		s.addresses = map[int][]netip.Prefix{}
		for _, a := range all {
			if prefix, ok := prefixOf(a.IPNet); ok {
				s.addresses[a.LinkIndex] = append(s.addresses[a.LinkIndex], prefix)
			}
		}
	}
	return s.addresses[l.Attrs().Index], nil
}

// bucketOf is a device's limit, nil where it has none.
func (s *site) bucketOf(l netlink.Link) (*netlink.Tbf, error) {
	if s.buckets == nil {
		all, err := listQueues(s.links)
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

// hasDefault tells whether there is a default route of a family.
func (s *site) hasDefault(family int) (bool, error) {
	if has, known := s.defaults[family]; known {
		return has, nil
	}
	all, err := listRoutes(s.links, family)
	if err != nil {
		return false, err
	}
	s.hasNow(family, hasDefault(all))
	return s.defaults[family], nil
}

func (s *site) hasNow(family int, has bool) {
	if s.defaults == nil {
		s.defaults = map[int]bool{}
	}
	s.defaults[family] = has
}

// idIn is the namespace's number in the node's: negative where it is that one
// itself, or no device of the node leads there yet.
func (s *site) idIn(node *site) int {
	if s == node {
		return -1
	}
	if s.seenAs == nil {
		id, err := node.links.GetNetNsIdByFd(int(s.ns))
		if err != nil {
			id = -1
		}
		s.seenAs = &id
	}
	return *s.seenAs
}
