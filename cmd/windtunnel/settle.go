package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/lab/experiment"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// settler completes the run's environment with facts of the running testbeds: settings
// of the devices, CPUs of the nodes, and the fabric.
type settler struct {
	runner *runner
	seen   map[string]bool

	fabrics                    []string           // descriptions of the fabrics, sorted, each once
	before                     sample.Environment // recorded before the run was resumed
	sysctls, offloads, setting settings
}

func newSettler(r *runner) *settler {
	return &settler{runner: r, seen: map[string]bool{}, before: r.run.Environment, sysctls: settings{}, offloads: settings{}, setting: settings{}}
}

func (s *settler) Up(sc *suite.Scenario, b *experiment.Bench) {
	if s.seen[sc.ID] {
		return
	}
	s.seen[sc.ID] = true
	env := &s.runner.run.Environment
	// Sort, because the order of trials is random.
	if about := b.Testbed.Fabric().Describe(); !slices.Contains(s.fabrics, about) {
		s.fabrics = append(s.fabrics, about)
		slices.Sort(s.fabrics)
	}
	env.Fabric = strings.Join(s.fabrics, " | ")
	if cc := space.CongestionControl(); cc != "" {
		env.CongestionControl = cc
	}
	if env.NodeCPUs == nil {
		env.NodeCPUs = map[string]string{}
	}
	for _, n := range b.Testbed.Nodes() {
		env.NodeCPUs[n.Name()] = fmt.Sprint(n.CPUs())
	}
	l := b.Testbed.Layout()
	env.NodeCPUs["wire"] = cpuList(l.Wire, "shares the sender's CPU; its time is measured and subtracted")
	env.NodeCPUs["engine"] = cpuList(l.Engine, "shares the nodes' CPUs; its time is measured")
	set := b.Settings()
	s.sysctls.add(sc.ID, set.Sysctls)
	s.offloads.add(sc.ID, set.Offloads)
	s.setting.add(sc.ID, set.Others)
	env.Sysctls, env.Offloads, env.Settings = s.sysctls.merge(s.before.Sysctls), s.offloads.merge(s.before.Offloads), s.setting.merge(s.before.Settings)
}

func cpuList(cpus []int, none string) string {
	if len(cpus) == 0 {
		return none
	}
	return fmt.Sprint(cpus)
}

func (*settler) Began(experiment.Trial, experiment.Progress) {}
func (*settler) Moved(experiment.Trial, sample.Point)        {}
func (*settler) Ended(sample.Sample, experiment.Progress)    {}

// observers forwards each event to several observers.
type observers []experiment.Observer

func (os observers) Up(sc *suite.Scenario, b *experiment.Bench) {
	for _, o := range os {
		o.Up(sc, b)
	}
}

func (os observers) Began(t experiment.Trial, p experiment.Progress) {
	for _, o := range os {
		o.Began(t, p)
	}
}

func (os observers) Moved(t experiment.Trial, p sample.Point) {
	for _, o := range os {
		o.Moved(t, p)
	}
}

func (os observers) Ended(s sample.Sample, p experiment.Progress) {
	for _, o := range os {
		o.Ended(s, p)
	}
}
