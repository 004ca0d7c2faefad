package testbed

import (
	"fmt"
	"slices"
)

// Layout assigns separate CPUs to every node.
type Layout struct {
	Nodes  [][]int // by node
	Wire   []int   // the fabric's own; empty where there are none to spare
	Engine []int   // the engine's own; empty where there are none to spare
	// Shared reports that there are fewer CPUs than nodes. The nodes then share CPUs,
	// and the CPU time of one node cannot be measured.
	Shared bool
	// OneMachine reports that several nodes of OnMachines are on one machine. Programs of one
	// node can then run on the CPUs of another.
	OneMachine bool
}

// OnMachines returns the layout of nodes that are whole machines. machine returns the boot ID
// and the CPUs of node i. Nodes with the same boot ID are on one machine.
func OnMachines(nodes int, machine func(i int) (boot string, cpus []int)) (l Layout) {
	for i := range nodes {
		boot, cpus := machine(i)
		for j, others := range l.Nodes {
			if other, _ := machine(j); other == boot {
				l.OneMachine = true
				l.Shared = l.Shared || slices.ContainsFunc(cpus, func(c int) bool { return slices.Contains(others, c) })
			}
		}
		l.Nodes = append(l.Nodes, cpus)
	}
	return l
}

// CPUs lists all CPUs of the layout.
func (l Layout) CPUs() []int {
	return slices.Sorted(slices.Values(slices.Concat(slices.Concat(l.Nodes...), l.Wire, l.Engine)))
}

// Limit keeps each node's first CPUs; 0 keeps all. The other CPUs are idle.
func (l Layout) Limit(cpus int) (Layout, error) {
	if cpus == 0 {
		return l, nil
	}
	l.Nodes = slices.Clone(l.Nodes)
	for i, has := range l.Nodes {
		if len(has) < cpus {
			return l, fmt.Errorf("nodes of %d CPUs: node %d gets %d on this machine; set a smaller `cpus`, or run on a machine with more CPUs", cpus, i+1, len(has))
		}
		l.Nodes[i] = has[:cpus:cpus]
	}
	return l, nil
}

// PlanCPUs divides the CPUs: one for each node first, then one for the fabric,
// then one for the engine. The nodes get equal numbers of the other CPUs, and the fabric
// gets the remainder. A single CPU is an error, because the two nodes need separate ones.
func PlanCPUs(cpus []int, nodes int) (Layout, error) {
	if nodes < 1 {
		return Layout{}, fmt.Errorf("a testbed of %d nodes: at least 1 is needed", nodes)
	}
	if len(cpus) < 2 && nodes > 1 {
		return Layout{}, fmt.Errorf("%d CPU is usable and %d nodes need one each: sender and receiver would share it, and their costs could not be told apart; give this machine (or its cpuset) 2 CPUs or more", len(cpus), nodes)
	}
	l := Layout{Nodes: make([][]int, nodes)}
	if len(cpus) < nodes {
		l.Shared = true
		for i := range nodes {
			l.Nodes[i] = []int{cpus[i%len(cpus)]}
		}
		return l, nil
	}
	free := len(cpus) - nodes
	if free >= 1 {
		l.Wire, cpus = cpus[:1:1], cpus[1:]
	}
	if free >= 2 {
		l.Engine, cpus = cpus[:1:1], cpus[1:]
	}
	each := len(cpus) / nodes
	for i := range nodes {
		l.Nodes[i] = cpus[:each:each]
		cpus = cpus[each:]
	}
	l.Wire = append(l.Wire, cpus...)
	return l, nil
}
