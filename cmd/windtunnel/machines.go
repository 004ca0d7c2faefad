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
	"windtunnel/lab/delayline"
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

// machines has the machines on which a run makes its testbeds: this one, hosts that are reached by SSH,
// or nodes of a Kubernetes cluster.
type machines struct {
	here     bool // this machine alone
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

// reach returns the machines of the options.
func (o *runOptions) reach(ctx context.Context, plan *suite.Plan) (*machines, error) {
	if o.testbed != "" {
		plan.UseExistingNetwork()
	}
	if o.testbed == k8sTestbed {
		return o.reachCluster(ctx, plan)
	}
	if o.testbed == "" {
		return thisMachine(&o.cpus)
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
	m := &machines{executor: x, self: agent.Self, choice: "as the hosts file gives them", close: func() error { return x.Close(context.WithoutCancel(ctx)) }}
	m.facts, m.fineIdle = x.Facts()
	m.hold = func(ctx context.Context) error {
		cleaned, err := x.Hold(ctx)
		for _, name := range sortedKeys(cleaned) {
			if n := len(cleaned[name]); n > 0 {
				fmt.Fprintf(os.Stderr, "removed %s of a killed run from host %s\n", phrase.Count(n, "network namespace"), name)
			}
		}
		return err
	}
	return m, nil
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

// thisMachine prepares a run on this machine.
func thisMachine(cpus *cpuOptions) (*machines, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the windtunnel program: %w", err)
	}
	facts := probe.Probe()
	chosen, err := cpus.choose(facts)
	if err != nil {
		return nil, err
	}
	x := executorHere(facts)
	x.Given, x.Agent, x.Line = chosen.layout, []string{self, "agent"}, []string{self, delayline.Command}
	m := &machines{here: true, executor: x, facts: []*probe.Facts{facts}, self: self, choice: chosen.choice, fineIdle: meter.FineIdle(), close: func() error { return nil }}
	m.hold = m.holdHere
	return m, nil
}

// holdHere takes this machine's lock. close releases it.
func (m *machines) holdHere(context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("a measurement makes network namespaces and devices, which needs root: use sudo")
	}
	lock, err := takeLock()
	if err != nil {
		return err
	}
	m.close = lock.Unlock
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
func (m *machines) environment(programs []program.Program) sample.Environment {
	env := m.facts[0].Environment(programs)
	for _, f := range m.facts[1:] {
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
