package experiment

import (
	"errors"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/testbedtest"
)

// choosy is an executor of which one host cannot run scenarios with IPv6, and no host
// bridges.
type choosy struct {
	testbedtest.Executor
	hosts []string // of a pair
}

func (x *choosy) Between(from, to string) (testbed.Executor, error) {
	return &choosy{hosts: []string{from, to}}, nil
}

func (x *choosy) Requires(sc *suite.Scenario, _ system.About) ([]string, error) {
	for _, h := range x.hosts {
		if sc.System == "bridge" || h == "c" && sc.Workload.IPVersion == 6 {
			return nil, errors.New("host " + h + " cannot")
		}
	}
	return nil, nil
}

func TestOnlyThePairsOfAHostThatLacksSomethingAreSkipped(t *testing.T) {
	m := must.Get(suite.NewMatrix([]string{"a", "b", "c"}, "all", 1))(t)
	plain := scenario("raw", nil)
	six := scenario("raw", func(sc *suite.Scenario) { sc.ID, sc.Workload.IPVersion = "raw/six", 6 })
	bridge := scenario("bridge", func(sc *suite.Scenario) { sc.ID = "bridge/stream" })
	colocated := scenario("raw", func(sc *suite.Scenario) { sc.ID, sc.Placement = "raw/colocated", suite.Colocated })
	plan := &suite.Plan{Nodes: 2, Trials: 1, Matrix: m, Scenarios: []suite.Scenario{plain, six, bridge, colocated}}
	skips := Skips(plan, &choosy{})
	for id, want := range map[string]string{
		"raw/six a→c": "host c cannot", "raw/six c→a": "host c cannot", "raw/six b→c": "host c cannot", "raw/six c→b": "host c cannot",
		"bridge/stream": "host a cannot", "raw/colocated": "both of its endpoints are on one node",
	} {
		if !strings.Contains(skips[id], want) {
			t.Errorf("%s is skipped for %q, want %q", id, skips[id], want)
		}
		delete(skips, id)
	}
	if len(skips) > 0 {
		t.Errorf("skipped are also %v", skips)
	}
	e := &Experiment{Plan: plan, Seed: 1, Skipped: Skips(plan, &choosy{})}
	if got := len(e.queue(newHistory(nil, false), 0, 0)); got != 8 { // 6 of plain, 2 of six
		t.Errorf("a block has %d trials, want 8", got)
	}
	plan.Skipped = e.Skipped
	if got := plan.Cells(); got != 8 {
		t.Errorf("the plan has %d trials in a block, want 8", got)
	}
}

func TestTheScenariosOfOnePairAreCloseToEachOther(t *testing.T) {
	m := must.Get(suite.NewMatrix([]string{"a", "b", "c", "d", "e", "f"}, "all", 1))(t)
	plan := &suite.Plan{Nodes: 2, Trials: 1, Matrix: m, Scenarios: []suite.Scenario{scenario("raw", nil), scenario("bridge", func(sc *suite.Scenario) { sc.ID = "bridge/stream" })}}
	e := &Experiment{Plan: plan, Seed: 1}
	at := map[int][]int{}
	list := e.schedule(0)
	for i, entry := range list {
		at[entry.pair] = append(at[entry.pair], i)
	}
	if len(list) != 60 || len(at) != 30 {
		t.Fatalf("a block has %d trials of %d pairs, want 60 of 30", len(list), len(at))
	}
	for pair, places := range at {
		if len(places) != 2 || places[1]-places[0] > 5 { // a round has three pairs
			t.Errorf("the scenarios of %v are at the places %v, want two in one round", m.Pair(pair), places)
		}
	}
	other := e.schedule(1)
	same := 0
	for i := range list {
		if list[i] == other[i] {
			same++
		}
	}
	if same == len(list) {
		t.Error("two blocks have the same order")
	}
}

func TestAPlanOfPairsNeedsAnExecutorOfHosts(t *testing.T) {
	sc := scenario("raw", nil).Between(suite.HostPair{From: "a", To: "b"})
	_, err := NewBench(t.Context(), &testbedtest.Executor{}, "x", &sc, 2)
	must.Fail(t, err, "--testbed")
}

func TestAHostIsSuspectAfterFailuresInARow(t *testing.T) {
	e := &Experiment{}
	pair := suite.HostPair{From: "a", To: "b"}
	lost := &sample.Sample{Failure: &sample.Failure{Kind: sample.AgentLost}}
	for range suspectAfter {
		if e.suspect(pair) {
			t.Error("the host is suspect too early")
		}
		e.observe(pair, lost)
	}
	if !e.suspect(suite.HostPair{From: "c", To: "a"}) {
		t.Error("the host is not suspect")
	}
	e.observe(suite.HostPair{From: "a", To: "c"}, &sample.Sample{})
	if e.suspect(suite.HostPair{From: "c", To: "a"}) || !e.suspect(pair) {
		t.Error("a success must clear its two hosts, and no other")
	}
}
