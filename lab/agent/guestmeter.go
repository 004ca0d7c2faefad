package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"windtunnel/lab/meter"
	"windtunnel/lab/vm"
)

// hop is a metered device, with its place among all of the node's.
type hop struct {
	meter.Device
	order int
}

// divide tells the devices in guests, by guest, from those of the node's
// kernel, under "". The caller holds mu.
func (s *Service) divide(devices []meter.Device) map[string][]hop {
	by := map[string][]hop{}
	for i, d := range devices {
		kernel := ""
		if _, ok := s.guests[d.Namespace]; ok {
			kernel = d.Namespace
		}
		by[kernel] = append(by[kernel], hop{d, i})
	}
	return by
}

// reorder gives devices that one meter has read their places among all.
func reorder(devices []meter.DeviceReading, hops []hop) {
	for i, d := range devices {
		if d.Order < len(hops) {
			devices[i].Order = hops[d.Order].order
		}
	}
}

// meterGuests has the node's meter watch the guests' CPUs, and opens a meter in
// each guest for what only it knows: its TCP, its device. Clocks and CPU time
// in there are not looked at. The caller holds mu.
func (s *Service) meterGuests(m *meter.Meter, args MeterArgs, hops map[string][]hop) error {
	s.hops = hops[""]
	for name, g := range s.guests {
		m.AddGuest(meter.Guest{Name: name, PID: g.machine.PID(), Threads: g.machine.Threads(), Emulated: g.machine.Config.Accelerator == vm.TCG})
		g.hops = hops[name]
		own := MeterArgs{Node: args.Node, Ports: args.Ports}
		for cpu := range g.machine.Config.CPUs {
			own.CPUs = append(own.CPUs, cpu)
		}
		for _, h := range g.hops {
			own.Devices = append(own.Devices, meter.Device{Name: h.Name, Role: h.Role})
		}
		if err := g.client.MeterStart(context.Background(), own); err != nil {
			return err
		}
	}
	return nil
}

// readGuests adds to a reading what the guests have counted, as if they were
// namespaces of the node.
func (s *Service) readGuests(r *meter.Reading) error {
	s.mu.Lock()
	for _, n := range r.Namespaces {
		reorder(n.Devices, s.hops)
	}
	var all []*guest
	for _, g := range s.guests {
		all = append(all, g)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *guest) int { return compareNames(a.name, b.name) })
	read := make([]meter.NamespaceReading, len(all))
	errs := make([]error, len(all))
	var reading sync.WaitGroup
	for i, g := range all {
		reading.Go(func() { read[i], errs[i] = g.read() })
	}
	reading.Wait()
	r.Namespaces = append(r.Namespaces, read...)
	return errors.Join(errs...)
}

// compareNames orders c2 before c10.
func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	if a < b {
		return -1
	}
	return 1
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
	reorder(n.Devices, g.hops)
	return n, nil
}
