package experiment

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/probe"
	"windtunnel/lab/program"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/units"
)

// Skips returns the reasons why scenarios cannot run in an executor's testbeds, by
// scenario ID. facts describe the machines of the testbeds; if the plan has a matrix, they
// have the order of its hosts. Scenarios that can run are absent.
func Skips(plan *suite.Plan, x testbed.Executor, facts ...*probe.Facts) map[string]string {
	if plan.Matrix != nil {
		return skipsOfPairs(plan, x, facts)
	}
	skips := map[string]string{}
	for i := range plan.Scenarios {
		if why := skip(&plan.Scenarios[i], plan.Nodes, x, facts); why != "" {
			skips[plan.Scenarios[i].ID] = why
		}
	}
	return skips
}

// skip returns all reasons why a scenario cannot run; "" if it can.
func skip(sc *suite.Scenario, nodes int, x testbed.Executor, machines []*probe.Facts) string {
	var why []string
	layout, err := x.Layout(nodes)
	if err != nil {
		why = append(why, err.Error())
	} else {
		why = tooFewCPUs(sc, fewest(layout.Nodes))
	}
	if cut := sc.Fabric.Cut; cut >= sc.Timing.Duration && cut > 0 {
		why = append(why, fmt.Sprintf("its link is cut after %v, and the measured part ends after %v; choose a longer duration", cut, sc.Timing.Duration))
	}
	if every := sc.Workload.ChangeEvery; every >= sc.Timing.Duration {
		why = append(why, fmt.Sprintf("its network changes every %v, and the measured part ends after %v; choose a longer duration", every, sc.Timing.Duration))
	}
	c, err := resolve(sc)
	if err != nil {
		return err.Error()
	}
	_, cluster := x.(testbed.Cluster)
	if why := c.misplaced(cluster); why != "" {
		return why
	}
	why = append(why, c.unsupported()...)
	features, err := x.Requires(sc, c.about)
	if err != nil {
		why = append(why, err.Error())
	}
	if err := c.tool.Supports(sc.Workload); err != nil {
		why = append(why, err.Error())
	}
	if sc.Workload.IPVersion == 6 && c.about.IPv4Only {
		why = append(why, sc.System+" carries IPv4 only")
	}
	for _, m := range machines {
		lacks := slices.Concat(lacksForVMs(sc, m), lacksFeatures(features, m), lacksFor(c.system, m), lacksPrograms(c.tool.Programs(), m))
		for _, lack := range lacks {
			why = append(why, m.Where()+lack)
		}
	}
	return strings.Join(why, "; ")
}

// Misplaced returns the scenarios whose systems cannot run in a testbed, by ID, with the
// reasons. It needs no connection to the testbed. cluster is set for a Kubernetes cluster.
func Misplaced(plan *suite.Plan, cluster bool) map[string]string {
	skips := map[string]string{}
	for c := range scenarios(plan) {
		if why := c.misplaced(cluster); why != "" {
			skips[c.ID] = why
		}
	}
	return skips
}

// fewest returns the smallest number of CPUs of a node.
func fewest(nodes [][]int) int {
	n := len(nodes[0])
	for _, cpus := range nodes {
		n = min(n, len(cpus))
	}
	return n
}

// lacksFor names the requirements of a system that a machine lacks, with remedies.
func lacksFor(sys system.System, facts *probe.Facts) []string {
	features, programs := sys.Needs()
	return append(lacksFeatures(features, facts), lacksPrograms(programs, facts)...)
}

func lacksFeatures(features []string, facts *probe.Facts) (why []string) {
	for _, f := range features {
		if reason, remedy, missing := facts.Missing(f); missing {
			why = append(why, reason+"; "+remedy)
		}
	}
	return why
}

func lacksPrograms(programs []program.Program, facts *probe.Facts) (why []string) {
	for _, p := range programs {
		if lack := facts.Lacks(p); lack != "" {
			why = append(why, lack)
		}
	}
	return why
}

// streamsPerCPU is the largest number of streams for each CPU of a node. With more, a stream
// waits seconds for its turn. Then receivers read in the window what arrived before it, or do
// not read what arrives, and most throughputs differ from the fabric's by more than 10 %.
const streamsPerCPU = 128

// streams returns the number of the streams of a scenario that load a node; 0 for
// request/response.
func streams(sc *suite.Scenario) int {
	if sc.Workload.Kind.Exchange() {
		return 0
	}
	n := sc.Workload.Streams * max(sc.Pairs, 1)
	if sc.Workload.Direction == suite.Both {
		n *= 2
	}
	return n
}

// tooFewCPUs names a setting that spreads work over more CPUs than a node has. The
// figures of such a setting would be meaningless. has is the number of CPUs per node.
func tooFewCPUs(sc *suite.Scenario, has int) (why []string) {
	lack := func(what string, needs int) {
		if has < needs {
			why = append(why, fmt.Sprintf("%s: needs %d CPUs per node, this machine gives %d", what, needs, has))
		}
	}
	if n := sc.Fabric.CPUs; n > 0 {
		lack("nodes of "+phrase.Count(n, "CPU"), n)
		has = min(has, n)
	}
	if n := streams(sc); n > streamsPerCPU {
		lack(fmt.Sprintf("%d streams (with more than %d for each CPU, sockets hold too much of the sent data)", n, streamsPerCPU), (n+streamsPerCPU-1)/streamsPerCPU)
	}
	if n := sc.Fabric.Queues; n > 1 {
		lack(fmt.Sprintf("%d receive queues, each served by a CPU of its own", n), n)
	}
	if sc.Fabric.MovingQueues {
		lack("receive queues that move between CPUs", 2)
	}
	if sc.Endpoint.Kind == suite.VM && sc.Endpoint.Spread {
		lack("a VM's receive work spread over its CPUs", sc.Endpoint.CPUs)
	}
	if sc.Endpoint.Kind == suite.Container && sc.Endpoint.Spread {
		lack("an endpoint's receive work spread over CPUs", 2)
	}
	return why
}

// Programs lists the executables that a plan's tools and systems need, each once.
func Programs(plan *suite.Plan) []program.Program {
	var list []program.Program
	seen := map[string]bool{}
	add := func(ps []program.Program) {
		for _, p := range ps {
			if !seen[p.Name] {
				seen[p.Name] = true
				list = append(list, p)
			}
		}
	}
	for c := range scenarios(plan) {
		add(c.tool.Programs())
		_, programs := c.system.Needs()
		add(programs)
	}
	return list
}

// lacksForVMs names the requirements of VMs that the machine lacks.
func lacksForVMs(sc *suite.Scenario, facts *probe.Facts) (why []string) {
	if sc.Endpoint.Kind != suite.VM {
		return nil
	}
	why = lacksFeatures([]string{probe.Tun, probe.QEMU, probe.GuestKernel}, facts)
	vms := 2 * sc.Pairs
	if sc.Endpoint.HostVNIC {
		vms -= 2
	}
	if needs := int64(vms) * sc.Endpoint.Memory; facts.MemoryBytes > 0 && uint64(needs) > facts.MemoryBytes {
		why = append(why, fmt.Sprintf("its %d VMs take %s of memory and this machine has %s; make their memory smaller", vms, units.FormatBytes(needs), units.FormatBytes(int64(facts.MemoryBytes))))
	}
	return why
}
