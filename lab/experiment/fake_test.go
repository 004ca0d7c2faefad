package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/testbedtest"
	"windtunnel/lab/tool"
)

// runFake runs a plan of one scenario on fake testbeds. The clock is simulated.
func runFake(t *testing.T, x *testbedtest.Executor, change func(*Experiment)) (samples []sample.Sample) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &notebook{}
		sc := scenario("raw", func(sc *suite.Scenario) { sc.Timing.Duration = 2 * time.Second })
		e := &Experiment{
			Plan: &suite.Plan{Suite: "test", Nodes: 2, Trials: 1, Scenarios: []suite.Scenario{sc}}, Seed: 1, Executor: x,
			ID: "x", Self: "/windtunnel", Attempts: 3, Recorder: n, Observer: n, Distance: condition.Off,
		}
		if change != nil {
			change(e)
		}
		if err := e.Run(context.Background()); err != nil && !errors.Is(err, ErrNoneCounts) {
			t.Error(err)
		}
		samples = n.samples
	})
	return samples
}

// index returns the position of the first operation with this name; −1 if there is
// none.
func index(ops []testbedtest.Operation, name string) int {
	return slices.IndexFunc(ops, func(o testbedtest.Operation) bool { return o.String() == name })
}

func lastIndex(ops []testbedtest.Operation, name string) int {
	for i, o := range slices.Backward(ops) {
		if o.String() == name {
			return i
		}
	}
	return -1
}

func TestATrialOnAFakeTestbedHasItsFigures(t *testing.T) {
	samples := runFake(t, &testbedtest.Executor{}, nil)
	if len(samples) != 1 || !samples[0].Counts() {
		t.Fatalf("the samples are %+v, want one that counts", samples)
	}
	for metric, want := range map[sample.Metric]float64{
		sample.Throughput: testbedtest.Rate, sample.FabricGoodput: testbedtest.Rate,
		sample.SenderCPU: 100 * testbedtest.Busy, sample.ReceiverCPU: 100 * testbedtest.Busy, sample.WindowSeconds: (2*time.Second + lead + lag).Seconds(),
	} {
		if got := samples[0].Metrics[metric]; math.Abs(got-want) > 0.001*want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
}

// The traffic goes on for a moment after the tools have ended.
func TestTrafficAfterTheToolsEndIsAFlag(t *testing.T) {
	samples := runFake(t, &testbedtest.Executor{Program: func(argv []string) testbedtest.Program {
		p := testbedtest.Generator(argv)
		if p.Sends += p.Sends / 10; p.Lasts < 0 {
			p.Lasts = 2200 * time.Millisecond // the server ends after the client, before the traffic
		}
		return p
	}}, nil)
	if len(samples) != 1 || !slices.ContainsFunc(samples[0].Flags, func(g sample.Gate) bool { return g.Name == sample.StillMoving }) {
		t.Errorf("the samples are %+v, want one with the flag %s", samples, sample.StillMoving)
	}
}

// The server must start before the client. Within the window the engine may only
// read meters.
func TestTheStepsOfATrialAreInOrder(t *testing.T) {
	x := &testbedtest.Executor{}
	runFake(t, x, nil)
	ops := x.Operations()
	order := []int{
		index(ops, "Up"), index(ops, "a.Hello"), index(ops, "a.Attach"), index(ops, "a.Reach"), index(ops, "a.MachineWatch"), index(ops, "a.MeterStart"),
		index(ops, "b.Start"), index(ops, "a.Start"), index(ops, "a.MeterTrack"), index(ops, "a.MeterRead"), lastIndex(ops, "a.MeterRead"),
		index(ops, "a.MeterStop"), index(ops, "a.Detach"), index(ops, "Down"),
	}
	if !slices.IsSorted(order) || order[0] != 0 || order[len(order)-1] != len(ops)-1 {
		t.Errorf("the steps are at the positions %v, want an ascending list over all of %v", order, ops)
	}
	for _, o := range ops[index(ops, "a.MeterRead") : lastIndex(ops, "b.MeterRead")+1] {
		if o.Name != "MeterRead" && o.Name != "MeterGlance" {
			t.Errorf("the engine calls %v within the window, want meter readings only", o)
		}
	}
}

// A full reading of the meters takes CPU time from the traffic. So it must not begin within the window of the generator, whose
// timing is exact.
func TestTheMetersReadOutsideTheWindowOfTheGenerator(t *testing.T) {
	var began time.Time
	var reads []time.Duration // since traffic began
	x := &testbedtest.Executor{}
	var mu sync.Mutex
	x.Hook = func(o testbedtest.Operation) error {
		mu.Lock()
		defer mu.Unlock()
		switch o.String() {
		case "a.Start":
			began = time.Now()
		case "a.MeterRead", "b.MeterRead":
			reads = append(reads, time.Since(began))
		}
		return nil
	}
	var timing suite.Timing
	runFake(t, x, func(e *Experiment) { timing = e.Plan.Scenarios[0].Timing })
	if len(reads) != 4 {
		t.Fatalf("%d readings, want 2 of each node", len(reads))
	}
	for i, at := range reads {
		if outside := at < timing.Warmup || at > timing.Warmup+timing.Duration; !outside || i >= 2 && at > timing.Total() {
			t.Errorf("a reading begins %v after the traffic, want it before %v or after %v, while traffic still flows", at, timing.Warmup, timing.Warmup+timing.Duration)
		}
	}
}

func TestTheWindowLiesInThatOfAToolWithoutExactTiming(t *testing.T) {
	for name, c := range map[string]struct {
		exact    []bool
		timing   suite.Timing
		from, to time.Duration
	}{
		"exact":                          {[]bool{true, true}, suite.Timing{Warmup: time.Second, Duration: 2 * time.Second, Cooldown: time.Second}, time.Second - lead, 3*time.Second + lag},
		"exact, without a warm-up":       {[]bool{true}, suite.Timing{Duration: 2 * time.Second, Cooldown: time.Second}, 0, 2*time.Second + lag},
		"exact, without a cool-down":     {[]bool{true}, suite.Timing{Warmup: time.Second, Duration: 2 * time.Second}, time.Second + margin, 3*time.Second - margin},
		"not exact":                      {[]bool{false}, suite.Timing{Warmup: time.Second, Duration: 2 * time.Second, Cooldown: time.Second}, time.Second + margin, 3*time.Second - margin},
		"not exact for one of the pairs": {[]bool{true, false}, suite.Timing{Warmup: time.Second, Duration: 2 * time.Second, Cooldown: time.Second}, time.Second + margin, 3*time.Second - margin},
	} {
		run := &toolRun{bench: &Bench{scenario: resolved{Scenario: &suite.Scenario{Timing: c.timing}}}}
		for _, exact := range c.exact {
			run.runs = append(run.runs, &pairRun{plan: []tool.Process{{}, {Exact: exact}}})
		}
		if from, to := run.edges(); from != c.from || to != c.to {
			t.Errorf("%s: the window is %v to %v, want %v to %v", name, from, to, c.from, c.to)
		}
	}
}

// If two nodes share a machine, only one of their agents watches it. This agent must
// know the programs of both nodes.
func TestOneAgentWatchesEachMachine(t *testing.T) {
	for name, c := range map[string]struct {
		x    *testbedtest.Executor
		want map[string][]int // CPUs that each node's agent watches
		pids map[string][]int
	}{
		"one machine":  {&testbedtest.Executor{}, map[string][]int{"a": {0, 1}}, map[string][]int{"a": {testbedtest.PID, testbedtest.PID + 1, os.Getpid()}}},
		"two machines": {&testbedtest.Executor{Ahead: []time.Duration{0, time.Hour}}, map[string][]int{"a": {0}, "b": {1}}, map[string][]int{"a": {testbedtest.PID}, "b": {testbedtest.PID + 1}}},
	} {
		runFake(t, c.x, nil)
		got := map[string][]int{}
		for _, o := range c.x.Operations() {
			if o.Name != "MachineWatch" {
				continue
			}
			args := o.Args.(agent.WatchArgs)
			got[o.Node] = args.Nodes
			if len(args.Namespaces) != len(args.Nodes) || !slices.Equal(args.Processes, c.pids[o.Node]) {
				t.Errorf("%s: the agent of node %s gets %+v, want a namespace for each node and the processes %v", name, o.Node, args, c.pids[o.Node])
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: the agents watch the CPUs %v, want %v", name, got, c.want)
		}
	}
}

// The clocks of the two machines differ by hours. The engine must correct the times
// before it joins the series of the two nodes.
func TestNodesOnOtherMachinesHaveTheirOwnClocks(t *testing.T) {
	samples := runFake(t, &testbedtest.Executor{Ahead: []time.Duration{3 * time.Hour, -2 * time.Hour}}, nil)
	if len(samples) != 1 || !samples[0].Counts() {
		t.Fatalf("the samples are %+v, want one that counts", samples)
	}
	inside := 0
	for _, p := range samples[0].Series {
		if p.At > 0.1 && p.At < 1.9 {
			inside++
			if math.Abs(p.Bits/testbedtest.Rate-1.036) > 0.01 || math.Abs(p.ReceiverCPU-100*testbedtest.Busy) > 1 {
				t.Errorf("the point at %.2f s of the window is %+v, want %g bit/s and %g %% receiver CPU", p.At, p, 1.036*testbedtest.Rate, 100*testbedtest.Busy)
			}
		}
	}
	if inside < 15 {
		t.Errorf("%d points within the window, want 18: %+v", inside, samples[0].Series)
	}
}

// Each failure must have the right kind. The engine repeats a trial if a repeat can
// help, and it removes every testbed.
func TestFailuresOfANodeAreTypedAndRepeated(t *testing.T) {
	fails := func(operation string) func(*testbedtest.Executor) {
		return func(x *testbedtest.Executor) {
			x.Hook = func(o testbedtest.Operation) error {
				if o.String() == operation {
					return errors.New("broken")
				}
				return nil
			}
		}
	}
	during := func(operation string, f func(x *testbedtest.Executor)) func(*testbedtest.Executor) {
		return func(x *testbedtest.Executor) {
			x.Hook = func(o testbedtest.Operation) error {
				if o.String() == operation {
					f(x)
				}
				return nil
			}
		}
	}
	program := func(p testbedtest.Program) func(*testbedtest.Executor) {
		return func(x *testbedtest.Executor) {
			x.Program = func(argv []string) testbedtest.Program {
				if slices.Contains(argv, "client") {
					return p
				}
				return testbedtest.Generator(argv)
			}
		}
	}
	for name, c := range map[string]struct {
		set      func(*testbedtest.Executor)
		kind     sample.FailureKind
		say      string
		attempts int
	}{
		"the testbed cannot be made":       {fails("Up"), sample.SetupFailed, "bring the testbed up: broken", 3},
		"a system cannot be attached":      {fails("b.Attach"), sample.SetupFailed, "node b: broken", 3},
		"an endpoint cannot be reached":    {fails("a.Reach"), sample.NoConnectivity, "pair 1, IPv4, node a to node b", 3},
		"a meter cannot be read":           {fails("b.MeterRead"), sample.Invalid, "read the meters", 3},
		"an agent dies while it attaches":  {during("b.Attach", func(x *testbedtest.Executor) { x.Kill("b") }), sample.AgentLost, "node b's agent has ended unexpectedly", 3},
		"an agent dies within the window":  {during("a.MeterGlance", func(x *testbedtest.Executor) { x.Kill("b") }), sample.AgentLost, "node b's agent has ended unexpectedly", 3},
		"an agent stops within the window": {during("a.MeterGlance", func(x *testbedtest.Executor) { x.Stop("b") }), sample.AgentLost, "node b's agent has not answered for 5s", 3},
		"an agent of another protocol":     {func(x *testbedtest.Executor) { x.Hello.Protocol = agent.Protocol + 1 }, sample.SetupFailed, "install this version of windtunnel on the node", 3},
		"the tool is not installed":        {program(testbedtest.Program{Missing: true}), sample.ToolMissing, "node a: start /windtunnel: not found in PATH", 1},
		"the tool fails":                   {program(testbedtest.Program{Prints: "begun", Ends: "no such flag", Exit: 2}), sample.ToolFailed, "exit status 2: begun | no such flag", 3},
		"the tool hangs":                   {program(testbedtest.Program{Prints: "begun", Lasts: time.Hour, Sends: time.Hour}), sample.ToolHung, "did not end within the planned time", 3},
		"the tool prints nothing":          {program(testbedtest.Program{Lasts: time.Hour}), sample.ToolHung, "was not ready within", 3},
		"the tool's output lacks a result": {program(testbedtest.Program{Prints: "begun", Lasts: 3 * time.Second, Sends: 3 * time.Second, Ends: "done"}), sample.NoResult, "the client printed no result", 3},
		"the fabric carried nothing":       {program(testbedtest.Program{Prints: "begun", Lasts: 3 * time.Second, Sends: 1, Ends: result()}), sample.Invalid, "fabric", 3},
	} {
		t.Run(name, func(t *testing.T) {
			x := &testbedtest.Executor{}
			c.set(x)
			samples := runFake(t, x, nil)
			if len(samples) != c.attempts {
				t.Fatalf("%d attempts, want %d: %+v", len(samples), c.attempts, samples)
			}
			f := samples[0].Failure
			if f == nil || f.Kind != c.kind || !strings.Contains(f.Message, c.say) {
				t.Errorf("the failure is %v, want kind %s and a message with %q", f, c.kind, c.say)
			}
			ops := x.Operations()
			up, down := 0, 0
			for _, o := range ops {
				switch o.Name {
				case "Up":
					up++
				case "Down":
					down++
				}
			}
			if c.say == "bring the testbed up: broken" {
				down += up // a testbed that was not made needs no Down
			}
			if up != c.attempts || down != up {
				t.Errorf("%d testbeds were made and %d removed, want %d each", up, down, c.attempts)
			}
		})
	}
}

// result returns the output of the generator's client after a stream.
func result() string {
	return testbedtest.Generator([]string{"client", "-duration", "2s"}).Ends
}

// If an agent dies, only the current attempt fails. The repeat gets a new testbed.
func TestATrialIsRepeatedOnANewTestbedAfterItsAgentDied(t *testing.T) {
	x := &testbedtest.Executor{}
	x.Hook = func(o testbedtest.Operation) error {
		if o.Up == 1 && o.String() == "b.MeterStart" {
			x.Kill("b")
		}
		return nil
	}
	samples := runFake(t, x, nil)
	if len(samples) != 2 || samples[0].OK() || !samples[1].Counts() || samples[1].Attempt != 1 {
		t.Errorf("the samples are %+v, want a failed attempt and a repeat that counts", samples)
	}
}
