package experiment

import (
	"fmt"
	"strings"

	"windtunnel/lab/probe"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/tool"
)

// Skips says, by scenario, why it cannot run on the machine that the facts
// describe; a scenario that can run is absent.
func Skips(plan *suite.Plan, facts *probe.Facts) map[string]string {
	skips := map[string]string{}
	for i := range plan.Scenarios {
		if why := skip(&plan.Scenarios[i], plan.Nodes, facts); why != "" {
			skips[plan.Scenarios[i].ID] = why
		}
	}
	return skips
}

// skip names every obstacle, so that one look shows all that is to be mended.
func skip(sc *suite.Scenario, nodes int, facts *probe.Facts) string {
	var why []string
	if _, err := testbed.PlanCPUs(facts.UsableCPUs(), nodes); err != nil {
		why = append(why, err.Error())
	}
	sys, err := system.ByName(sc.System)
	if err != nil {
		return err.Error()
	}
	if err := sys.Supports(sc.Placement, sc.Fabric); err != nil {
		why = append(why, err.Error())
	}
	for _, f := range append(fabricFeatures(sc.Fabric), sys.Features()...) {
		if reason, remedy, missing := facts.Missing(f); missing {
			why = append(why, reason+"; "+remedy)
		}
	}
	tl, ok := tool.ByName(sc.Tool)
	if !ok {
		return fmt.Sprintf("tool %q is unknown; there are %v", sc.Tool, tool.Names())
	}
	if err := tl.Supports(sc.Workload); err != nil {
		why = append(why, err.Error())
	}
	for _, p := range tl.Programs() {
		if facts.Find(p.Name) == "" {
			why = append(why, fmt.Sprintf("%s is not installed; get it with: %s", p.Name, p.Package))
		}
	}
	return strings.Join(why, "; ")
}

// fabricFeatures are the kernel features that a fabric needs.
func fabricFeatures(f suite.Fabric) []string {
	features := []string{"netns", "veth"}
	if f.Kind == suite.Wire {
		features = append(features, "clsact", "bpf")
	}
	if f.Rate > 0 {
		features = append(features, "tbf")
	}
	return features
}

// Programs are the executables that a plan's tools need, each once.
func Programs(plan *suite.Plan) []tool.Program {
	var list []tool.Program
	seen := map[string]bool{}
	for _, sc := range plan.Scenarios {
		tl, ok := tool.ByName(sc.Tool)
		if !ok {
			continue
		}
		for _, p := range tl.Programs() {
			if !seen[p.Name] {
				seen[p.Name] = true
				list = append(list, p)
			}
		}
	}
	return list
}
