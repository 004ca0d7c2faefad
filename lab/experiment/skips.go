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
	"windtunnel/lab/tool"
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
	sys, err := system.ByName(sc.System)
	if err != nil {
		return err.Error()
	}
	_, cluster := x.(testbed.Cluster)
	if why := misplaced(sys, cluster); why != "" {
		return why
	}
	why = append(why, whyUnsupported(sys, sc)...)
	features, err := x.Requires(sc)
	if err != nil {
		why = append(why, err.Error())
	}
	tl, ok := tool.ByName(sc.Tool)
	if !ok {
		return fmt.Sprintf("tool %q is unknown; there are %v", sc.Tool, tool.Names())
	}
	if err := tl.Supports(sc.Workload); err != nil {
		why = append(why, err.Error())
	}
	if sc.Workload.IPVersion == 6 && system.IPv4Only(sys) {
		why = append(why, sc.System+" carries IPv4 only")
	}
	for _, m := range machines {
		lacks := slices.Concat(lacksForVMs(sc, m), lacksFeatures(features, m), LacksFor(sys, m), lacksPrograms(tl.Programs(), m))
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
	for _, sc := range plan.Scenarios {
		sys, err := system.ByName(sc.System)
		if err != nil {
			continue // Skips names it
		}
		if why := misplaced(sys, cluster); why != "" {
			skips[sc.ID] = why
		}
	}
	return skips
}

// misplaced returns the reason why a system cannot run in a testbed; "" if it can.
func misplaced(sys system.System, cluster bool) string {
	switch in := system.InCluster(sys); {
	case in && !cluster:
		return sys.Name() + " needs a Kubernetes cluster; use --testbed k8s"
	case cluster && !in:
		return sys.Name() + " does not run in a cluster; use the systems host, cni and service"
	}
	return ""
}

// fewest returns the smallest number of CPUs of a node.
func fewest(nodes [][]int) int {
	n := len(nodes[0])
	for _, cpus := range nodes {
		n = min(n, len(cpus))
	}
	return n
}

// whyUnsupported returns the reasons why a system does not support the placement,
// the fabric or the endpoint of a scenario.
func whyUnsupported(sys system.System, sc *suite.Scenario) (why []string) {
	for _, err := range []error{
		sys.Supports(sc.Placement, sc.Fabric), system.SupportsEndpoint(sys, sc.Endpoint, sc.Fabric), system.SupportsVMs(sys, sc.Endpoint),
	} {
		if err != nil {
			why = append(why, err.Error())
		}
	}
	return append(why, whyUnpublished(sys, sc)...)
}

// whyUnpublished returns the reasons why published ports cannot carry a scenario.
func whyUnpublished(sys system.System, sc *suite.Scenario) (why []string) {
	if !system.Publishes(sys) || sc.Placement == suite.Colocated {
		return nil
	}
	if sc.Workload.IPVersion == 6 {
		why = append(why, sys.Name()+" publishes ports over IPv4 only; use ip_version: 4, or placement colocated")
	}
	if sc.Pairs > 1 {
		why = append(why, fmt.Sprintf("%s publishes the ports of one container of a node, and the scenario has %d pairs; use pairs: 1, or placement colocated", sys.Name(), sc.Pairs))
	}
	if t, ok := tool.ByName(sc.Tool); ok && !tool.BehindNAT(t) {
		why = append(why, fmt.Sprintf("%s listens on the address to which its client connects, which a container behind published ports does not have; use the tool builtin, iperf3 or qperf, or placement colocated", sc.Tool))
	}
	return why
}

// LacksFor names the requirements of a system that this machine lacks, with
// remedies; empty if the system can run in some scenario.
func LacksFor(sys system.System, facts *probe.Facts) []string {
	return append(lacksFeatures(sys.Features(), facts), lacksPrograms(system.Programs(sys), facts)...)
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
	for _, sc := range plan.Scenarios {
		if tl, ok := tool.ByName(sc.Tool); ok {
			add(tl.Programs())
		}
		if sys, err := system.ByName(sc.System); err == nil {
			add(system.Programs(sys))
		}
	}
	return list
}
