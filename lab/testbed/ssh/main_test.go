package ssh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/experiment"
	"windtunnel/lab/host"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/ssh/sshtest"
	"windtunnel/lab/traffic"
)

const engineVariable = "WT_TEST_ENGINE"

// The test binary is also the program on the hosts, and an engine that a test kills.
func TestMain(m *testing.M) {
	var err error
	switch last := os.Args[len(os.Args)-1]; {
	case len(os.Args) > 1 && os.Args[1] == host.Command:
		err = host.Serve("test", last, os.Stdin, os.Stdout)
	case len(os.Args) > 1 && os.Args[1] == host.AgentCommand:
		err = host.Agent("test", os.Args[2:], os.Stdin, os.Stdout)
	case len(os.Args) > 1 && os.Args[1] == "traffic":
		os.Exit(traffic.Worker(os.Args[2:], os.Stdout, os.Stderr))
	case os.Getenv(engineVariable) != "":
		err = engine(os.Getenv(engineVariable))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// site is hosts with sshd, and their hosts file.
type site struct {
	*sshtest.Site
	t      *testing.T
	hosts  *Hosts
	spaces []*space.Space
}

// newSite starts the hosts a and b. options are lines for sshd's configuration.
func newSite(t *testing.T, options ...string) *site {
	t.Helper()
	return newSiteOf(t, []string{"a", "b"}, options...)
}

// newSiteOf starts the named hosts.
func newSiteOf(t *testing.T, names []string, options ...string) *site {
	t.Helper()
	s := &site{Site: sshtest.New(t, names, options...), t: t}
	var err error
	s.hosts, err = ReadHosts(s.WriteHosts(""))
	s.Must(err)
	for _, h := range s.Hosts {
		s.spaces = append(s.spaces, h.Space)
	}
	own, err := thisProgram()
	s.Must(err)
	s.Must(os.Mkdir(s.Path("program"), 0o700)) // a copy by ssh takes more CPU time
	s.Must(os.WriteFile(filepath.Join(s.Path("program"), own.file()), own.text, 0o700))
	return s
}

var thisProgram = sync.OnceValues(ownProgram)

// connect connects to the hosts for the rest of the test.
func (s *site) connect() *Executor {
	s.t.Helper()
	x, err := Connect(context.Background(), s.hosts, nil)
	s.Must(err)
	s.t.Cleanup(func() {
		if err := x.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	return x
}

func (s *site) hold(x *Executor) {
	s.t.Helper()
	_, err := x.Hold(context.Background())
	s.Must(err)
}

// scenario is a short paced TCP stream, slow enough for a busy machine.
func scenario(system string, duration time.Duration) suite.Scenario {
	return suite.Scenario{
		ID: system, System: system, Placement: suite.TwoNodes, Pairs: 1, Tool: "builtin",
		Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 64 << 10, Rate: 200e6, IPVersion: 4},
		Fabric:   suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1},
		Timing:   suite.Timing{Warmup: 100 * time.Millisecond, Duration: duration, Cooldown: 50 * time.Millisecond},
	}
}

// notebook keeps the samples of an experiment.
type notebook struct {
	mu      sync.Mutex
	samples []sample.Sample
	moved   func() // called with the traffic of each trial; may be nil
	up      func(*experiment.Bench)
}

func (n *notebook) Record(s sample.Sample) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.samples = append(n.samples, s)
	return nil
}

func (n *notebook) Moved(experiment.Trial, sample.Point) {
	if n.moved != nil {
		n.moved()
	}
}

func (n *notebook) Up(_ *suite.Scenario, b *experiment.Bench) {
	if n.up != nil {
		n.up(b)
	}
}

func (*notebook) Began(experiment.Trial, experiment.Progress) {}
func (*notebook) Ended(sample.Sample, experiment.Progress)    {}
func runID() string                                           { return space.RunID(os.Getpid()) }

// runTrials runs each scenario in a number of blocks.
func runTrials(x *Executor, n *notebook, blocks int, scenarios ...suite.Scenario) error {
	e := &experiment.Experiment{
		Plan: &suite.Plan{Suite: "test", Nodes: 2, Trials: blocks, Scenarios: scenarios},
		Seed: 1, Executor: x, ID: runID(), Self: agent.Self, Attempts: 1, Lenient: true, Recorder: n, Observer: n, Grace: time.Second,
	}
	return e.Run(context.Background())
}

// runPairs runs a scenario in a number of blocks between pairs of hosts (as of --pairs), and
// returns the report.
func runPairs(x *Executor, n *notebook, pairs string, blocks, parallel int, sc suite.Scenario) (*model.Report, error) {
	var names []string
	for _, m := range x.machines {
		names = append(names, m.Name)
	}
	matrix, err := suite.NewMatrix(names, pairs, parallel)
	if err != nil {
		return nil, err
	}
	plan := suite.Plan{Suite: "test", Nodes: 2, Trials: blocks, Scenarios: []suite.Scenario{sc}, Matrix: matrix}
	e := &experiment.Experiment{
		Plan: &plan, Seed: 1, Executor: x, ID: runID(), Self: agent.Self, Attempts: 3, Lenient: true, Recorder: n, Observer: n, Grace: 300 * time.Millisecond,
	}
	if err := e.Run(context.Background()); err != nil {
		return nil, err
	}
	return report.Build(sample.Run{ID: "test", Suite: "test", Status: sample.Complete}, plan, n.samples), nil
}

// leftovers lists the lab's namespaces that nodes of this process's runs left.
func leftovers(t *testing.T, id string) []string {
	t.Helper()
	list := must.Get(space.Named(space.TestbedPrefix(id)))(t)
	slices.Sort(list)
	return list
}

// requires is x.Requires with the scenario's system.
func requires(x testbed.Executor, sc *suite.Scenario) ([]string, error) {
	s, err := system.ByName(sc.System)
	if err != nil {
		return nil, err
	}
	return x.Requires(sc, s.About())
}
