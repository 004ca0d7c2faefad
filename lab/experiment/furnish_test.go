package experiment

import (
	"context"
	"net/netip"
	"testing"

	"windtunnel/lab/agent"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/testbedtest"
)

// furnishing makes fake testbeds that have endpoints. The agents of the nodes also act as
// the agents in the endpoints.
type furnishing struct{ *testbedtest.Executor }

func (furnishing) Cluster() {}

func (x furnishing) Up(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := x.Executor.Up(ctx, spec)
	return furnished{tb}, err
}

type furnished struct{ testbed.Testbed }

func (tb furnished) Endpoints(*suite.Scenario, system.About) (sender, receiver testbed.Endpoint, err error) {
	at := func(node int, address string, mtu int) testbed.Endpoint {
		return testbed.Endpoint{
			Node: node, Name: "pod", V4: netip.MustParseAddr(address), Agent: tb.Nodes()[node].Agent(),
			Namespaces: agent.Namespaces{Network: uint32(10 + node), Processes: uint32(20 + node), MTU: mtu},
		}
	}
	receiver = at(1, "10.96.0.9", 1400)
	receiver.Listen = netip.MustParseAddr("10.88.1.5")
	return at(0, "10.88.0.5", 1450), receiver, nil
}

func TestEndpointsThatExistAreUsed(t *testing.T) {
	x := &testbedtest.Executor{}
	samples := runFake(t, x, func(e *Experiment) {
		e.Executor, e.Plan.Scenarios[0].System = furnishing{x}, "service"
	})
	if len(samples) != 1 || !samples[0].OK() {
		t.Fatalf("the samples are %+v, want one trial that succeeded", samples)
	}
	tracked := map[string]uint32{}
	for _, o := range x.Operations() {
		switch args := o.Args.(type) {
		case agent.AttachArgs:
			if c := args.Containers; len(c) != 1 || c[0].Name != "pod" || c[0].Network != map[string]uint32{"a": 10, "b": 11}[o.Node] {
				t.Errorf("node %s attaches the containers %+v, want the pod that exists", o.Node, c)
			}
		case agent.ReachArgs:
			want := agent.ReachArgs{Address: netip.MustParseAddr("10.96.0.9"), MTU: 1400, NoEcho: true}
			if args.Endpoint != "" || args.Address != want.Address || args.MTU != want.MTU || !args.NoEcho {
				t.Errorf("%s of node %s: %+v, want %+v in the endpoint itself", o.Name, o.Node, args, want)
			}
		case agent.StartArgs:
			if args.Endpoint != "" {
				t.Errorf("node %s starts %v at %q, want the agent in the endpoint to start it", o.Node, args.Argv, args.Endpoint)
			}
		case agent.TrackArgs:
			tracked[o.Node] = args.Processes
		}
	}
	if tracked["a"] != 20 || tracked["b"] != 21 {
		t.Errorf("the meters track processes of the PID namespaces %v, want 20 and 21", tracked)
	}
}

// Systems of a cluster run there and nowhere else.
func TestSystemsOfAClusterNeedACluster(t *testing.T) {
	x := &testbedtest.Executor{}
	for _, c := range []struct {
		executor testbed.Executor
		system   string
		want     string
	}{
		{x, "cni", "cni needs a Kubernetes cluster; use --testbed k8s"},
		{x, "raw", ""},
		{furnishing{x}, "raw", "raw does not run in a cluster; use the systems host, cni and service"},
		{furnishing{x}, "host", ""},
		{furnishing{x}, "cni", ""},
	} {
		sc := scenario(c.system, nil)
		plan := &suite.Plan{Nodes: 2, Scenarios: []suite.Scenario{sc}}
		if got := Skips(plan, c.executor)[sc.ID]; got != c.want {
			t.Errorf("%s on %T is skipped with %q, want %q", c.system, c.executor, got, c.want)
		}
	}
}
