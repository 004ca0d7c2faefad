package experiment

import (
	"context"

	"windtunnel/lab/meter"
	"windtunnel/lab/profile"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/sample"
)

// sides names the roles of meters.nodes, in the same order.
var sides = [...]string{"sender", "receiver"}

// startProfiles starts the profiler of every node, if the trial is profiled.
func (m *meters) startProfiles(ctx context.Context) error {
	if m.traffic.profileRate == 0 {
		return nil
	}
	for _, n := range m.nodes {
		args := profile.Config{Node: n.Name(), CPUs: n.CPUs(), Rate: m.traffic.profileRate}
		if err := n.Agent().ProfileStart(ctx, args); err != nil {
			return failed(sample.Unsupported, "%w", err)
		}
	}
	return nil
}

// stopProfiles fetches the profiles of the meter's window.
func (m *meters) stopProfiles(ctx context.Context) error {
	if m.traffic.profileRate == 0 || m.end.nodes == nil {
		return nil
	}
	for i, n := range m.nodes {
		w := profile.Window{From: m.start.nodes[i].Mono, To: m.end.nodes[i].Mono, Metered: map[int]float64{}}
		d, err := meter.Window(m.start.nodes[i], m.end.nodes[i])
		if err != nil {
			return err
		}
		for cpu, used := range d.CPUs {
			w.Metered[cpu] = used.Busy
		}
		p, err := n.Agent().ProfileStop(ctx, w)
		if err != nil {
			return err
		}
		p.Side = sides[i]
		m.profiles = append(m.profiles, p)
	}
	return nil
}

// keepProfiles adds the profiles to the sample, each with the meter's CPU figures of
// the same node and window.
func (m *meters) keepProfiles() error {
	s := m.traffic.sample
	for i, p := range m.profiles {
		data, err := folded.Encode(p)
		if err != nil {
			return failed(sample.Invalid, "%w", err)
		}
		cores := s.Metrics[sample.SenderCores]
		if i == 1 {
			cores = s.Metrics[sample.ReceiverCores]
		}
		s.Profiles = append(s.Profiles, sample.Profile{Side: sides[i], Cores: cores, Data: data})
	}
	return nil
}
