// Package ssh makes testbeds of Linux hosts that are reached by the program ssh. The hosts'
// existing network is the fabric. The windtunnel program is copied to each host and runs there as
// the node's agent; ssh carries its standard input and output.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/host"
	"windtunnel/lab/parallel"
	"windtunnel/lab/probe"
	wanted "windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/remote"
)

// Executor makes testbeds of the hosts of a hosts file.
type Executor struct {
	dedicated bool
	machines  []*machine
	folder    string // for the files of the connections
}

// Connect connects to all hosts, copies the program to them where it is missing, and
// surveys them. programs are the executables that the plan needs.
func Connect(ctx context.Context, hosts *Hosts, programs []wanted.Program) (_ *Executor, err error) {
	own, err := ownProgram()
	if err != nil {
		return nil, err
	}
	x := &Executor{dedicated: hosts.Dedicated}
	if x.folder, err = os.MkdirTemp("", "windtunnel-ssh-"); err != nil {
		return nil, fmt.Errorf("make the directory for the connections: %w", err)
	}
	for i, h := range hosts.Hosts {
		x.machines = append(x.machines, &machine{Host: h, number: i, folder: x.folder, program: own})
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close(context.WithoutCancel(ctx)))
		}
	}()
	err = parallel.Each(x.machines, func(_ int, m *machine) error {
		if err := m.connect(ctx); err != nil {
			return err
		}
		survey, err := m.service.Survey(ctx, host.SurveyArgs{Programs: programs, Data: m.data})
		if err != nil {
			return err
		}
		m.survey = survey
		return m.checkCPUs()
	})
	if err != nil {
		return nil, err
	}
	return x, x.checkNetwork()
}

// checkCPUs sets the host's CPUs.
func (m *machine) checkCPUs() error {
	usable := m.survey.Facts.UsableCPUs()
	if len(m.cpus) == 0 {
		m.cpus = usable
	}
	for _, c := range m.cpus {
		if !slices.Contains(usable, c) {
			return fmt.Errorf("host %s: CPU %d is not usable there (offline, or outside the process's CPU set)", m.Name, c)
		}
	}
	return nil
}

// checkNetwork returns an error unless dedicated devices are in one network: a node's
// namespace has no other routes.
func (x *Executor) checkNetwork() error {
	if !x.dedicated || slices.ContainsFunc(x.machines, func(m *machine) bool { return m.survey.NoDevice != "" }) {
		return nil
	}
	first := x.machines[0].survey.Device.Addresses
	for _, m := range x.machines[1:] {
		for i, a := range m.survey.Device.Addresses {
			if i < len(first) && first[i].Masked() != a.Masked() {
				return fmt.Errorf("the data addresses %s of host %s and %s of host %s are in different networks; dedicated devices must be in one", first[i], x.machines[0].Name, a, m.Name)
			}
		}
	}
	return nil
}

// Hold takes the lock of each machine and removes the remains of killed runs there. It
// returns the names of the removed namespaces by host.
func (x *Executor) Hold(ctx context.Context) (map[string][]string, error) {
	var boots []string
	for _, m := range x.machines {
		boot := m.agent.Hello.Boot
		m.whole = boot == "" || !slices.Contains(boots, boot)
		boots = append(boots, boot)
	}
	err := parallel.Each(x.machines, func(_ int, m *machine) error { return m.service.Hold(ctx, host.HoldArgs{Machine: m.whole}) })
	if err != nil {
		return nil, err
	}
	cleaned := make([][]string, len(x.machines))
	err = parallel.Each(x.machines, func(i int, m *machine) (err error) {
		m.held = true
		if cleaned[i], err = m.service.Clean(ctx); err != nil || m.survey.NoDevice == "" {
			return err
		}
		m.survey.NoDevice = ""
		m.survey.Device, err = m.service.FindDevice(ctx, host.SurveyArgs{Data: m.data})
		return err
	})
	byHost := map[string][]string{}
	for i, m := range x.machines {
		byHost[m.Name] = cleaned[i]
	}
	if err == nil {
		err = x.checkNetwork()
	}
	return byHost, err
}

// Remove removes the windtunnel program from the hosts.
func (x *Executor) Remove(ctx context.Context) error {
	return parallel.Each(x.machines, func(_ int, m *machine) error { return m.service.Remove(ctx) })
}

// Facts describes the hosts, in their order. FineIdle reports whether all meters can
// read idle time exactly.
func (x *Executor) Facts() (facts []*probe.Facts, fineIdle bool) {
	fineIdle = true
	for _, m := range x.machines {
		f := m.survey.Facts
		facts = append(facts, f.Elsewhere("host "+m.Name, m.survey.Programs, m.survey.Lacks))
		fineIdle = fineIdle && m.survey.FineIdle
	}
	return facts, fineIdle
}

// closeTime is the maximum time to remove the nodes of all hosts.
const closeTime = 15 * time.Second

// Close removes the nodes and ends the connections.
func (x *Executor) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	err := parallel.Each(x.machines, func(_ int, m *machine) error { return m.close(ctx) })
	return errors.Join(err, os.RemoveAll(x.folder))
}

// Between implements testbed.Chooser.
func (x *Executor) Between(from, to string) (testbed.Executor, error) {
	pair := &Executor{dedicated: x.dedicated}
	for _, name := range []string{from, to} {
		i := slices.IndexFunc(x.machines, func(m *machine) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the testbed has no host %s; add it to the hosts file", name)
		}
		pair.machines = append(pair.machines, x.machines[i])
	}
	return pair, nil
}

// Layout implements testbed.Executor.
func (x *Executor) Layout(nodes int) (testbed.Layout, error) {
	if nodes > len(x.machines) {
		return testbed.Layout{}, fmt.Errorf("a testbed of %d nodes: the hosts file has %d hosts", nodes, len(x.machines))
	}
	return testbed.OnMachines(nodes, func(i int) (string, []int) { return x.machines[i].agent.Hello.Boot, x.machines[i].cpus }), nil
}

const network = "the existing network between hosts"

// Requires implements testbed.Executor.
func (x *Executor) Requires(sc *suite.Scenario, about system.About) ([]string, error) {
	f := sc.Fabric
	if err := remote.Offers(f, network); err != nil {
		return nil, err
	}
	if sc.Endpoint.Kind == suite.VM {
		return nil, errors.New("VMs as endpoints do not run on hosts that are reached by SSH")
	}
	for _, m := range x.machines {
		d := m.survey.Device
		if m.survey.NoDevice != "" {
			return nil, fmt.Errorf("host %s: %s; a killed run may have the device: `windtunnel lab clean --testbed` returns it", m.Name, m.survey.NoDevice)
		}
		if d.MTU != f.MTU {
			return nil, fmt.Errorf("host %s: device %s has MTU %d, and the scenario needs %d; set it on all hosts, such as `ip link set %s mtu %d`", m.Name, d.Name, d.MTU, f.MTU, d.Name, f.MTU)
		}
		if sc.Workload.IPVersion == 6 && m.Data6 == "" && about.OnNode {
			return nil, fmt.Errorf("host %s: the scenario needs IPv6; set `data6` in the hosts file", m.Name)
		}
		if x.dedicated && !m.survey.Root {
			return nil, fmt.Errorf("host %s: moving device %s to a network namespace needs root; log in as root or set `sudo: true` in the hosts file, or remove `dedicated: true`", m.Name, d.Name)
		}
		if x.dedicated && len(d.Blocks) > 0 {
			return nil, fmt.Errorf("host %s: device %s cannot be moved to a network namespace: %s", m.Name, d.Name, d.Blocks[0])
		}
		if err := x.offload(d, sc); err != nil {
			return nil, fmt.Errorf("host %s: %w", m.Name, err)
		}
	}
	if !x.dedicated && !about.OnNode {
		return nil, fmt.Errorf("%s needs a network namespace with the host's data device; set `dedicated: true` in the hosts file if the data devices carry nothing else", sc.System)
	}
	if x.dedicated {
		return []string{probe.Netns}, nil
	}
	return nil, nil
}

// offload returns an error if a device does not have a scenario's offload profile and the lab
// cannot set it. The lab changes dedicated devices only.
func (x *Executor) offload(d host.Device, sc *suite.Scenario) error {
	if x.dedicated {
		return d.CanOffload(sc.Fabric.Offload, sc.Workload.IPVersion)
	}
	if err := d.HasOffload(sc.Fabric.Offload, sc.Workload.IPVersion, false); err != nil {
		return fmt.Errorf("%w; or set `dedicated: true` in the hosts file, and the lab sets it for the time of the run", err)
	}
	return nil
}

// Up implements testbed.Executor.
func (x *Executor) Up(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	layout, err := x.Layout(spec.Nodes)
	if err == nil {
		layout, err = layout.Limit(spec.Fabric.CPUs)
	}
	if err != nil {
		return nil, err
	}
	tb := &remote.Network[*node]{CPUs: layout, Name: network, MTU: spec.Fabric.MTU, Offloads: "the lab does not change the offloads of the devices"}
	if x.dedicated && spec.Fabric.Offload != suite.OffloadKept {
		tb.Offloads = fmt.Sprintf("the lab set offload %s on the devices", spec.Fabric.Offload)
	}
	for i, m := range x.machines[:spec.Nodes] {
		n := &node{machine: m, offload: spec.Fabric.Offload, Node: remote.Node{
			ID: m.Name, Data: m.data, Args: agent.AttachArgs{Fabric: []string{m.survey.Device.Name}, CPUs: layout.Nodes[i]},
		}}
		if x.dedicated {
			n.Args.SpaceBase = space.TestbedPrefix(spec.ID) + n.suffix()
		}
		tb.List = append(tb.List, n)
	}
	return tb, tb.Start(ctx, parallel.Each)
}

// node is a compute node on a host. Args.SpaceBase is its namespace; "" for the host's.
type node struct {
	*machine
	remote.Node
	offload suite.Offload
}

// Start implements remote.Member: it prepares the node and starts its agent.
func (n *node) Start(ctx context.Context) (err error) {
	if err := n.connect(ctx); err != nil {
		return err
	}
	d := n.survey.Device
	if n.Settings, err = n.service.Prepare(ctx, host.PrepareArgs{Space: n.Args.SpaceBase, Device: d, Addresses: d.Addresses, Offloads: d.Offloads(n.offload), Kept: n.offload == suite.OffloadKept}); err != nil {
		return err
	}
	n.Main, err = n.startAgent(ctx, host.AgentArgs(n.Args.SpaceBase, n.CPUs())...)
	if err != nil {
		return fmt.Errorf("host %s: %w", n.ID, err)
	}
	if got := n.Hello().CPUs; !slices.Equal(got, n.CPUs()) {
		return fmt.Errorf("the agent of host %s runs on CPUs %v, not on %v: a cpuset forbids it", n.ID, got, n.CPUs())
	}
	return nil
}

// Stop implements remote.Member. If the agent was lost, Stop removes the node, and the
// connection if that fails. The loss is no error here, because the agent's calls have
// failed.
func (n *node) Stop(ctx context.Context) error {
	if n.Main == nil {
		return nil
	}
	lost, err := n.Main.End(ctx)
	n.Main = nil
	if err != nil {
		return fmt.Errorf("host %s: %w", n.ID, err)
	}
	if !lost {
		return nil
	}
	if n.Args.SpaceBase != "" {
		err = n.service.Discard(ctx, n.Args.SpaceBase)
	} else {
		err = n.service.Ping(ctx)
	}
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.drop()
	}
	return nil
}
