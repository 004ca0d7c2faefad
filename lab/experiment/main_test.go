package experiment

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/agent"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
	"windtunnel/lab/traffic"
	"windtunnel/lab/udptun"
	"windtunnel/lab/vm/guest"
)

// The test binary is its own windtunnel program on the nodes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			if err := agent.Serve("test", os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case guest.Command:
			guest.Main(func(port *os.File) error { return agent.Serve("test", port, port) })
		case "traffic":
			os.Exit(traffic.Worker(os.Args[2:], os.Stdout, os.Stderr))
		case udptun.Name:
			os.Exit(udptun.Command(os.Args[2:], os.Stdout, os.Stderr))
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

// lab makes an experiment over one-shot scenarios; what it leaves behind is an
// error. Its trials count on a busy machine too, whose gates they would fail.
func lab(t *testing.T, n *notebook, scenarios ...suite.Scenario) *Experiment {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	if len(cpus) < 2 {
		t.Skip("two nodes need two CPUs")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	id := "x" + strconv.Itoa(os.Getpid())
	t.Cleanup(func() {
		left, err := filepath.Glob(filepath.Join(space.Dir, netns.SpacePrefix(id)+"*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v (%v)", left, err)
			netns.Clean(netns.SpacePrefix(id))
		}
	})
	return &Experiment{
		Plan:     &suite.Plan{Suite: "test", Nodes: 2, Trials: 1, Scenarios: scenarios},
		Seed:     1,
		Executor: &netns.Executor{CPUs: cpus, Agent: []string{self, "agent"}},
		ID:       id, Self: self, Attempts: 1, Lenient: true, Recorder: n, Observer: n, Grace: time.Second,
	}
}

// scenario is a short TCP stream over a system by the built-in generator.
func scenario(system string, change func(*suite.Scenario)) suite.Scenario {
	sc := suite.Scenario{
		ID: system, System: system, Placement: suite.TwoNodes, Pairs: 1, Tool: "builtin",
		Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 128 << 10, IPVersion: 4},
		Fabric:   suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1},
		Timing:   suite.Timing{Warmup: 200 * time.Millisecond, Duration: 900 * time.Millisecond, Cooldown: 100 * time.Millisecond},
	}
	if change != nil {
		change(&sc)
	}
	return sc
}

// runOne runs one scenario once.
func runOne(t *testing.T, sc suite.Scenario) sample.Sample {
	t.Helper()
	n := &notebook{}
	if err := lab(t, n, sc).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(n.samples) != 1 {
		t.Fatalf("%d samples of one trial", len(n.samples))
	}
	return n.samples[0]
}

// runOK runs one scenario until it yields figures that are as wanted. On a busy
// machine a trial's rate may be so unsteady that the engine refuses it, or a
// burst elsewhere moves a figure: it is then repeated, as in any run.
func runOK(t *testing.T, sc suite.Scenario, wants ...func(*sample.Sample) error) sample.Sample {
	t.Helper()
	var last sample.Sample
	var spoiled error
	for range 5 {
		last = runOne(t, sc)
		if last.Failure != nil && !unrest(last.Failure) {
			t.Fatalf("%s: %v", sc.ID, last.Failure)
		}
		if spoiled = spoiledBy(&last, wants); spoiled == nil {
			return last
		}
		t.Logf("%s: %v", sc.ID, spoiled)
	}
	t.Fatalf("%s, five times: %v", sc.ID, spoiled)
	return last
}

// unrest tells whether a trial failed in a way that a busy host makes it fail.
func unrest(f *sample.Failure) bool {
	return f.Kind == sample.Invalid || f.Kind == sample.NoResult || strings.Contains(f.Message, "nothing passed to or from")
}

func spoiledBy(s *sample.Sample, wants []func(*sample.Sample) error) error {
	if !s.OK() {
		return s.Failure
	}
	for _, want := range wants {
		if err := want(s); err != nil {
			return err
		}
	}
	return nil
}

// fabricStandsFor wants the fabric's counters to stand for the throughput.
func fabricStandsFor(within float64) func(*sample.Sample) error {
	return func(s *sample.Sample) error {
		if ratio := s.Metrics[sample.FabricGoodput] / s.Metrics[sample.Throughput]; math.Abs(ratio-1) > within {
			return fmt.Errorf("the fabric's counters stand for %.3f of the throughput", ratio)
		}
		return nil
	}
}

// atRest skips a test of what a busy machine makes untrue.
func atRest(t *testing.T) {
	t.Helper()
	if os.Getenv("WINDTUNNEL_TIMING_TESTS") == "" {
		t.Skip("asserts a rate or a cost: set WINDTUNNEL_TIMING_TESTS=1 on a machine at rest")
	}
}
