package testbed

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine is one whose CPUs share caches: those of a cache are 50 ns apart,
// threads of one core 20 ns, all others 150 ns.
type machine struct {
	cacheOf func(cpu int) int
	coreOf  func(cpu int) int
}

func (m machine) roundTrip(a, b int) (float64, error) {
	switch {
	case m.coreOf(a) == m.coreOf(b):
		return 20, nil
	case m.cacheOf(a) == m.cacheOf(b):
		return 50 + float64(a+b)/10, nil
	}
	return 150, nil
}

func each(cpu int) int { return cpu }

func TestNodesGetCPUsOfOneCache(t *testing.T) {
	for name, c := range map[string]struct {
		cpus int
		machine
		want Layout
	}{
		"two CPUs":                          {2, machine{each, each}, Layout{Nodes: [][]int{{0}, {1}}}},
		"three, the last two in one cache":  {3, machine{func(c int) int { return min(c, 1) }, each}, Layout{Nodes: [][]int{{1}, {2}}, Wire: []int{0}}},
		"three, the first two in one cache": {3, machine{func(c int) int { return c / 2 }, each}, Layout{Nodes: [][]int{{0}, {1}}, Wire: []int{2}}},
		"two caches of two":                 {4, machine{func(c int) int { return c / 2 }, each}, Layout{Nodes: [][]int{{0}, {1}}, Wire: []int{2}, Engine: []int{3}}},
		"eight caches of eight":             {64, machine{func(c int) int { return c / 8 }, each}, Layout{Nodes: [][]int{{2, 3, 4}, {5, 6, 7}}, Wire: []int{0}, Engine: []int{1}}},
		"caches in turn":                    {16, machine{func(c int) int { return c % 2 }, each}, Layout{Nodes: [][]int{{4, 6, 8}, {10, 12, 14}}, Wire: []int{0}, Engine: []int{2}}},
		"threads of a core":                 {16, machine{func(int) int { return 0 }, func(c int) int { return c % 8 }}, Layout{Nodes: [][]int{{2, 3, 4}, {5, 6, 7}}, Wire: []int{0}, Engine: []int{1}}},
		"nothing is near":                   {4, machine{each, each}, Layout{Nodes: [][]int{{2}, {3}}, Wire: []int{0}, Engine: []int{1}}},
	} {
		cpus, err := Nearest(count(c.cpus), 2, c.coreOf, c.roundTrip)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := PlanCPUs(cpus, 2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("the plan of %s differs: %s", name, d)
		}
	}
}

func TestADistanceThatCannotBeMeasuredIsAnError(t *testing.T) {
	broken := errors.New("offline")
	_, err := Nearest(count(4), 2, each, func(int, int) (float64, error) { return 0, broken })
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
