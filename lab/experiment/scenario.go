package experiment

import (
	"fmt"
	"iter"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/tool"
)

// resolved is a scenario with the system and the tool that it names.
type resolved struct {
	*suite.Scenario
	system system.System
	about  system.About // of the system
	tool   tool.Tool
}

// resolve finds the system and the tool of a scenario.
func resolve(sc *suite.Scenario) (resolved, error) {
	sys, err := system.ByName(sc.System)
	if err != nil {
		return resolved{}, failed(sample.Unsupported, "%w", err)
	}
	tl, ok := tool.ByName(sc.Tool)
	if !ok {
		return resolved{}, failed(sample.Unsupported, "tool %q is unknown; there are %v", sc.Tool, tool.Names())
	}
	return resolved{sc, sys, sys.About(), tl}, nil
}

// scenarios yields the scenarios of a plan, except those whose system or tool is unknown, which
// Skips names.
func scenarios(plan *suite.Plan) iter.Seq[resolved] {
	return func(yield func(resolved) bool) {
		for i := range plan.Scenarios {
			if c, err := resolve(&plan.Scenarios[i]); err == nil && !yield(c) {
				return
			}
		}
	}
}

// misplaced returns the reason why the system cannot run in a testbed; "" if it can.
func (c resolved) misplaced(cluster bool) string {
	switch in := c.about.InCluster; {
	case in && !cluster:
		return c.System + " needs a Kubernetes cluster; use --testbed k8s"
	case cluster && !in:
		return c.System + " does not run in a cluster; use the systems host, cni and service"
	}
	return ""
}

// unsupported returns the reasons why the system does not support the placement, the
// fabric or the endpoint of the scenario, or why published ports cannot carry it.
func (c resolved) unsupported() (why []string) {
	for _, err := range []error{system.Supports(c.system, c.Placement, c.Fabric), system.SupportsEndpoint(c.system, c.Endpoint, c.Fabric)} {
		if err != nil {
			why = append(why, err.Error())
		}
	}
	if c.Workload.Change != "" {
		if _, err := system.ChangeOf(c.system, c.Workload.Change); err != nil {
			why = append(why, err.Error())
		}
		if c.Workload.Change == suite.ChangeNodes && (c.Fabric.Kind == suite.Existing || c.Fabric.Links > 1) {
			why = append(why, "another node joins on an emulated fabric of one link only, where the lab knows an unused address; remove change: nodes")
		}
		if c.Endpoint.Kind == suite.VM {
			why = append(why, "the lab changes networks of containers only; use containers as endpoints, or remove change")
		}
	}
	if !c.about.Publishes || c.Placement == suite.Colocated {
		return why
	}
	if c.Workload.IPVersion == 6 {
		why = append(why, c.System+" publishes ports over IPv4 only; use ip_version: 4, or placement colocated")
	}
	if c.Pairs > 1 {
		why = append(why, fmt.Sprintf("%s publishes the ports of one container of a node, and the scenario has %d pairs; use pairs: 1, or placement colocated", c.System, c.Pairs))
	}
	if !tool.BehindNAT(c.tool) {
		why = append(why, fmt.Sprintf("%s listens on the address to which its client connects, which a container behind published ports does not have; use the tool builtin, iperf3 or qperf, or placement colocated", c.Tool))
	}
	return why
}
