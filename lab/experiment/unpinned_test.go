package experiment

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// If the nodes are pinned, the tools run on the CPUs of their own node. If not, they may run on the CPUs of both
// nodes, and the sample has no figure for the CPU of the sender or of the receiver.
func TestToolsOfNodesThatAreNotPinnedRunOnAllCPUs(t *testing.T) {
	for _, unpinned := range []bool{false, true} {
		t.Run(fmt.Sprintf("unpinned %v", unpinned), func(t *testing.T) {
			allowed, nodes, s := affinities(t, scenario("bridge", func(sc *suite.Scenario) {
				sc.Fabric.Unpinned = unpinned
				sc.Timing.Duration = 1600 * time.Millisecond // long enough for three readings of the threads' CPUs
			}))
			want := map[string][][]int{"a/c1": {nodes[0]}, "b/c1": {nodes[1]}}
			if unpinned {
				all := slices.Sorted(slices.Values(slices.Concat(nodes...)))
				want = map[string][][]int{"a/c1": {all}, "b/c1": {all}}
			}
			must.Equal(t, want, allowed)
			expectFigures(t, &s, unpinned)
		})
	}
}

// If the nodes are pinned, each virtual CPU of a VM has one CPU. If not, it may run on all CPUs.
func TestVMsOfNodesThatAreNotPinnedRunOnAllCPUs(t *testing.T) {
	must.Long(t)
	sc := vmScenario(t, "bridge", func(sc *suite.Scenario) { sc.Fabric.Unpinned = true })
	e := lab(t, &notebook{}, sc)
	b := must.Get(NewBench(t.Context(), e.Executor, e.ID, &sc, 2))(t)
	defer func() { must.Succeed(t, b.Down(context.Background())) }()
	all := slices.Sorted(slices.Values(slices.Concat(b.Testbed.Layout().Nodes...)))
	for _, n := range b.Testbed.Nodes() {
		id := must.Get(n.Agent().Identity(t.Context()))(t)
		sets := threadsIn(t, id.Namespaces[0])
		for _, set := range sets {
			must.Equal(t, all, set)
		}
		if len(sets) < 6 { // those of the agent and of QEMU
			t.Errorf("node %s has %d threads; want at least 6, those of the agent and of QEMU", n.Name(), len(sets))
		}
	}
}

// affinities runs a scenario once, and reads several times on which CPUs the threads of each node may run. allowed has the
// different sets of CPUs, by endpoint. nodes has the CPUs that the layout gives to each node.
func affinities(t *testing.T, sc suite.Scenario) (allowed map[string][][]int, nodes [][]int, s sample.Sample) {
	t.Helper()
	allowed = map[string][][]int{}
	seen := map[string]int{} // number of threads, added up over all readings; by endpoint
	var bench *Bench
	n := &notebook{up: func(b *Bench) { bench, nodes = b, b.Testbed.Layout().Nodes }}
	n.moved = func() {
		for _, e := range []Endpoint{bench.Pairs[0].Sender, bench.Pairs[0].Receiver} {
			id, err := e.Node.Agent().Identity(t.Context())
			if err != nil {
				t.Errorf("cannot ask the agent of endpoint %s for its namespaces: %v", e, err)
				return
			}
			for _, inode := range id.Namespaces {
				for _, set := range threadsIn(t, inode) {
					seen[e.String()]++
					if !slices.ContainsFunc(allowed[e.String()], func(o []int) bool { return slices.Equal(o, set) }) {
						allowed[e.String()] = append(allowed[e.String()], set)
					}
				}
			}
		}
	}
	must.Succeed(t, lab(t, n, sc).Run(t.Context()))
	if len(n.samples) != 1 || !n.samples[0].OK() {
		t.Fatalf("the samples are %+v; want one without a failure", n.samples)
	}
	if seen["a/c1"] < 4 || seen["b/c1"] < 4 { // those of the agent and of the tool
		t.Errorf("found %v threads in all readings; want at least 4 for each endpoint", seen)
	}
	return allowed, nodes, n.samples[0]
}

// threadsIn returns a set of CPUs for each thread in a network namespace: those on which the thread may run.
func threadsIn(t *testing.T, inode uint32) (sets [][]int) {
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	must.Succeed(t, err)
	for _, link := range links {
		at, err := os.Readlink(link)
		own := strings.HasPrefix(link, fmt.Sprintf("/proc/%d/", os.Getpid())) // not counted: threads of the test enter the namespaces
		if err != nil || own || at != fmt.Sprintf("net:[%d]", inode) {
			continue
		}
		tasks, _ := filepath.Glob(strings.Replace(link, "ns/net", "task/*", 1))
		for _, task := range tasks {
			id := must.Get(strconv.Atoi(filepath.Base(task)))(t)
			var set unix.CPUSet
			if unix.SchedGetaffinity(id, &set) != nil {
				continue // the thread has ended
			}
			var cpus []int
			for c := range len(set) * 64 {
				if set.IsSet(c) {
					cpus = append(cpus, c)
				}
			}
			sets = append(sets, cpus)
		}
	}
	return sets
}

// expectFigures checks that the sample has the figures for the CPU of the sender and of the receiver if the nodes are pinned, and none if not.
func expectFigures(t *testing.T, s *sample.Sample, unpinned bool) {
	t.Helper()
	for _, m := range []sample.Metric{sample.Throughput, sample.Segments, sample.Retransmits, sample.FabricBits, sample.SenderToolCores, sample.ReceiverToolCores, sample.ObserverCores, sample.SenderStealCPU, sample.ReceiverStealCPU} {
		if _, ok := s.Metrics[m]; !ok {
			t.Errorf("the sample lacks %s", m)
		}
	}
	assertFabricAgrees(t, s)
	var sides []sample.Metric // figures for the CPU of the sender or of the receiver, computed from its node's CPUs
	for m := range maps.Keys(s.Metrics) {
		counted := []sample.Metric{sample.SenderToolCores, sample.ReceiverToolCores, sample.SenderStealCPU, sample.ReceiverStealCPU, sample.SenderForeignCPU, sample.ReceiverForeignCPU, sample.ToolSenderCPU, sample.ToolReceiverCPU}
		if strings.Contains(string(m), "cpu") && m.Side() != "" && !slices.Contains(counted, m) || m == sample.Capacity {
			sides = append(sides, m)
		}
	}
	cpu := slices.ContainsFunc(s.Series, func(p sample.Point) bool { return p.SenderCPU > 0 || p.ReceiverCPU > 0 })
	warned := strings.Contains(strings.Join(s.Warnings, "\n"), "the nodes are not pinned")
	if got := len(sides) > 0; got == unpinned || cpu == unpinned || warned != unpinned {
		t.Errorf("unpinned is %v, and the sample has the CPU figures %v; its series has CPU figures: %v; it has the warning about nodes that are not pinned: %v", unpinned, sides, cpu, warned)
	}
}

func TestScenariosThatAreNotPinnedHaveNoProfile(t *testing.T) {
	plan := &suite.Plan{Nodes: 2, Trials: 2, Scenarios: []suite.Scenario{scenario("raw", nil), scenario("bridge", func(sc *suite.Scenario) { sc.Fabric.Unpinned = true })}}
	e := &Experiment{Plan: plan, Seed: 1, Profiling: Profiling{Rate: 99, Blocks: 1}}
	for block, want := range []map[entry]int{
		{{scenario: 0}: 1, {scenario: 0, profiled: true}: 1, {scenario: 1}: 1},
		{{scenario: 0}: 1, {scenario: 1}: 1},
	} {
		got := map[entry]int{}
		for _, next := range e.schedule(block) {
			got[next]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("block %d has the entries %v, want %v", block, got, want)
		}
	}
}
