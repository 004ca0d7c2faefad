package experiment

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/lab/agent"
	"windtunnel/lab/delayline"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed/netns"
	"windtunnel/lab/traffic"
	"windtunnel/lab/vm/guest"
)

// The test binary is its own windtunnel program on the nodes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			if err := agent.Serve("test", os.Stdin, os.Stdout, nil); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case system.KeepCommand:
			system.Keep()
			return
		case guest.Command:
			guest.Main(func(port *os.File) error { return agent.Serve("test", port, port, nil) })
		case delayline.Command:
			if err := delayline.Serve(os.Args[2:], os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "traffic":
			os.Exit(traffic.Worker(os.Args[2:], os.Stdout, os.Stderr))
		}
	}
	os.Exit(m.Run())
}

// notebook records samples and events in memory.
type notebook struct {
	mu      sync.Mutex
	samples []sample.Sample
	points  int
	ended   []Progress
	up      func(*Bench) // called when a bench is up
	moved   func()
}

func (n *notebook) Record(s sample.Sample) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.samples = append(n.samples, s)
	return nil
}

func (n *notebook) Up(_ *suite.Scenario, b *Bench) {
	if n.up != nil {
		n.up(b)
	}
}
func (n *notebook) Began(Trial, Progress)             {}
func (n *notebook) Ended(_ sample.Sample, p Progress) { n.ended = append(n.ended, p) }
func (n *notebook) Moved(_ Trial, _ sample.Point) {
	n.mu.Lock()
	n.points++
	n.mu.Unlock()
	if n.moved != nil {
		n.moved()
	}
}

// labs counts the experiments, of which several may run side by side.
var labs atomic.Int32

// lab makes an experiment over one-shot scenarios; what it leaves behind is an
// error. Its trials count on a busy machine too, whose gates they would fail.
func lab(t *testing.T, n *notebook, scenarios ...suite.Scenario) *Experiment {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	cpus := testprogram.CPUs(t)
	if len(cpus) < 2 {
		t.Skip("two nodes need two CPUs")
	}
	self := must.Get(os.Executable())(t)
	id := fmt.Sprintf("x%dn%d", os.Getpid(), labs.Add(1))
	t.Cleanup(func() {
		left, err := filepath.Glob(filepath.Join(space.Dir, space.TestbedPrefix(id)+"*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v (%v)", left, err)
			space.Clean(space.TestbedPrefix(id))
		}
	})
	return &Experiment{
		Plan:     &suite.Plan{Suite: "test", Nodes: 2, Trials: 1, Scenarios: scenarios},
		Seed:     1,
		Executor: &netns.Executor{CPUs: cpus, Agent: []string{self, "agent"}, Line: []string{self, delayline.Command}},
		ID:       id, Self: self, Attempts: 1, Lenient: true, Recorder: n, Observer: n, Grace: time.Second,
	}
}

// pace is the rate of the tests' streams, bits per second: low enough that tool
// and meter see the same rate where the machine also runs other programs.
const pace = 200e6

// scenario is a short paced TCP stream over a system by the built-in generator.
func scenario(system string, change func(*suite.Scenario)) suite.Scenario {
	sc := suite.Scenario{
		ID: system, System: system, Placement: suite.TwoNodes, Pairs: 1, Tool: "builtin",
		Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 64 << 10, Rate: pace, IPVersion: 4},
		Fabric:   suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1},
		Timing:   suite.Timing{Warmup: 100 * time.Millisecond, Duration: 700 * time.Millisecond, Cooldown: 50 * time.Millisecond},
	}
	if change != nil {
		change(&sc)
	}
	return sc
}

// mustResolve returns a scenario with its system and its tool.
func mustResolve(t *testing.T, sc *suite.Scenario) resolved {
	t.Helper()
	return must.Get(resolve(sc))(t)
}

// runOne runs one scenario once.
func runOne(t *testing.T, sc suite.Scenario) sample.Sample {
	t.Helper()
	n := &notebook{}
	must.Succeed(t, lab(t, n, sc).Run(context.Background()))
	if len(n.samples) != 1 {
		t.Fatalf("%d samples of one trial", len(n.samples))
	}
	return n.samples[0]
}

// runOK runs one scenario once; its trial must yield figures.
func runOK(t *testing.T, sc suite.Scenario) sample.Sample {
	t.Helper()
	s := runOne(t, sc)
	if !s.OK() {
		t.Fatalf("%s: %v", sc.ID, s.Failure)
	}
	return s
}

// assertFabricAgrees: the fabric's counters stand for the throughput.
func assertFabricAgrees(t *testing.T, s *sample.Sample) {
	t.Helper()
	if ratio := s.Metrics[sample.FabricGoodput] / s.Metrics[sample.Throughput]; math.Abs(ratio-1) > tolerance {
		t.Errorf("the fabric's counters stand for %.3f of the throughput", ratio)
	}
}
