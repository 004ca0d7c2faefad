package experiment

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/condition"
	"windtunnel/lab/cpudistance"
	"windtunnel/lab/meter"
	"windtunnel/lab/meter/foreign"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
	"windtunnel/lab/tool"
	"windtunnel/lab/validity"
)

// paperNode, paperFabric and paperTestbed are fakes. They have only the methods
// that meters calls after the traffic has ended.
type paperNode struct {
	testbed.Node
	name string
	cpus []int
}

func (n paperNode) Name() string { return n.name }
func (n paperNode) CPUs() []int  { return n.cpus }

type paperFabric struct{ testbed.Fabric }

func (paperFabric) Warnings() []string { return []string{"of the fabric"} }

type paperTestbed struct{ testbed.Testbed }

func (paperTestbed) Fabric() testbed.Fabric { return paperFabric{} }

const (
	paperOrigin = int64(50e9) // start of the window, CLOCK_MONOTONIC in ns
	paperBytes  = 1e9         // of payload in the window of 1 s
	paperFrames = 690_608
)

// paperTrial is a TCP stream of 8 Gbit/s for a window of 1 s. The sender's CPU
// is busy for 60 % of it, the receiver's for 80 %.
func paperTrial(t *testing.T) (*meters, tool.Measurement) {
	t.Helper()
	a, b := paperNode{name: "a", cpus: []int{0}}, paperNode{name: "b", cpus: []int{1}}
	sc := &suite.Scenario{
		Workload: suite.Workload{Kind: suite.TCPStream, IPVersion: 4},
		Fabric:   suite.Fabric{MTU: 1500},
		Timing:   suite.Timing{Warmup: 300 * time.Millisecond, Duration: time.Second + 2*margin},
	}
	m := &meters{
		traffic: &toolRun{
			bench:      &Bench{Testbed: paperTestbed{}, clocks: make([]time.Duration, 2), Pairs: []Pair{{Sender: Endpoint{Node: a}, Receiver: Endpoint{Node: b}}}, MTU: 1500, scenario: resolved{Scenario: sc, tool: tool.Builtin{}}},
			sample:     &sample.Sample{},
			conditions: &conditions{Distance: validity.Distance{Choice: condition.Auto}},
		},
		nodes:      []testbed.Node{a, b},
		gates:      gates{watchers: []int{0, 0}, blind: []string{"foreign programs cannot be seen", ""}},
		conditions: &conditionLog{},
	}
	m.start.machines, m.end.machines = make([]agent.MachineReading, 2), make([]agent.MachineReading, 2)
	m.start.nodes = []meter.Reading{paperReading("a", 0, 0, 0), paperReading("b", 1, 0, 0)}
	m.end.nodes = []meter.Reading{paperReading("a", 0, 40, 0), paperReading("b", 1, 20, paperBytes+52*paperFrames)}
	m.end.engine = 0.01
	m.series = [][]meter.Light{paperSeries(0.4, false), paperSeries(0.2, true)}
	return m, tool.Measurement{Metrics: sample.Metrics{sample.Throughput: 8 * paperBytes}, Warnings: []string{"of the tool"}}
}

// paperReading returns a node's reading. With idle 0 it is the reading at the
// start of the window; else at its end, 1 s later, with so many ticks of idle time
// and so many bytes received since.
func paperReading(node string, cpu int, idle, received uint64) meter.Reading {
	r := meter.Reading{Node: node, Mono: paperOrigin, Wall: paperOrigin, CPUs: map[int]meter.CPUTimes{cpu: {Idle: 1000 + idle}}}
	d := meter.DeviceReading{Name: "fab", Role: meter.RoleFabric}
	if idle > 0 {
		r.Mono, r.Wall = paperOrigin+1e9, paperOrigin+1e9
	}
	if received > 0 {
		d.Traffic = meter.Traffic{RxBytes: received, RxPackets: paperFrames}
		d.RxBare = paperFrames
	}
	r.Namespaces = []meter.NamespaceReading{{Devices: []meter.DeviceReading{d}}}
	return r
}

// paperSeries returns a node's light readings every 100 ms, from 0.3 s before the
// window to 0.2 s after it. idle is the share of time in which its CPU is idle.
func paperSeries(idle float64, receives bool) []meter.Light {
	var lights []meter.Light
	for i := range 16 {
		l := meter.Light{Mono: paperOrigin + int64(i-3)*1e8, Idle: []int64{int64(idle * float64(i) * 1e8)}, Steal: []int64{0}, Traffic: []meter.Traffic{{}}}
		if receives {
			l.Traffic[0].RxBytes = uint64(i) * (paperBytes + 52*paperFrames) / 10
		}
		lights = append(lights, l)
	}
	return lights
}

// apart adds readings of the CPU distance: one for each slice, in ns.
func (m *meters) apart(distances ...float64) {
	for i, d := range distances {
		m.conditions.readings = append(m.conditions.readings, cpudistance.Reading{Mono: paperOrigin + int64(i-3)*1e8 + 5e7, RoundTrip: d})
	}
}

func TestACompleteTrialHasItsFigures(t *testing.T) {
	m, said := paperTrial(t)
	must.Succeed(t, m.complete(said))
	s := m.traffic.sample
	for metric, want := range map[sample.Metric]float64{
		sample.Throughput: 8e9, sample.WindowSeconds: 1, sample.SenderCPU: 60, sample.ReceiverCPU: 80,
		sample.SenderCPUPerByte: 0.6, sample.ReceiverCPUPerByte: 0.8, sample.Capacity: 1e10, sample.FabricGoodput: 8e9,
	} {
		if got := s.Metrics[metric]; math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	if len(s.Series) != 15 || math.Abs(s.Series[5].SenderCPU-60) > 1e-6 || math.Abs(s.Series[5].ReceiverCPU-80) > 1e-6 {
		t.Errorf("series %+v", s.Series)
	}
	if !s.Counts() || len(s.Flags) > 0 {
		t.Errorf("gates %v, flags %v", s.Gates, s.Flags)
	}
	for _, want := range []string{"of the tool", "of the fabric", "foreign programs cannot be seen"} {
		if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("warnings %q lack %q", s.Warnings, want)
		}
	}
}

// The tool's window begins 60 ms after the meters' window, so a round trip at 0.05 s of the tool's window belongs to the second slice.
func TestRoundTripsBelongToTheSliceOfTheirTime(t *testing.T) {
	m, said := paperTrial(t)
	m.began = paperOrigin + int64(60*time.Millisecond-m.traffic.bench.scenario.Timing.Warmup)
	said.Course = []sample.RoundTrips{{At: 0.05, Count: 1, Mean: 1000, Max: 2000}}
	must.Succeed(t, m.complete(said))
	for _, p := range m.traffic.sample.Series {
		if with := p.At > 0.15 && p.At < 0.25; (p.Latency == 1000) != with || (p.Latency != 0) != with {
			t.Errorf("the slice that ends at %.1f s has the latency %v ns, want 1000 only in that of 0.2 s", p.At, p.Latency)
		}
	}
}

// controlledTestbed has the control plane of a cluster.
type controlledTestbed struct{ paperTestbed }

func (controlledTestbed) ControlPlane() []string { return []string{"kube-apiserver"} }

func TestTheControlPlaneHasASeparateFigure(t *testing.T) {
	for _, compiler := range []float64{0.02, 0.2} {
		m, said := paperTrial(t)
		m.traffic.bench.Testbed = controlledTestbed{}
		m.gates.blind[0] = ""
		m.end.machines[0].Foreign = map[int]foreign.Usage{1: {Foreign: 0.3 + compiler, Top: []foreign.Task{
			{Comm: "kube-apiserver", TGID: 98, Seconds: 0.3}, {Comm: "compile", TGID: 99, Seconds: compiler}}}}
		must.Succeed(t, m.complete(said))
		s := m.traffic.sample
		if got, there := s.Metrics[sample.GroupCores("receiver", sample.ControlPlane)]; math.Abs(got-0.3) > 1e-9 || !there {
			t.Errorf("the control plane used %v cores, want 0.3", got)
		}
		if got, there := s.Metrics[sample.GroupCores("sender", sample.ControlPlane)]; there {
			t.Errorf("the control plane used %v cores of the sender, want no figure", got)
		}
		if got := s.Metrics[sample.ReceiverForeignCPU]; math.Abs(got-100*compiler) > 1e-6 {
			t.Errorf("foreign programs used %v %%, want %v", got, 100*compiler)
		}
		if rejected := !s.Counts(); rejected != (compiler > 0.03) {
			t.Errorf("with a compiler that takes %v, gates %v", compiler, s.Gates)
		}
	}
}

func TestATrialThatCannotBeMeteredIsInvalid(t *testing.T) {
	for name, spoil := range map[string]func(*meters, *tool.Measurement){
		"a window that ends before it begins": func(m *meters, _ *tool.Measurement) { m.end.nodes[0].Mono = paperOrigin - 1 },
		"a CPU that went offline": func(m *meters, _ *tool.Measurement) {
			m.end.nodes[1].CPUs = map[int]meter.CPUTimes{}
		},
		"a tool that says twice what the fabric carried": func(_ *meters, said *tool.Measurement) {
			said.Metrics[sample.Throughput] = 16e9
		},
	} {
		m, said := paperTrial(t)
		spoil(m, &said)
		var f *sample.Failure
		if err := m.complete(said); !errors.As(err, &f) || f.Kind != sample.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConditionsOfTheMachineAreGates(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(*meters)
		want    sample.GateName
	}{
		"a clock that was set": {func(m *meters) { m.end.nodes[0].Wall += 5e9 }, sample.ClockJump},
		"a CPU quota that stopped the tool": {func(m *meters) {
			m.start.nodes[1].Throttled = []meter.Throttling{{Group: "/ci", Periods: 100, Throttled: 10}}
			m.end.nodes[1].Throttled = []meter.Throttling{{Group: "/ci", Periods: 110, Throttled: 17}}
		}, sample.CPUQuota},
		"an engine that stood still": {func(m *meters) {
			m.series[1] = slices.Delete(m.series[1], 5, 9)
		}, sample.MachineStall},
		"a host that took the CPU": {func(m *meters) {
			for i := range m.series[0] {
				m.series[0][i].Steal[0] = int64(i) * 2e7
			}
		}, sample.Steal},
		"a compiler on the receiver's CPU": {func(m *meters) {
			m.gates.blind[0] = ""
			m.start.machines[0].Foreign = map[int]foreign.Usage{1: {Foreign: 3}}
			m.end.machines[0].Foreign = map[int]foreign.Usage{1: {Foreign: 3.4, Top: []foreign.Task{{Comm: "compile", TGID: 99, Seconds: 0.4}}}}
		}, sample.ForeignCPU},
		"CPUs that the host moves all the time": {func(m *meters) {
			m.apart(50, 330, 50, 330, 50, 330, 50, 330, 50, 330, 50, 330, 50, 330, 50)
		}, sample.CPUMoved},
	} {
		m, said := paperTrial(t)
		c.disturb(m)
		if err := m.complete(said); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s := m.traffic.sample; s.Counts() || !slices.ContainsFunc(s.Gates, func(g sample.Gate) bool { return g.Name == c.want }) {
			t.Errorf("%s: gates %v, want %s", name, s.Gates, c.want)
		}
	}
}

// The system under test can cause an unsteady rate, so the trial counts and has a
// flag.
func TestAnOutcomeOfTheSystemIsAFlag(t *testing.T) {
	m, said := paperTrial(t)
	bytes := uint64(0)
	for i := range m.series[1] {
		m.series[1][i].Traffic[0].RxBytes = bytes
		percent := uint64(60) // of the mean rate, up to the middle of the window
		if i >= 8 {
			percent = 140
		}
		bytes += percent * (paperBytes + 52*paperFrames) / 1000
	}
	must.Succeed(t, m.complete(said))
	s := m.traffic.sample
	if !s.Counts() || len(s.Flags) != 1 || s.Flags[0].Name != sample.Unsteady {
		t.Errorf("gates %v, flags %v, want one flag %s", s.Gates, s.Flags, sample.Unsteady)
	}
}

// All figures leave out the slices at another distance.
func TestFiguresAreOfTheKeptSlices(t *testing.T) {
	m, said := paperTrial(t)
	m.apart(50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 330, 330, 330, 330, 330)
	// In the last 0.3 s of the window the rate is a third.
	for i := range m.series[1] {
		if late := i - 10; late > 0 {
			m.series[1][i].Traffic[0].RxBytes -= uint64(late) * (paperBytes + 52*paperFrames) / 10 * 2 / 3
		}
	}
	must.Succeed(t, m.complete(said))
	s := m.traffic.sample
	// Two slices next to the change are mixed: 6 of 10 are kept.
	if kept := s.Metrics[sample.KeptSlices]; math.Abs(kept-0.6) > 1e-6 {
		t.Errorf("%v of the slices are kept, want 0.6", kept)
	}
	if got := s.Metrics[sample.Throughput]; math.Abs(got-10e9) > 1e7 {
		t.Errorf("throughput %v, want 10 Gbit/s: 8 on average, of which the slices kept had 1.25 times the mean", got)
	}
	if !s.Counts() {
		t.Errorf("gates %v", s.Gates)
	}
}
