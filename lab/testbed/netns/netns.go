// Package netns makes a testbed on one machine. Compute nodes are network namespaces with
// separate CPUs. The fabric is a namespace between them.
package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/lab/agent"
	"windtunnel/lab/delayline"
	"windtunnel/lab/meter"
	"windtunnel/lab/parallel"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
)

// Executor makes testbeds of network namespaces.
type Executor struct {
	CPUs  []int          // usable CPUs
	Given testbed.Layout // assignment of the CPUs; Layout plans one if it is zero
	Agent []string       // argv of the agent program
	Line  []string       // argv of the program that delays frames, delayline.Serve

	countPlaces bool // for tests: see bpf/wire.c
}

// Testbed is nodes and a fabric on this machine.
type Testbed struct {
	id     string
	layout testbed.Layout
	spec   testbed.Spec
	nodes  []*node
	wire   *wire  // nil for a plain veth pair
	marks  *marks // nil if nothing reads the DSCP of frames
	warn   []string

	countPlaces bool
}

// Up makes the testbed and starts an agent on each node. If it fails, it
// removes all that it has made.
func (x *Executor) Up(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := x.up(ctx, spec)
	if err != nil {
		return nil, err
	}
	return tb, nil
}

func (x *Executor) up(ctx context.Context, spec testbed.Spec) (_ *Testbed, err error) {
	layout, err := x.Layout(spec.Nodes)
	if err == nil {
		layout, err = layout.Limit(spec.Fabric.CPUs)
	}
	if err != nil {
		return nil, err
	}
	tb := &Testbed{id: spec.ID, layout: layout, spec: spec, countPlaces: x.countPlaces}
	defer func() {
		if err != nil {
			err = errors.Join(err, tb.Down(context.WithoutCancel(ctx)))
		}
	}()
	if layout.Shared {
		tb.warn = append(tb.warn, fmt.Sprintf("%d nodes share %d CPUs: their CPU figures cannot be told apart", spec.Nodes, len(x.CPUs)))
	}
	if spec.Fabric.Unpinned {
		tb.warn = append(tb.warn, "the nodes are not pinned: the programs of each node may run on the CPUs of all nodes, so the CPU time of one node is not known")
	}
	for i := range spec.Nodes {
		n, err := newNode(spec.ID, i, layout, spec.Fabric)
		if err != nil {
			return nil, err
		}
		tb.nodes = append(tb.nodes, n)
	}
	if spec.Fabric.Kind == suite.Veth {
		err = tb.joinByVeth()
	} else {
		err = tb.joinByWire(x.Line)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range tb.nodes {
		if err := n.route(len(tb.nodes)); err != nil {
			return nil, err
		}
		for i := range tb.nodes {
			n.underlay = append(n.underlay, tb.nodes[i].Addr(4))
		}
		n.steer = spec.Fabric.Kind == suite.Veth
	}
	return tb, parallel.Each(tb.nodes, func(_ int, n *node) error { return n.startAgent(ctx, x.Agent) })
}

// Layout implements testbed.Executor.
func (x *Executor) Layout(nodes int) (testbed.Layout, error) {
	l := x.Given
	switch {
	case len(l.Nodes) == 0:
		return testbed.PlanCPUs(x.CPUs, nodes)
	case len(l.Nodes) < nodes:
		return l, fmt.Errorf("a testbed of %d nodes: CPUs were given to %d; give some to every node", nodes, len(l.Nodes))
	}
	l.Nodes = l.Nodes[:nodes]
	return l, nil
}

// Requires implements testbed.Executor.
func (x *Executor) Requires(sc *suite.Scenario, _ system.About) (features []string, err error) {
	f := sc.Fabric
	if f.Kind == suite.Existing {
		return nil, errors.New("its fabric is an existing network, which joins the hosts of --testbed")
	}
	features = []string{"netns", "veth"}
	if f.Kind == suite.Wire {
		features = append(features, "clsact", "bpf")
	}
	if f.RxChecksum == suite.RxChecksumOuter {
		features = append(features, "bridge")
	}
	if f.Rate > 0 {
		features = append(features, "tbf")
	}
	if f.Delay > 0 {
		features = append(features, "packet")
	}
	if f.CPUShare > 0 {
		features = append(features, "cpu-share")
	}
	return features, nil
}

// Nodes lists the nodes in order.
func (tb *Testbed) Nodes() []testbed.Node {
	var ns []testbed.Node
	for _, n := range tb.nodes {
		ns = append(ns, n)
	}
	return ns
}

// Layout returns the CPUs of the nodes, the fabric and the engine.
func (tb *Testbed) Layout() testbed.Layout { return tb.layout }

// Fabric is the underlay.
func (tb *Testbed) Fabric() testbed.Fabric { return tb }

// Clock implements testbed.Fabric.
func (tb *Testbed) Clock() (map[int]float64, error) {
	if tb.wire == nil {
		return nil, nil
	}
	return tb.wire.clock()
}

// Meter implements testbed.Fabric.
func (tb *Testbed) Meter() (*meter.Meter, error) {
	if tb.wire == nil {
		return nil, nil
	}
	cpus := slices.Concat(tb.layout.Nodes...)
	config := meter.Config{Node: meter.WireNode, CPUs: append(cpus, tb.layout.Wire...), Namespaces: []meter.Namespace{{NS: tb.wire.space.NS, NoSockets: true}}}
	for i, p := range tb.wire.ports {
		config.Devices = append(config.Devices, meter.Device{Name: p, Role: meter.RolePort, Order: i})
	}
	return meter.New(config)
}

// Cut implements testbed.Fabric.
func (tb *Testbed) Cut() error {
	last := tb.spec.Fabric.Links - 1
	var ports []string
	for i := range tb.nodes {
		ports = append(ports, portDevice(i, last))
	}
	return tb.wire.cut(ports)
}

// Warnings implements testbed.Fabric.
func (tb *Testbed) Warnings() []string {
	w := slices.Clone(tb.warn)
	if tb.wire != nil && tb.wire.unmetred != "" {
		w = append(w, "the wire's own CPU time is not kept off the nodes': "+tb.wire.unmetred)
	}
	return w
}

// Describe implements testbed.Fabric.
func (tb *Testbed) Describe() string {
	f := tb.spec.Fabric
	var b strings.Builder
	if tb.wire == nil {
		b.WriteString("a plain veth pair; superframes cross it whole, so a receiver looks cheaper than behind a NIC")
	} else {
		b.WriteString("two NICs and a wire: ports cut superframes to the MTU, receivers merge them by GRO in threaded NAPI, a full ring stops the sender's queue")
	}
	fmt.Fprintf(&b, "; MTU %d, offload %s", f.MTU, f.Offload)
	if tb.wire != nil {
		fmt.Fprintf(&b, ", %s", coalescingOf(f))
	}
	if f.RxChecksum != suite.RxChecksumAll {
		fmt.Fprintf(&b, ", checksums that NICs verify: %s", f.RxChecksum)
	}
	if f.Rate > 0 {
		fmt.Fprintf(&b, ", %d bit/s", f.Rate)
	}
	if f.Delay > 0 {
		fmt.Fprintf(&b, ", %v delay each way", f.Delay)
	}
	if f.Loss > 0 {
		fmt.Fprintf(&b, ", %.4g %% of the frames lost each way", 100*f.Loss)
	}
	if f.CPUShare > 0 {
		fmt.Fprintf(&b, ", %.3g %% of each node's CPU time", 100*f.CPUShare)
	}
	if f.Unpinned {
		b.WriteString(", programs and NICs' threads of each node on the CPUs of all nodes")
	}
	if f.Links > 1 {
		fmt.Fprintf(&b, ", %d links", f.Links)
	}
	if bonded(f) && len(tb.nodes) > 0 {
		fmt.Fprintf(&b, " as one device (%s)", tb.nodes[0].team)
	}
	if f.Queues > 1 {
		fmt.Fprintf(&b, ", %d queues", f.Queues)
	}
	if f.Steering == suite.ByMAC {
		b.WriteString(", the wire chooses the queue by destination MAC address, in place of the NIC")
	}
	if f.MovingQueues {
		b.WriteString(", the scheduler moves the queues' threads among the node's CPUs")
	}
	return b.String()
}

// Settings implements testbed.Testbed.
func (tb *Testbed) Settings() space.Settings {
	var all space.Settings
	for _, n := range tb.nodes {
		all.Add(n.Name(), n.space.Settings())
		if n.team != nil {
			all.Note(n.Name()+" team", n.team.String())
		}
	}
	if tb.wire != nil {
		all.Add("wire", tb.wire.space.Settings())
	}
	return all
}

// Down ends the agents and removes every namespace of the testbed. If an
// agent did not end normally, it also ends that agent's children. It continues after errors
// and returns all of them.
func (tb *Testbed) Down(ctx context.Context) error {
	var errs []error
	if tb.wire != nil { // before the devices are removed, which the delay lines use
		errs = append(errs, tb.wire.stopLines((*delayline.Process).Stop))
	}
	killed := false
	for _, n := range tb.nodes {
		errs = append(errs, n.release(ctx))
		killed = killed || n.killed
	}
	if killed { // before the namespaces are removed, because they identify the processes
		_, err := space.Clean(space.TestbedPrefix(tb.id))
		errs = append(errs, err)
	}
	for _, n := range tb.nodes {
		errs = append(errs, n.remove())
	}
	if tb.wire != nil {
		name := tb.wire.space.Name
		errs = append(errs, tb.marks.close(), tb.wire.close(), space.Delete(name))
	}
	tb.nodes, tb.wire = nil, nil
	return errors.Join(errs...)
}

// Release ends the agents and keeps the namespaces, the devices and the delay lines.
func (tb *Testbed) Release(ctx context.Context) error {
	var errs []error
	for _, n := range tb.nodes {
		errs = append(errs, n.release(ctx))
	}
	if tb.wire != nil {
		errs = append(errs, tb.wire.stopLines((*delayline.Process).Keep), tb.marks.close(), tb.wire.close())
	}
	return errors.Join(errs...)
}

func (n *node) Addr(version int) netip.Addr {
	if n.fabric.Links > 1 && !bonded(n.fabric) {
		return steady(n.index, version).Addr()
	}
	return underlay(n.index, 0, version).Addr()
}

func (n *node) Attachment() agent.AttachArgs {
	args := agent.AttachArgs{
		Index:     n.index,
		SpaceBase: n.space.Name,
		Fabric:    n.uplinks(),
		Underlay:  n.underlay,
		MTU:       n.fabric.MTU,
		CPUs:      n.allowed,
		Unpinned:  n.fabric.Unpinned,
		Steer:     n.steer,
	}
	if n.team != nil {
		args.Team = n.team.nics
	}
	return args
}

func (n *node) Agent() *agent.Client { return n.agent }

func (n *node) Hello() agent.Hello { return n.hello }
