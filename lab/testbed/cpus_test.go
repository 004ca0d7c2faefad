package testbed

import (
	"testing"

	"windtunnel/internal/must"
)

func count(n int) []int {
	cpus := make([]int, n)
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}

func TestNodesOnMachinesShareCPUsOnOneMachineOnly(t *testing.T) {
	for _, c := range []struct {
		boots       [2]string
		second      int // CPU of the second node; the first has CPU 0
		shared, one bool
	}{
		{[2]string{"x", "x"}, 0, true, true}, {[2]string{"x", "x"}, 1, false, true}, {[2]string{"x", "y"}, 0, false, false},
	} {
		l := OnMachines(2, func(i int) (string, []int) { return c.boots[i], []int{i * c.second} })
		if l.Shared != c.shared || l.OneMachine != c.one || len(l.Nodes) != 2 || l.Nodes[1][0] != c.second {
			t.Errorf("%+v: the layout is %+v, want shared %v, on one machine %v", c, l, c.shared, c.one)
		}
	}
}

func TestTwoCPUsGoOneToEachNode(t *testing.T) {
	got := must.Get(PlanCPUs(count(2), 2))(t)
	want := Layout{Nodes: [][]int{{0}, {1}}}
	must.Equal(t, want, got)
}

func TestTheThirdCPUIsTheFabricsAndTheFourthTheEngines(t *testing.T) {
	three, _ := PlanCPUs(count(3), 2)
	must.Equal(t, Layout{Nodes: [][]int{{1}, {2}}, Wire: []int{0}}, three)
	four, _ := PlanCPUs(count(4), 2)
	must.Equal(t, Layout{Nodes: [][]int{{2}, {3}}, Wire: []int{0}, Engine: []int{1}}, four)
}

func TestOneCPUIsRefused(t *testing.T) {
	if _, err := PlanCPUs(count(1), 2); err == nil {
		t.Fatal("one CPU for two nodes was accepted")
	}
}

func TestMoreNodesThanCPUsShareCPUsAndAreMarked(t *testing.T) {
	got := must.Get(PlanCPUs(count(2), 3))(t)
	if !got.Shared {
		t.Error("not marked as shared")
	}
	must.Equal(t, [][]int{{0}, {1}, {0}}, got.Nodes)
}

// Every CPU is given exactly once and every node gets as many as the others.
func TestCPUsAreDisjointAndEven(t *testing.T) {
	for n := 2; n <= 130; n++ {
		for nodes := 1; nodes <= min(n, 5); nodes++ {
			l, err := PlanCPUs(count(n), nodes)
			if err != nil {
				t.Fatalf("%d CPUs, %d nodes: %v", n, nodes, err)
			}
			seen := map[int]int{}
			for _, set := range append(append([][]int{}, l.Nodes...), l.Wire, l.Engine) {
				for _, c := range set {
					seen[c]++
				}
			}
			if len(seen) != n {
				t.Errorf("%d CPUs, %d nodes: %d are used", n, nodes, len(seen))
			}
			for c, times := range seen {
				if times != 1 {
					t.Errorf("%d CPUs, %d nodes: CPU %d is given %d times", n, nodes, c, times)
				}
			}
			for i := range l.Nodes {
				if len(l.Nodes[i]) != len(l.Nodes[0]) {
					t.Errorf("%d CPUs, %d nodes: uneven: %v", n, nodes, l.Nodes)
				}
			}
		}
	}
}

func TestALimitLeavesEachNodeItsFirstCPUs(t *testing.T) {
	given := Layout{Nodes: [][]int{{2, 3, 4}, {5, 6, 7}}, Wire: []int{0}, Engine: []int{1}}
	got, err := given.Limit(2)
	must.Succeed(t, err)
	must.Equal(t, Layout{Nodes: [][]int{{2, 3}, {5, 6}}, Wire: []int{0}, Engine: []int{1}}, got)
	if len(given.Nodes[0]) != 3 {
		t.Errorf("the given layout changed: %v", given.Nodes)
	}
	_, err = given.Limit(4)
	must.Fail(t, err, "nodes of 4 CPUs: node 1 gets 3 on this machine")
}
