package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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

	mu   sync.Mutex // trials between several pairs of hosts run at the same time
	seen map[string]bool

	fabrics                    []string           // descriptions of the fabrics, sorted, each once
	before                     sample.Environment // recorded before the run was resumed
	sysctls, offloads, setting settings
}

func newSettler(r *runner) *settler {
	return &settler{runner: r, seen: map[string]bool{}, before: r.run.Environment, sysctls: settings{}, offloads: settings{}, setting: settings{}}
}

func (s *settler) Up(sc *suite.Scenario, b *experiment.Bench) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known(sc) {
		return
	}
	env := &s.runner.run.Environment
	id, _, between := suite.SplitPairID(sc.ID)
	// Sort, because the order of trials is random.
	if about := b.Testbed.Fabric().Describe(); !slices.Contains(s.fabrics, about) && (!between || len(s.fabrics) == 0) {
		s.fabrics = append(s.fabrics, about)
		slices.Sort(s.fabrics)
	}
	env.Fabric = strings.Join(s.fabrics, " | ")
	if cc := space.CongestionControl(); cc != "" && s.runner.machines.here {
		env.CongestionControl = cc
	}
	if env.NodeCPUs == nil {
		env.NodeCPUs = map[string]string{}
	}
	for _, n := range b.Testbed.Nodes() {
		env.NodeCPUs[n.Name()] = fmt.Sprint(n.CPUs())
	}
	l := b.Testbed.Layout()
	switch {
	case l.Shared:
		env.NodesShare = sample.SharedCPUs
	case l.OneMachine && env.NodesShare == "":
		env.NodesShare = sample.SharedMachine
	}
	if s.runner.machines.here {
		env.NodeCPUs["wire"] = cpuList(l.Wire, "shares the sender's CPU; its time is measured and subtracted")
		env.NodeCPUs["engine"] = cpuList(l.Engine, "shares the nodes' CPUs; its time is measured")
	}
	set := b.Settings()
	s.sysctls.add(id, set.Sysctls)
	s.offloads.add(id, set.Offloads)
	s.setting.add(id, set.Others)
	env.Sysctls, env.Offloads, env.Settings = s.sysctls.merge(s.before.Sysctls), s.offloads.merge(s.before.Offloads), s.setting.merge(s.before.Settings)
}

// known reports whether the scenario's facts are complete. Between pairs of hosts these
// are the facts of both hosts, which are the same in every pair.
func (s *settler) known(sc *suite.Scenario) bool {
	keys := []string{sc.ID}
	if id, pair, ok := suite.SplitPairID(sc.ID); ok {
		keys = []string{suite.PairID(id, suite.HostPair{From: pair.From}), suite.PairID(id, suite.HostPair{From: pair.To})}
	}
	all := true
	for _, key := range keys {
		all = all && s.seen[key]
		s.seen[key] = true
	}
	return all
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
