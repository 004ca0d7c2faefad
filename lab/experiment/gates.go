package experiment

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/lab/agent"
	"windtunnel/lab/meter"
	"windtunnel/lab/meter/foreign"
	"windtunnel/lab/sample"
	"windtunnel/lab/testbed"
	"windtunnel/lab/validity"
)

// quietFor is how long the fabric must be quiet after the tools have ended.
const quietFor = 50 * time.Millisecond

// gates holds the settings and readings that only the gates need.
type gates struct {
	watchers []int    // by node: index of the node whose agent watches its machine
	blind    []string // by node: why its agent cannot measure foreign CPU time; "" if it can
	quiet    *float64 // bits per second on the fabric after the tools' end
}

// watchMachines chooses one agent on each machine. This agent measures work outside
// the experiment.
func (m *meters) watchMachines(ctx context.Context) error {
	m.gates.blind = make([]string, len(m.nodes))
	for i, n := range m.nodes {
		first := slices.IndexFunc(m.nodes[:i], func(o testbed.Node) bool { return sameKernel(o, n.Hello().Boot) })
		if first >= 0 {
			m.gates.watchers = append(m.gates.watchers, first)
			continue
		}
		args, err := m.traffic.bench.watchArgs(ctx, n)
		if err != nil {
			return err
		}
		reply, err := n.Agent().MachineWatch(ctx, args)
		if err != nil {
			return err
		}
		m.gates.watchers = append(m.gates.watchers, i)
		m.gates.blind[i] = reply.Blind
	}
	return nil
}

// watchArgs lists the CPUs and programs of the experiment on the machine of a node.
// They include the engine's if the engine runs on this machine.
func (b *Bench) watchArgs(ctx context.Context, on testbed.Node) (args agent.WatchArgs, err error) {
	for _, n := range b.Testbed.Nodes() {
		if n != on && !sameKernel(n, on.Hello().Boot) {
			continue
		}
		id, err := n.Agent().Identity(ctx)
		if err != nil {
			return args, err
		}
		args.Nodes = append(args.Nodes, n.CPUs()...)
		args.Namespaces = append(args.Namespaces, id.Namespaces...)
		args.Processes = append(args.Processes, id.PID)
	}
	args.Taken = slices.Clone(args.Nodes)
	if sameKernel(on, agent.Boot()) {
		layout := b.Testbed.Layout()
		args.Taken = append(append(args.Taken, layout.Wire...), layout.Engine...)
		args.Processes = append(args.Processes, os.Getpid())
		if d, ok := b.Testbed.(testbed.Delaying); ok {
			args.Processes = append(args.Processes, d.LinePIDs()...)
		}
	}
	return args, nil
}

// listen measures the traffic on the fabric after the tools' end.
func (m *meters) listen(ctx context.Context) error {
	before, err := m.glance(ctx)
	if err != nil {
		return err
	}
	if err := pause.For(ctx, quietFor); err != nil {
		return err
	}
	after, err := m.glance(ctx)
	if err != nil {
		return err
	}
	if bits, ok := meter.Moved(before, after); ok {
		m.gates.quiet = &bits
	}
	return nil
}

// judge sets the gates and flags of the sample. A check that this machine cannot do
// becomes a warning.
func (m *meters) judge(deltas []*meter.Delta) error {
	s := m.traffic.sample
	in := validity.Input{
		Workload: m.traffic.bench.scenario.Workload, Metrics: s.Metrics, Series: s.Series,
		Window: deltas[0].Seconds, Step: seriesInterval.Seconds(),
		Quiet: m.gates.quiet, Stray: map[int]float64{}, Unknown: map[sample.GateName]string{},
	}
	for i, n := range m.nodes {
		side := validity.Side{Node: n.Name(), CPUs: len(n.CPUs()), Readings: m.readings(i)}
		quota := deltas[i].Throttled
		side.Group, side.Periods, side.Throttled = quota.Group, quota.Periods, quota.Throttled
		watcher := m.gates.watchers[i]
		before, after := m.start.machines[watcher], m.end.machines[watcher]
		if why := m.gates.blind[watcher]; why != "" {
			in.Unknown[sample.ForeignCPU] = why
		} else {
			used := m.withoutControlPlane(foreign.Between(before.Foreign, after.Foreign, n.CPUs()), i, in.Window)
			side.Foreign = &used.Foreign
			side.Culprit, side.CulpritTook = used.Culprit()
		}
		if percent, ok := side.ForeignPercent(in.Window); ok {
			s.Metrics.Set([...]sample.Metric{sample.SenderForeignCPU, sample.ReceiverForeignCPU}[i], percent)
		}
		in.Sides = append(in.Sides, side)
		if err := addStray(in.Stray, before.Others, after.Others); err != nil {
			return err
		}
		if step, ok := meter.WallStep(m.start.nodes[i], m.end.nodes[i]); ok && (in.ClockStep == nil || step.Abs().Seconds() > math.Abs(*in.ClockStep)) {
			seconds := step.Seconds()
			in.ClockStep = &seconds
		}
	}
	var unjudged []string
	s.Gates, s.Flags, unjudged = validity.Judge(in, validity.Default)
	for _, why := range unjudged {
		s.Warnings = append(s.Warnings, "not checked: "+why)
	}
	return nil
}

// withoutControlPlane records the CPU time of the testbed's control plane on a node, and returns the
// usage of the other programs.
func (m *meters) withoutControlPlane(used foreign.Usage, node int, window float64) foreign.Usage {
	tb, ok := m.traffic.bench.Testbed.(testbed.Controlled)
	if !ok {
		return used
	}
	plane, others := used.Split(tb.ControlPlane())
	if plane.Foreign > 0 && window > 0 {
		m.traffic.sample.Metrics.Set(sample.GroupCores([...]string{meter.SenderSide, meter.ReceiverSide}[node], sample.ControlPlane), plane.Foreign/window)
	}
	return others
}

// addStray records the softirq shares of the CPUs that the experiment does not use.
// If a CPU has a share already, the larger one stays.
func addStray(stray map[int]float64, before, after meter.Reading) error {
	if len(before.CPUs) == 0 {
		return nil
	}
	d, err := meter.Window(before, after)
	if err != nil {
		return fmt.Errorf("compute the softirq shares of the CPUs outside the experiment: %w", err)
	}
	for cpu, share := range d.SoftirqShares() {
		stray[cpu] = max(stray[cpu], share)
	}
	return nil
}

// readings returns the times of a node's series, in s since the window began.
func (m *meters) readings(node int) []float64 {
	var at []float64
	for _, l := range m.series[node] {
		at = append(at, float64(l.Mono-m.start.nodes[0].Mono)/1e9)
	}
	return at
}

// warnOnly turns the sample's gates into flags.
func warnOnly(s *sample.Sample) {
	s.Gates, s.Flags = nil, slices.Concat(s.Gates, s.Flags)
}
