package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/lab/agent"
	"windtunnel/lab/experiment"
	"windtunnel/lab/meter"
	"windtunnel/lab/probe"
	"windtunnel/lab/program"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/ssh"
)

// place is where a run's testbeds are: on this machine, or on hosts that are reached by
// SSH.
type place struct {
	here     bool
	executor testbed.Executor
	facts    []*probe.Facts // of each machine
	self     string         // the windtunnel program on the nodes
	choice   string         // how the CPUs were chosen; see sample.Environment
	fineIdle bool           // see meter.FineIdle
	// hold keeps other measurements away until close, and removes the remains of killed
	// runs. nil: there is nothing to hold.
	hold  func(ctx context.Context) error
	close func() error
}

// reach returns the place of the options.
func (o *runOptions) reach(ctx context.Context, plan *suite.Plan) (*place, error) {
	if o.testbed != "" {
		plan.UseExistingNetwork()
	}
	if o.testbed == k8sTestbed {
		return o.reachCluster(ctx, plan)
	}
	if o.testbed == "" {
		return placeHere(&o.cpus)
	}
	if o.cpus.cpus != "" {
		return nil, cli.Misuse(errors.New("--cpus and --testbed exclude each other: set `cpus` of each host in the hosts file"))
	}
	path, err := filepath.Abs(o.testbed) // a resumed run can have another working directory
	if err != nil {
		return nil, err
	}
	o.testbed = path
	hosts, err := o.chooseHosts(plan)
	if err != nil {
		return nil, err
	}
	x, err := ssh.Connect(ctx, hosts, experiment.Programs(plan))
	if err != nil {
		return nil, err
	}
	p := &place{executor: x, self: agent.Self, choice: "as the hosts file gives them", close: func() error { return x.Close(context.WithoutCancel(ctx)) }}
	p.facts, p.fineIdle = x.Facts()
	p.hold = func(ctx context.Context) error {
		cleaned, err := x.Hold(ctx)
		for _, name := range sortedKeys(cleaned) {
			if n := len(cleaned[name]); n > 0 {
				fmt.Fprintf(os.Stderr, "removed %s of a killed run from host %s\n", phrase.Count(n, "network namespace"), name)
			}
		}
		return err
	}
	return p, nil
}

// placeable returns an error if no system of the plan can run on the remote testbed. It is called
// before the engine connects, because a connection to a cluster makes pods.
func (o *runOptions) placeable(plan *suite.Plan) error {
	if o.testbed == "" {
		return nil
	}
	if why := nothingRuns(plan, experiment.Misplaced(plan, o.testbed == k8sTestbed)); why != "" {
		fmt.Fprint(os.Stderr, why)
		return exitNothing
	}
	return nil
}

// placeHere returns this machine as the place.
func placeHere(cpus *cpuOptions) (*place, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the windtunnel program: %w", err)
	}
	facts := probe.Probe()
	chosen, err := cpus.place(facts)
	if err != nil {
		return nil, err
	}
	x := executorHere(facts)
	x.Given, x.Agent = chosen.layout, []string{self, "agent"}
	p := &place{here: true, executor: x, facts: []*probe.Facts{facts}, self: self, choice: chosen.choice, fineIdle: meter.FineIdle(), close: func() error { return nil }}
	p.hold = p.holdHere
	return p, nil
}

// holdHere takes this machine's lock. close releases it.
func (p *place) holdHere(context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("a measurement makes network namespaces and devices, which needs root: use sudo")
	}
	lock, err := takeLock()
	if err != nil {
		return err
	}
	p.close = lock.Unlock
	left, err := space.Clean(space.RunPrefix)
	if err != nil {
		return fmt.Errorf("remove the network namespaces and processes of an earlier run: %w", err)
	}
	if n := len(left.Namespaces); n > 0 {
		fmt.Fprintf(os.Stderr, "removed %s of a killed run and ended its processes (%d)\n", phrase.Count(n, "network namespace"), len(left.Processes))
	}
	return nil
}

// environment returns the part of a run's record that depends on the machines. Where
// they differ, a text has each value once.
func (p *place) environment(programs []program.Program) sample.Environment {
	env := p.facts[0].Environment(programs)
	for _, f := range p.facts[1:] {
		other := f.Environment(programs)
		for _, v := range []struct {
			all *string
			one string
		}{
			{&env.Hostname, other.Hostname}, {&env.Kernel, other.Kernel}, {&env.OS, other.OS}, {&env.CPUModel, other.CPUModel},
			{&env.Virtualization, other.Virtualization}, {&env.ClockSource, other.ClockSource},
			{&env.IRQTimeAccounting, other.IRQTimeAccounting}, {&env.CongestionControl, other.CongestionControl},
		} {
			*v.all = phrase.Once(*v.all+" | "+v.one, " | ")
		}
	}
	return env
}

// cleanHosts removes everything of the lab from the hosts of a hosts file.
func cleanHosts(ctx context.Context, out io.Writer, path string) error {
	hosts, err := ssh.ReadHosts(path)
	if err != nil {
		return err
	}
	x, err := ssh.Connect(ctx, hosts, nil)
	if err != nil {
		return err
	}
	cleaned, err := x.Hold(ctx)
	if err == nil {
		err = x.Remove(ctx)
	}
	for _, name := range sortedKeys(cleaned) {
		fmt.Fprintf(out, "%s: removed %s and the windtunnel program\n", name, phrase.Count(len(cleaned[name]), "network namespace"))
	}
	return errors.Join(err, x.Close(context.WithoutCancel(ctx)))
}
