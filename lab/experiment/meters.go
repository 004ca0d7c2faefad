package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/lab/agent"
	"windtunnel/lab/condition"
	"windtunnel/lab/cpudistance"
	"windtunnel/lab/delayline"
	"windtunnel/lab/meter"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/tool"
)

// meters reads both nodes, the fabric and the engine at the two edges of one
// window, and a time series around it.
type meters struct {
	traffic *toolRun
	nodes   []testbed.Node // the sender's node, then the receiver's if it differs
	wire    *meter.Meter   // nil where the fabric has no ports
	began   int64          // CLOCK_MONOTONIC when traffic began, ns
	start   edge
	end     edge
	series  [][]meter.Light // by node

	profiles   []*folded.Profile // by node; empty without the profiler
	gates      gates
	conditions *conditionLog
}

// edge holds all readings at one edge of the window.
type edge struct {
	nodes    []meter.Reading
	machines []agent.MachineReading // by node; empty if its agent does not watch the machine
	wire     meter.Reading
	clock    map[int]float64
	marks    map[string]testbed.Marks // by the name of the node; nil if the fabric does not read them
	delays   delayline.Reading
	engine   float64 // CPU seconds
}

const (
	seriesInterval = 100 * time.Millisecond
	glanceInterval = 500 * time.Millisecond
	// margin is the time from each edge of a tool's window to the reading of the meters at this edge, if the reading
	// must lie inside the tool's window: connecting takes a few milliseconds, and a tool's clock starts after ours.
	margin = 20 * time.Millisecond
	// lead is the time from the start of the first reading to the start of the tool's window, if the reading must lie
	// before this window. On a full CPU a reading takes some milliseconds, or tens of milliseconds with a thousand connections.
	lead = 60 * time.Millisecond
	// lag is the time from the planned end of the tool's window to the last reading, if the reading must lie after this
	// window. The tool prints that traffic begins up to some milliseconds before its clock starts.
	lag = 5 * time.Millisecond
)

func newMeters(ctx context.Context, t *toolRun) (*meters, error) {
	pair := t.bench.Pairs[0]
	m := &meters{traffic: t, nodes: []testbed.Node{pair.Sender.Node}}
	if pair.Receiver.Node.Name() != pair.Sender.Node.Name() {
		m.nodes = append(m.nodes, pair.Receiver.Node)
	}
	var err error
	if m.wire, err = t.bench.Testbed.Fabric().Meter(); err != nil {
		return nil, fmt.Errorf("meter the fabric's ports: %w", err)
	}
	if err := m.watchMachines(ctx); err != nil {
		return nil, err
	}
	tm := t.bench.scenario.Timing
	most := int((tm.Warmup+tm.Duration+tm.Cooldown+3*t.readyTimeout())/seriesInterval) + 1
	for i, n := range m.nodes {
		args := agent.MeterArgs{
			Node: n.Name(), CPUs: n.CPUs(), Devices: m.devices(i),
			Ports: meter.PortRange{First: basePort, Last: uint16(basePort + portsPerPair*len(t.bench.Pairs) - 1)},
			Every: seriesInterval, Most: most, FineIdle: t.fineIdle,
		}
		if err := n.Agent().MeterStart(ctx, args); err != nil {
			return nil, err
		}
	}
	probe, err := t.probe()
	if err != nil {
		return nil, err
	}
	m.conditions = record(seriesInterval, probe, t.bench.Testbed.Fabric().Clock)
	return m, m.startProfiles(ctx)
}

// probe measures the distance between the first CPUs of the two nodes. It returns
// nil if the nodes share CPUs, if a node runs on another machine than the engine, or
// if the choice is condition.Off.
func (t *toolRun) probe() (*cpudistance.Probe, error) {
	layout := t.bench.Testbed.Layout()
	elsewhere := slices.ContainsFunc(t.bench.Testbed.Nodes(), func(n testbed.Node) bool { return !sameKernel(n, agent.Boot()) })
	if elsewhere || layout.Shared || len(layout.Nodes) < 2 || t.conditions.Choice == condition.Off {
		return nil, nil
	}
	return t.conditions.between(layout.Nodes[0][0], layout.Nodes[1][0])
}

// devices lists a node's hops. The series follows the fabric's devices. If both
// endpoints are on one node, it follows the receivers' devices; a VM's device
// cannot be read there, so the series follows the senders' taps.
func (m *meters) devices(node int) []meter.Device {
	inVMs := m.traffic.bench.scenario.Endpoint.Kind == suite.VM
	receivers, taps := map[string]bool{}, map[string]bool{}
	for _, p := range m.traffic.bench.Pairs {
		receivers[p.Receiver.Name] = true
		taps[system.Endpoint{Name: p.Sender.Name}.Tap()] = inVMs
	}
	var ds []meter.Device
	for _, d := range m.traffic.bench.devices[node] {
		series := d.Role == meter.RoleFabric
		if m.colocated() {
			series = d.Role == meter.RoleEndpoint && receivers[d.Endpoint] && !inVMs || d.Role == meter.RoleVif && taps[d.Name]
		}
		ds = append(ds, meter.Device{Namespace: d.Endpoint, Name: d.Name, Role: d.Role, Series: series, Order: len(ds)})
	}
	return ds
}

func (m *meters) colocated() bool { return len(m.nodes) == 1 }

// edges returns the times of the first and of the last reading of the meters, since traffic began. A reading takes CPU time
// from the traffic. So the first one should lie before the tool's window, and the last one after it. For this, the tool's
// timing must be exact (tool.Process.Exact), and its cool-down must be long enough for a reading. Otherwise both readings lie
// inside the tool's window. They lie inside it with VMs too, because the tool's message that traffic begins can arrive late.
func (t *toolRun) edges() (from, to time.Duration) {
	tm := t.bench.scenario.Timing
	from, to = tm.Warmup, tm.Warmup+tm.Duration
	exact := t.bench.scenario.Endpoint.Kind != suite.VM && tm.Cooldown >= lag+margin
	for _, r := range t.runs {
		exact = exact && r.plan[len(r.plan)-1].Exact
	}
	if !exact {
		return from + margin, to - margin
	}
	return from - min(lead, tm.Warmup), to + lag
}

// window waits for the window, reads both of its edges, and reports the traffic
// between them.
func (m *meters) window(ctx context.Context, started time.Time) error {
	tm := m.traffic.bench.scenario.Timing
	now, err := meter.Now()
	if err != nil {
		return err
	}
	m.began = now - int64(time.Since(started))
	if err := m.track(ctx); err != nil {
		return err
	}
	from, to := m.traffic.edges()
	if err := pause.For(ctx, time.Until(started.Add(from))); err != nil {
		return err
	}
	if m.start, err = m.read(ctx); err != nil {
		return err
	}
	if cut := m.traffic.bench.scenario.Fabric.Cut; cut > 0 {
		if err := m.watch(ctx, started.Add(tm.Warmup+cut)); err != nil {
			return err
		}
		if err := m.traffic.bench.Testbed.Fabric().Cut(); err != nil {
			return err
		}
	}
	if err := m.watch(ctx, started.Add(to)); err != nil {
		return err
	}
	m.end, err = m.read(ctx)
	return err
}

// track registers the tool's processes with the meters.
func (m *meters) track(ctx context.Context) error {
	for _, r := range m.traffic.runs {
		for i, p := range r.processes {
			label := meter.ReceiverSide
			if r.plan[i].On == tool.OnSender {
				label = meter.SenderSide
			}
			at := r.at(r.plan[i].On)
			if err := at.Node.Agent().MeterTrack(ctx, at.tracked(p, label)); err != nil {
				return err
			}
		}
	}
	return nil
}

// read takes all readings of one edge, those of the nodes in parallel.
func (m *meters) read(ctx context.Context) (edge, error) {
	e := edge{nodes: make([]meter.Reading, len(m.nodes)), machines: make([]agent.MachineReading, len(m.nodes))}
	errs := make([]error, len(m.nodes))
	var reading sync.WaitGroup
	for i, n := range m.nodes {
		reading.Go(func() {
			r, err := n.Agent().MeterRead(ctx)
			e.nodes[i], e.machines[i], errs[i] = r.Node, r.Machine, err
		})
	}
	clock, err := m.traffic.bench.Testbed.Fabric().Clock()
	e.clock = clock
	if d, ok := m.traffic.bench.Testbed.(testbed.Delaying); ok {
		e.delays = d.Delays()
	}
	reading.Wait()
	errs = append(errs, err)
	e.marks, err = m.traffic.bench.Testbed.Fabric().Marks()
	errs = append(errs, err)
	if m.wire != nil {
		e.wire, err = m.wire.Read()
		errs = append(errs, err)
	}
	var u syscall.Rusage
	errs = append(errs, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	e.engine = time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	return e, errors.Join(errs...)
}

// watch reports the traffic until the window ends.
func (m *meters) watch(ctx context.Context, end time.Time) error {
	var before []meter.Light
	for {
		next := time.Now().Add(glanceInterval)
		if !next.Before(end) {
			return pause.For(ctx, time.Until(end))
		}
		now, err := m.glance(ctx)
		if err != nil {
			return err
		}
		if before != nil {
			m.show(before, now)
		}
		before = now
		if err := pause.For(ctx, time.Until(next)); err != nil {
			return err
		}
	}
}

func (m *meters) glance(ctx context.Context) ([]meter.Light, error) {
	var ls []meter.Light
	for _, n := range m.nodes {
		l, err := n.Agent().MeterGlance(ctx)
		if err != nil {
			return nil, err
		}
		ls = append(ls, l)
	}
	return ls, nil
}

func (m *meters) show(before, now []meter.Light) {
	series := make([][]meter.Light, len(now))
	for i := range now {
		series[i] = []meter.Light{before[i], now[i]}
	}
	sc := m.traffic.bench.scenario
	facts := meter.Facts{Colocated: m.colocated(), Unpinned: sc.Fabric.Unpinned, Direction: sc.Workload.Direction}
	if points := m.points(series, nil, before[0].Mono, facts); len(points) > 0 {
		m.traffic.moved(points[len(points)-1])
	}
}

// points merges the time series of the nodes and of the wire; see meter.Points.
func (m *meters) points(series [][]meter.Light, wire []meter.WireReading, origin int64, f meter.Facts) []sample.Point {
	sender := meter.SeriesSide{Lights: series[0], CPUs: m.nodes[0].CPUs()}
	if m.colocated() {
		return meter.Points(sender, nil, wire, origin, f)
	}
	return meter.Points(sender, &meter.SeriesSide{Lights: series[1], CPUs: m.nodes[1].CPUs()}, wire, origin, f)
}

// stop ends the meters and fetches the series. It converts all times to the engine's
// clock.
func (m *meters) stop(ctx context.Context) error {
	var errs []error
	for _, n := range m.nodes {
		points, err := n.Agent().MeterStop(ctx)
		m.series = append(m.series, points)
		errs = append(errs, err)
	}
	errs = append(errs, m.conditions.finish(), m.stopProfiles(ctx))
	m.alignClocks()
	return errors.Join(errs...)
}

// alignClocks converts the times of the nodes' readings to the engine's clock.
func (m *meters) alignClocks() {
	for i, ahead := range m.traffic.bench.clocks[:len(m.nodes)] {
		for _, e := range []*edge{&m.start, &m.end} {
			if e.nodes != nil {
				e.nodes[i].Mono -= int64(ahead)
			}
		}
		for j := range m.series[i] {
			m.series[i][j].Mono -= int64(ahead)
		}
	}
}

// close closes the engine's meters.
func (m *meters) close() {
	if m.wire != nil {
		m.wire.Close()
	}
	if m.conditions != nil {
		_ = m.conditions.finish() // stop has returned this error, or the trial has no figures
	}
}

// complete fills the sample with the results of the tool and of the meters.
func (m *meters) complete(said tool.Measurement) error {
	s := m.traffic.sample
	var deltas []*meter.Delta
	for i := range m.nodes {
		d, err := meter.Window(m.start.nodes[i], m.end.nodes[i])
		if err != nil {
			return failed(sample.Invalid, "%w", err)
		}
		deltas = append(deltas, &d)
	}
	sender, receiver := deltas[0], (*meter.Delta)(nil)
	if !m.colocated() {
		receiver = deltas[1]
	}
	facts, err := m.facts(said)
	if err != nil {
		return err
	}
	s.Metrics = meter.Metrics(sender, receiver, facts)
	s.Metrics.Merge(said.Metrics)
	m.setDSCPShare()
	s.Latency = said.Latency
	s.Hops = meter.Hops(sender, receiver, facts)
	if err := m.keepProfiles(); err != nil {
		return err
	}
	b := m.traffic.bench
	s.Warnings = slices.Concat(s.Warnings, said.Warnings, b.Testbed.Fabric().Warnings(), b.warnings, lostOnWire(facts), delayed(m.end.delays.Since(m.start.delays), b.scenario.Fabric.Delay, s.Metrics))
	for _, d := range deltas {
		s.Warnings = append(s.Warnings, d.Warnings...)
	}
	s.Series = m.points(m.series, m.conditions.wire, m.start.nodes[0].Mono, facts)
	began, _ := m.measured(said)
	sample.SetLatency(s.Series, said.Course, began)
	inside, gate := m.slices(sender.Seconds)
	if err := m.check(said); err != nil {
		return err
	}
	w := m.traffic.bench.scenario.Workload
	s.Limit = meter.Limit(sender, receiver, facts, w, m.traffic.bench.scenario.Fabric, s.Metrics)
	condition.Narrow(s.Metrics, inside)
	if err := m.judge(deltas); err != nil {
		return err
	}
	if gate != nil && !slices.ContainsFunc(s.Gates, func(g sample.Gate) bool { return g.Name == gate.Name }) {
		s.Gates = append(s.Gates, *gate)
	}
	return nil
}

// slices returns the slices inside the window, marks those that the figures leave
// out, and returns the gate that the trial fails for them.
func (m *meters) slices(window float64) ([]sample.Point, *sample.Gate) {
	series := m.traffic.sample.Series
	annotate(series, m.conditions.readings, m.start.nodes[0].Mono)
	if m.colocated() {
		for i := range series {
			series[i].CPUDistance = 0 // both endpoints are on the sender's node
		}
	}
	inside := condition.Inside(series, window)
	return inside, m.traffic.conditions.Judge(series, inside, m.colocated(), m.traffic.last)
}

// facts collects the facts about the trial that the meters need.
func (m *meters) facts(said tool.Measurement) (meter.Facts, error) {
	sc := m.traffic.bench.scenario
	f := meter.Facts{
		Colocated:  m.colocated(),
		Unpinned:   sc.Fabric.Unpinned,
		Direction:  sc.Workload.Direction,
		Throughput: said.Metrics[sample.Throughput],
		Stream:     !sc.Workload.Kind.Exchange(),
		Loss:       lost(sc.Workload.Kind, said),
		Headers:    headers(sc, m.traffic.bench.MTU),
		PerPacket:  perPacket(sc),
		Payload:    payload(sc.Workload),
		Engine:     m.end.engine - m.start.engine,
	}
	for _, p := range m.traffic.bench.Pairs {
		if p.Sender.Name != "" || sc.Endpoint.HostVNIC {
			f.SenderEndpoints = append(f.SenderEndpoints, p.Sender.Name)
			f.ReceiverEndpoints = append(f.ReceiverEndpoints, p.Receiver.Name)
		}
	}
	if m.start.clock != nil && m.end.clock != nil {
		f.WireCPU = map[int]float64{}
		for cpu, at := range m.end.clock {
			f.WireCPU[cpu] = at - m.start.clock[cpu]
		}
	}
	if m.wire != nil {
		d, err := meter.Window(m.start.wire, m.end.wire)
		if err != nil {
			return f, failed(sample.Invalid, "%w", err)
		}
		f.Ports = &d
	}
	return f, nil
}

// headers returns the length of all headers of a data frame on the fabric, in
// bytes: those of the workload's protocol, and those that the system adds. mtu is that of the
// endpoints' devices.
func headers(c resolved, mtu int) int {
	added, ok := c.about.AddedBytes[c.Workload.IPVersion]
	if !ok {
		added = c.Fabric.MTU - mtu
	}
	return protocolHeaders(c) + added
}

// perPacket returns meter.Facts.PerPacket of a scenario.
func perPacket(c resolved) int {
	if c.about.PerPacket == 0 {
		return 0
	}
	return protocolHeaders(c) + c.about.PerPacket
}

// payload returns the payload of each datagram of a UDP stream, in bytes. It returns 0 if the sizes differ, or if the workload is
// not a UDP stream.
func payload(w suite.Workload) int64 {
	if w.Kind != suite.UDPStream || w.IMIX {
		return 0
	}
	return w.Buffer
}

// protocolHeaders returns the length of the Ethernet, IP, and TCP or UDP headers of the workload's packets, in bytes.
func protocolHeaders(c resolved) int {
	if c.Workload.Kind.UDP() {
		return meter.UDPHeaders(c.Workload.IPVersion)
	}
	return meter.TCPHeaders(c.Workload.IPVersion)
}

// lostOnWire warns of frames that were dropped between a NIC and its port. The
// cause is a full CPU backlog; the host's net.core.netdev_max_backlog sets its length.
func lostOnWire(f meter.Facts) []string {
	n := f.RefusedByPorts()
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the wire lost %d frames, which the system under test did not cause: net.core.netdev_max_backlog frames waited on one CPU already; `sysctl -w net.core.netdev_max_backlog=4000` on this host prevents it at an MTU of 1500", n)}
}

// delayed records how late the delay lines released frames in the window, and warns of a large
// lateness and of frames that they dropped.
func delayed(r delayline.Reading, delay time.Duration, ms sample.Metrics) (warnings []string) {
	if r.Lost > 0 {
		warnings = append(warnings, fmt.Sprintf("the fabric's delay lost %d frames, which the system under test did not cause: %d MiB of frames wait in each direction of a link; send less, or shorten the delay", r.Lost, delayline.Room>>20))
	}
	if r.Late.Sum() == 0 {
		return warnings
	}
	p50, p99 := r.Late.Quantile(0.5), r.Late.Quantile(0.99)
	ms.Set(sample.DelayErrorP50, float64(p50))
	ms.Set(sample.DelayErrorP99, float64(p99))
	if p99 > delay/10+delaySlack {
		why := "other programs use the CPUs, or the host of a virtual machine does"
		if r.Normal {
			why = "their process has no real-time priority, which needs CAP_SYS_NICE and real-time CPU time in its control group"
		}
		warnings = append(warnings, fmt.Sprintf("1 %% of the frames were %v or more too late for the delay of %v (median %v): %s", p99, delay, p50, why))
	}
	return warnings
}

// delaySlack is a lateness of frames without a warning, in addition to a tenth of the delay: a virtual CPU may need
// this time to wake up.
const delaySlack = 100 * time.Microsecond
