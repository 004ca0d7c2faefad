package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"windtunnel/lab/meter"
	"windtunnel/lab/parallel"
	"windtunnel/lab/vm"
)

// devicesOf lists the devices in a guest. If guest is "", it lists the devices in
// the node's kernel. The caller holds mu.
func (s *Service) devicesOf(guest string, all []meter.Device) (list []meter.Device) {
	for _, d := range all {
		kernel := ""
		if _, ok := s.guests[d.Namespace]; ok {
			kernel = d.Namespace
		}
		if kernel == guest {
			list = append(list, d)
		}
	}
	return list
}

// meterGuests makes the node's meter count the CPU time of the guests. It also
// starts a meter in each guest, because only the guest has the counters of its TCP
// and of its device. The clocks and the CPU time inside guests are not used. The
// caller holds mu.
func (s *Service) meterGuests(m *meter.Meter, args MeterArgs) error {
	for name, g := range s.guests {
		m.AddGuest(meter.Guest{Name: name, PID: g.vm.PID(), Threads: g.vm.Threads(), Emulated: g.vm.Config.Accelerator == vm.TCG})
		own := MeterArgs{Node: args.Node, Ports: args.Ports}
		for cpu := range g.vm.Config.CPUs {
			own.CPUs = append(own.CPUs, cpu)
		}
		for _, d := range s.devicesOf(name, args.Devices) {
			own.Devices = append(own.Devices, meter.Device{Name: d.Name, Role: d.Role, Order: d.Order})
		}
		if err := g.client.MeterStart(context.Background(), own); err != nil {
			return err
		}
	}
	return nil
}

// readGuests adds the guests' counters to a reading, as if guests were namespaces of
// the node.
func (s *Service) readGuests(r *meter.Reading) error {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.guests))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *guest) int { return compareNames(a.name, b.name) })
	read := make([]meter.NamespaceReading, len(all))
	err := parallel.Each(all, func(i int, g *guest) (err error) {
		read[i], err = g.read()
		return err
	})
	r.Namespaces = append(r.Namespaces, read...)
	return err
}

// compareNames orders c2 before c10.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func (g *guest) read() (meter.NamespaceReading, error) {
	r, err := g.client.MeterRead(context.Background())
	if err != nil {
		return meter.NamespaceReading{}, err
	}
	if len(r.Node.Namespaces) != 1 {
		return meter.NamespaceReading{}, fmt.Errorf("read the meter of VM %s: it returned %d namespaces, want 1", g.name, len(r.Node.Namespaces))
	}
	n := r.Node.Namespaces[0]
	n.Name = g.name
	return n, nil
}
