package netdev

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/service"
)

// ServiceRules writes the nftables rules by which the node's kernel translates packets to services. The node must have nft.
type ServiceRules struct {
	mu      sync.Mutex
	wanted  []service.Service // argument of the last Set; nil: Set has not been called
	written []service.Service // services whose rules the kernel has; nil: unknown
	tables  [2]uint64         // handles of the IPv4 and IPv6 tables; 0: no table
}

// Set writes the rules for the services, which must be sorted by key. Established connections keep their backends. UDP
// flows get another backend if their backend is no longer in the service.
func (r *ServiceRules) Set(s *Space, all []service.Service) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = append([]service.Service{}, all...)
	return r.set(s)
}

func (r *ServiceRules) set(s *Space) error {
	return s.Once(func() error {
		is, all := r.written, r.wanted
		if r.changed() {
			is = nil
		}
		r.written = nil
		err := r.write(is, all)
		if err != nil && is != nil { // another program may have changed a table: replace it
			err = r.write(nil, all)
		}
		if err != nil {
			return err
		}
		if err := forgetBackends(s, all, is); err != nil {
			return err
		}
		r.written = all
		return nil
	})
}

// changed reports whether another program has deleted or replaced a table, in the namespace of this thread.
func (r *ServiceRules) changed() bool {
	for i, family := range tableFamilies {
		if tableHandle(family, service.RulesTable) != r.tables[i] {
			return true
		}
	}
	return false
}

// write changes the kernel's rules from those of the services `is` to those of the services `all`. If `is` is nil, it
// replaces the tables.
func (r *ServiceRules) write(is, all []service.Service) error {
	text := ""
	for i, family := range tableFamilies {
		change := service.Rules(i == 1, is, all)
		if is == nil && change == "" && tableHandle(family, service.RulesTable) != 0 {
			change = family.deletion(service.RulesTable)
		}
		text += change
	}
	if _, err := nft(text); err != nil {
		return fmt.Errorf("translate packets of the node to services: %w", err)
	}
	for i, family := range tableFamilies {
		r.tables[i] = tableHandle(family, service.RulesTable)
	}
	return nil
}

// Keep writes the rules again if a table was deleted, or if the last attempt failed. changed is true if Keep has tried to
// write. While Set runs, Keep does nothing.
func (r *ServiceRules) Keep(s *Space) (changed bool, err error) {
	if !r.mu.TryLock() {
		return false, nil
	}
	defer r.mu.Unlock()
	if r.wanted == nil {
		return false, nil
	}
	err = s.Do(func() error { changed = r.written == nil || r.changed(); return nil })
	if err == nil && changed {
		err = r.set(s)
	}
	return changed, err
}

// RemoveServiceRules deletes the tables of ServiceRules.
func RemoveServiceRules(s *Space) error {
	return s.Once(func() error { return (&ServiceRules{}).write(nil, nil) })
}

// forgetBackends deletes the conntrack entries of UDP flows whose backend is no longer in the service. It does nothing if
// no UDP service has changed. `is` has the former services; nil: unknown.
func forgetBackends(s *Space, all, is []service.Service) error {
	udp := func(services []service.Service) []service.Service {
		return slices.DeleteFunc(slices.Clone(services), func(s service.Service) bool { return s.Protocol != unix.IPPROTO_UDP })
	}
	if is != nil && slices.EqualFunc(udp(is), udp(all), service.Service.SameRules) {
		return nil
	}
	own, err := s.Addresses()
	if err != nil {
		return err
	}
	known := conntrackServices{map[netip.AddrPort]map[netip.AddrPort]bool{}, map[nodePort]map[netip.AddrPort]bool{}, own}
	for _, one := range udp(is) { // a deleted service has no backends
		gone := service.Service{Key: one.Key}
		if one.Outside != nil {
			gone.Outside = &service.Outside{NodePort: one.Outside.NodePort, Addresses: one.Outside.Addresses, Balancers: one.Outside.Balancers}
		}
		known.add(gone)
	}
	for _, one := range udp(all) {
		known.add(one)
	}
	var errs []error
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, known); err != nil {
			errs = append(errs, fmt.Errorf("delete connections to backends that a service no longer has: %w", err))
		}
	}
	return errors.Join(errs...)
}

// nodePort is the NodePort of a service of one IP version.
type nodePort struct {
	port uint16
	is4  bool
}

// conntrackServices matches the conntrack entries of UDP flows whose backend is not in the service.
type conntrackServices struct {
	services map[netip.AddrPort]map[netip.AddrPort]bool // address of the service → backends
	ports    map[nodePort]map[netip.AddrPort]bool       // NodePort → backends
	own      map[netip.Addr]bool                        // addresses of the node
}

func (c conntrackServices) add(s service.Service) {
	set := func(all ...[]netip.AddrPort) map[netip.AddrPort]bool {
		set := map[netip.AddrPort]bool{}
		for _, b := range slices.Concat(all...) {
			set[b] = true
		}
		return set
	}
	c.services[netip.AddrPortFrom(s.Address, s.Port)] = set(s.Backends)
	if o := s.Outside; o != nil {
		backends := set(o.Backends, o.All)
		for _, a := range slices.Concat(o.Addresses, o.Balancers) {
			c.services[netip.AddrPortFrom(a, s.Port)] = backends
		}
		if o.NodePort != 0 {
			c.ports[nodePort{o.NodePort, s.Address.Is4()}] = backends
		}
	}
}

// MatchConntrackFlow reports whether an entry must be deleted.
func (c conntrackServices) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	at := func(ip []byte, port uint16) netip.AddrPort {
		a, _ := netip.AddrFromSlice(ip)
		return netip.AddrPortFrom(a.Unmap(), port)
	}
	to := at(flow.Forward.DstIP, flow.Forward.DstPort)
	backends, is := c.services[to]
	if !is && c.own[to.Addr()] {
		backends, is = c.ports[nodePort{to.Port(), to.Addr().Is4()}]
	}
	return is && !backends[at(flow.Reverse.SrcIP, flow.Reverse.SrcPort)]
}
