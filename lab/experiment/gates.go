package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"windtunnel/lab/meter"
	"windtunnel/lab/meter/foreign"
	"windtunnel/lab/sample"
	"windtunnel/lab/validity"
)

// Watch meters the CPU time of programs outside the experiment.
type Watch struct {
	Foreign *foreign.Meter // nil where the kernel does not allow it
	Why     string         // reason for a nil Foreign
}

// allow registers the bench's programs, so that their CPU time is not foreign.
func (w Watch) allow(ctx context.Context, b *Bench) error {
	if w.Foreign == nil {
		return nil
	}
	var namespaces []uint32
	var processes []int
	for _, n := range b.Testbed.Nodes() {
		id, err := n.Agent().Identity(ctx)
		if err != nil {
			return err
		}
		namespaces = append(namespaces, id.Namespaces...)
		processes = append(processes, id.PID)
	}
	return w.Foreign.Allow(namespaces, processes)
}

// quietFor is how long the fabric must be quiet after the tools have ended.
const quietFor = 50 * time.Millisecond

// gates holds the readings that only the gates need.
type gates struct {
	watch  Watch
	others *meter.Meter // CPUs without a part in the experiment; nil where there are none
	quiet  *float64     // bits per second on the fabric after the tools' end
}

// gateEdge holds these readings at one edge of the window.
type gateEdge struct {
	foreign map[int]foreign.Usage
	others  meter.Reading
}

func newGates(watch Watch, b *Bench) (*gates, error) {
	layout := b.Testbed.Layout()
	taken := slices.Concat(append(layout.Nodes, layout.Wire, layout.Engine)...)
	others, err := meter.NewOthers(taken)
	if err != nil {
		return nil, err
	}
	return &gates{watch: watch, others: others}, nil
}

func (g *gates) read() (e gateEdge, err error) {
	if g.watch.Foreign != nil {
		e.foreign, err = g.watch.Foreign.Read()
	}
	if g.others != nil {
		var otherErr error
		e.others, otherErr = g.others.Read()
		err = errors.Join(err, otherErr)
	}
	return e, err
}

func (g *gates) close() {
	if g.others != nil {
		g.others.Close()
	}
}

// listen measures the traffic on the fabric after the tools' end.
func (m *metering) listen(ctx context.Context) error {
	before, err := m.glance(ctx)
	if err != nil {
		return err
	}
	if err := sleepUntil(ctx, time.Now().Add(quietFor)); err != nil {
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
func (m *metering) judge(deltas []*meter.Delta) error {
	s := m.traffic.sample
	in := validity.Input{
		Workload: m.traffic.scenario.Workload, Metrics: s.Metrics, Series: s.Series,
		Window: deltas[0].Seconds, Step: seriesInterval.Seconds(),
		Quiet: m.gates.quiet, Stray: map[int]float64{}, Unknown: map[sample.GateName]string{},
	}
	if m.gates.watch.Foreign == nil {
		in.Unknown[sample.ForeignCPU] = m.gates.watch.Why
	}
	for i, n := range m.nodes {
		side := validity.Side{Node: n.Name(), CPUs: len(n.CPUs()), Readings: m.readings(i)}
		if m.gates.watch.Foreign != nil {
			used := foreign.Between(m.start.gates.foreign, m.end.gates.foreign, n.CPUs())
			side.Foreign = &used.Foreign
			side.Culprit, side.CulpritTook = used.Culprit()
		}
		if percent, ok := side.ForeignPercent(in.Window); ok {
			s.Metrics.Set([...]sample.Metric{sample.SenderForeignCPU, sample.ReceiverForeignCPU}[i], percent)
		}
		in.Sides = append(in.Sides, side)
	}
	if m.gates.others != nil {
		d, err := meter.Window(m.start.gates.others, m.end.gates.others)
		if err != nil {
			return fmt.Errorf("read the CPUs without a part in the experiment: %w", err)
		}
		in.Stray = d.SoftirqShares()
	}
	if step, ok := meter.WallStep(m.start.nodes[0], m.end.nodes[0]); ok {
		seconds := step.Seconds()
		in.ClockStep = &seconds
	}
	var unjudged []string
	s.Gates, s.Flags, unjudged = validity.Judge(in, validity.Default)
	for _, why := range unjudged {
		s.Warnings = append(s.Warnings, "not checked: "+why)
	}
	return nil
}

// readings returns the times of a node's series, in s since the window began.
func (m *metering) readings(node int) []float64 {
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
