package testbed

import (
	"math"
	"slices"
)

// Nearest orders CPUs for PlanCPUs so that the nodes get CPUs that are near each
// other, because a receiver's CPU reads the data that a sender's CPU wrote. core returns the
// core that a CPU is a thread of, roundTrip the distance of two CPUs in ns.
//
// If enough CPUs for the nodes, the wire and the engine share one cache, Nearest omits the
// other CPUs. If there are enough cores, it also omits their second threads, because the
// threads of a core slow each other down.
func Nearest(cpus []int, nodes int, core func(cpu int) int, roundTrip func(a, b int) (float64, error)) ([]int, error) {
	const others = 2 // the wire and the engine
	if first := firstThreads(cpus, core); len(first) >= nodes+others {
		cpus = first
	}
	if len(cpus) <= nodes {
		return cpus, nil
	}
	groups, err := groupsOf(cpus, roundTrip)
	if err != nil {
		return nil, err
	}
	best := groups[0]
	for _, g := range groups {
		if len(g) > len(best) {
			best = g
		}
	}
	switch n := len(best); {
	case n >= nodes+others:
		return best, nil
	case n >= nodes:
		rest := slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return slices.Contains(best, c) })
		return append(rest[:min(others, len(rest))], best[:n-n%nodes]...), nil
	}
	return cpus, nil
}

func firstThreads(cpus []int, core func(cpu int) int) []int {
	var first []int
	seen := map[int]bool{}
	for _, c := range cpus {
		if k := core(c); !seen[k] {
			seen[k] = true
			first = append(first, c)
		}
	}
	return first
}

// near is the largest distance within one cache, as a multiple of the shortest distance.
const near = 1.6

// groupsOf divides CPUs into groups whose members are near each other. It first
// finds the shortest distance on this machine: it measures CPUs with consecutive
// numbers, and the first CPU against all others.
func groupsOf(cpus []int, roundTrip func(a, b int) (float64, error)) ([][]int, error) {
	limit := math.Inf(1)
	for i := 1; i < len(cpus); i++ {
		for _, from := range []int{cpus[0], cpus[i-1]} {
			trip, err := roundTrip(from, cpus[i])
			if err != nil {
				return nil, err
			}
			limit = min(limit, near*trip)
		}
	}
	var groups [][]int
	for rest := cpus; len(rest) > 0; {
		group, farther := rest[:1:1], []int(nil)
		for _, c := range rest[1:] {
			trip, err := roundTrip(rest[0], c)
			if err != nil {
				return nil, err
			}
			if trip <= limit {
				group = append(group, c)
			} else {
				farther = append(farther, c)
			}
		}
		groups = append(groups, group)
		rest = farther
	}
	return groups, nil
}
