package datapath

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/service"
)

// services is a copy of the entries in the maps for services. The first SetServices reads them.
type services struct {
	sync.Mutex
	written map[service.Key]writtenService
	ids     map[uint32]service.Key
	ranges  [2]layout.ServiceRange
	next    uint32 // next number to try
}

// writtenService is a service in the maps.
type writtenService struct {
	id uint32
	service.Service
}

// SetServices makes the maps equal to services. It writes only the entries of services that differ from those of
// the call before. The first call reads the maps. It can run at the same time as other methods.
func (d *Datapath) SetServices(all []service.Service) (c Changes, err error) {
	s := &d.services
	s.Lock()
	defer s.Unlock()
	backends := 0
	for _, one := range all {
		backends += len(one.Backends)
	}
	for _, l := range []struct {
		m    *ebpf.Map
		name string
		want int
	}{{d.maps.Services, "services", len(all)}, {d.maps.Backends, "backends", backends}} {
		if l.want > int(l.m.MaxEntries()) {
			return c, fmt.Errorf("table %s: %d entries are wanted, its limit is %d", l.name, l.want, l.m.MaxEntries())
		}
	}
	if s.written == nil {
		if err := d.readServices(); err != nil {
			return c, err
		}
	}
	wanted := make(map[service.Key]bool, len(all))
	var addresses [2][]netip.Addr
	for _, one := range all {
		wanted[one.Key] = true
		addresses[family(one.Address)] = append(addresses[family(one.Address)], one.Address)
	}
	for key, is := range s.written {
		if !wanted[key] {
			if err := d.deleteService(is, &c); err != nil {
				return c, err
			}
		}
	}
	for _, one := range all {
		if is, has := s.written[one.Key]; !has || !is.Equal(one) {
			if err := d.writeService(one, &c); err != nil {
				return c, err
			}
		}
	}
	for i := range addresses {
		if err := d.writeRange(i, addresses[i], &c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// family returns the index in service_ranges.
func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

func serviceKey(k service.Key) layout.ServiceKey {
	return layout.ServiceKey{Address: layout.AddressOf(k.Address), Port: layout.Network16(k.Port), Protocol: k.Protocol}
}

// Services returns the services in the maps. Their names are those of the last SetServices; a service that an
// earlier agent has written has none.
func (d *Datapath) Services() (all []service.Service, err error) {
	all = []service.Service{}
	read, err := d.servicesInMaps()
	d.services.Lock()
	defer d.services.Unlock()
	for key, s := range read {
		s.Name = d.services.written[key].Name
		all = append(all, s.Service)
	}
	slices.SortFunc(all, func(a, b service.Service) int { return a.Key.Compare(b.Key) })
	return all, err
}

func (d *Datapath) servicesInMaps() (map[service.Key]writtenService, error) {
	backends, all := map[layout.BackendKey]layout.Backend{}, map[service.Key]writtenService{}
	err := table[layout.BackendKey, layout.Backend]{"backends", d.maps.Backends, false}.each(func(k layout.BackendKey, b layout.Backend) { backends[k] = b })
	if err != nil {
		return nil, err
	}
	err = table[layout.ServiceKey, layout.Service]{"services", d.maps.Services, false}.each(func(k layout.ServiceKey, v layout.Service) {
		s := writtenService{v.ID, service.Service{
			Key:      service.Key{Address: k.Address.Addr(), Port: layout.Network16(k.Port), Protocol: k.Protocol},
			Affinity: time.Duration(v.Affinity) * time.Second, Drop: v.Flags&layout.ServiceDrop != 0,
		}}
		for i := range v.Backends {
			b := backends[layout.BackendKey{Service: v.ID, Index: i}]
			s.Backends = append(s.Backends, netip.AddrPortFrom(b.Address.Addr(), layout.Network16(b.Port)))
		}
		all[s.Key] = s
	})
	return all, err
}

// readServices reads the entries that an earlier agent has written. It deletes backends without a service, which
// remain if an agent is killed during a change.
func (d *Datapath) readServices() (err error) {
	s := &d.services
	if s.written, err = d.servicesInMaps(); err != nil {
		return err
	}
	s.ids = map[uint32]service.Key{}
	for key, is := range s.written {
		s.ids[is.id] = key
	}
	t := table[layout.BackendKey, layout.Backend]{"backends", d.maps.Backends, false}
	var stale []layout.BackendKey
	err = t.each(func(k layout.BackendKey, _ layout.Backend) {
		if key, has := s.ids[k.Service]; !has || int(k.Index) >= len(s.written[key].Backends) {
			stale = append(stale, k)
		}
	})
	if err != nil {
		return err
	}
	for i := range s.ranges {
		if err := d.maps.ServiceRanges.Lookup(uint32(i), &s.ranges[i]); err != nil {
			return fmt.Errorf("read map service_ranges: %w", err)
		}
	}
	return t.remove(stale)
}

// writeService writes the new backends, then the service with their number, and then deletes surplus backends. So
// at any moment, all backends that the service counts are in the map.
func (d *Datapath) writeService(want service.Service, c *Changes) error {
	s := &d.services
	is, has := s.written[want.Key]
	if !has {
		is.id = s.freeID()
	}
	had := len(is.Backends)
	for i, b := range want.Backends {
		if i < had && is.Backends[i] == b {
			continue
		}
		v := layout.Backend{Address: layout.AddressOf(b.Addr()), Port: layout.Network16(b.Port())}
		if err := d.maps.Backends.Put(layout.BackendKey{Service: is.id, Index: uint32(i)}, v); err != nil {
			s.written = nil // the next call reads the maps
			return fmt.Errorf("write map backends: %w", err)
		}
		c.Updated++
	}
	v := layout.Service{ID: is.id, Backends: uint32(len(want.Backends)), Affinity: uint32(min(want.Affinity/time.Second, math.MaxUint32)), Flags: layout.If[uint32](want.Drop, layout.ServiceDrop)}
	if err := d.maps.Services.Put(serviceKey(want.Key), v); err != nil {
		s.written = nil
		return fmt.Errorf("write map services: %w", err)
	}
	c.Updated++
	want.Backends = slices.Clone(want.Backends)
	s.written[want.Key], s.ids[is.id] = writtenService{is.id, want}, want.Key
	return d.deleteBackends(is.id, len(want.Backends), had, c)
}

func (d *Datapath) deleteBackends(id uint32, from, to int, c *Changes) error {
	var keys []layout.BackendKey
	for i := from; i < to; i++ {
		keys = append(keys, layout.BackendKey{Service: id, Index: uint32(i)})
	}
	c.Deleted += len(keys)
	err := table[layout.BackendKey, layout.Backend]{"backends", d.maps.Backends, false}.remove(keys)
	if err != nil {
		d.services.written = nil
	}
	return err
}

func (d *Datapath) deleteService(is writtenService, c *Changes) error {
	k := serviceKey(is.Key)
	if err := (table[layout.ServiceKey, layout.Service]{"services", d.maps.Services, false}).remove([]layout.ServiceKey{k}); err != nil {
		d.services.written = nil
		return err
	}
	c.Deleted++
	delete(d.services.written, is.Key)
	delete(d.services.ids, is.id)
	return d.deleteBackends(is.id, 0, len(is.Backends), c)
}

// freeID returns a number that no service has. The number of a deleted service is used again only after all
// other numbers, so that clients of the old service do not keep their backend.
func (s *services) freeID() uint32 {
	for {
		s.next++
		if _, taken := s.ids[s.next]; !taken && s.next != 0 {
			return s.next
		}
	}
}

func (d *Datapath) writeRange(i int, all []netip.Addr, c *Changes) error {
	var want layout.ServiceRange
	if p := service.Range(all); p.IsValid() {
		want = layout.ServiceRange{Address: layout.AddressOf(p.Addr()), Mask: layout.MaskOf(p.Bits() + 128 - p.Addr().BitLen()), Services: uint32(len(all))}
	}
	have := &d.services.ranges[i]
	if have.Address == want.Address && have.Mask == want.Mask && (have.Services == 0) == (want.Services == 0) {
		return nil
	}
	if err := d.maps.ServiceRanges.Put(uint32(i), want); err != nil {
		return fmt.Errorf("write map service_ranges: %w", err)
	}
	*have = want
	c.Updated++
	return nil
}
