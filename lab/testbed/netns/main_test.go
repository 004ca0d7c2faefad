package netns

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/delayline"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

const roleVariable = "WT_TEST_ROLE"

// The test binary is its own agent and its own traffic program.
func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	os.Unsetenv(roleVariable)
	var err error
	switch role {
	case "agent":
		err = agent.Serve("test", os.Stdin, os.Stdout, nil)
	case "line":
		err = delayline.Serve(os.Args[1:], os.Stdin)
	case "sink", "source":
		err = playTraffic(role)
	case "victim":
		err = standAndWait()
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// self is the argv that runs this binary in a role.
func self(role string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{"/usr/bin/env", roleVariable + "=" + role, exe}
}

func executor(t *testing.T) *Executor {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	cpus := must.Get(usableCPUs())(t)
	if len(cpus) < 2 {
		t.Skip("two nodes need two CPUs")
	}
	return &Executor{CPUs: cpus, Agent: self("agent"), Line: self("line")}
}

// up brings a testbed up that is gone after the test.
func up(t *testing.T, x *Executor, nodes int, f suite.Fabric) *Testbed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tb := must.Get(x.up(ctx, testbed.Spec{ID: testID(t), Nodes: nodes, Fabric: f}))(t)
	t.Cleanup(func() {
		if err := tb.Down(context.Background()); err != nil {
			t.Error(err)
		}
		left, err := filepath.Glob(filepath.Join(space.Dir, space.TestbedPrefix(tb.id)+"*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v (%v)", left, err)
		}
	})
	return tb
}

func testID(t *testing.T) string {
	h := 0
	for _, c := range t.Name() {
		h = (h*31 + int(c)) % 9973
	}
	return fmt.Sprintf("t%x-%d", os.Getpid(), h)
}

func fabric(change func(*suite.Fabric)) suite.Fabric {
	f := suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1}
	if change != nil {
		change(&f)
	}
	return f
}

// attach puts a system with one container on each node and returns the
// endpoint's name.
func attach(t *testing.T, tb *Testbed, system string) string {
	t.Helper()
	name := "c1"
	if system == "raw" {
		name = ""
	}
	for i, n := range tb.nodes {
		args := n.Attachment()
		args.System = system
		if name != "" {
			args.Containers = []agent.Container{testContainer(i)}
		}
		must.Get(n.agent.Attach(context.Background(), args))(t)
	}
	return name
}

// prove proves that node from reaches node to.
func prove(t *testing.T, tb *Testbed, endpoint string, from, to, version, mtu int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	args := agent.ReachArgs{Endpoint: endpoint, Address: address(tb, endpoint, to, version), Port: agent.ProofPort, MTU: mtu, Bytes: 10 << 20, Wait: 10 * time.Second}
	answered := make(chan error, 1)
	go func() { answered <- tb.nodes[to].agent.AnswerProof(ctx, args) }()
	if err := tb.nodes[from].agent.Reach(ctx, args); err != nil {
		t.Fatalf("node %d to node %d, IPv%d: %v", from, to, version, err)
	}
	must.Succeed(t, <-answered)
}

func sum(m map[int]uint64, cpus []int) (on, elsewhere uint64) {
	for cpu, n := range m {
		if slices.Contains(cpus, cpu) {
			on += n
		} else {
			elsewhere += n
		}
	}
	return on, elsewhere
}
