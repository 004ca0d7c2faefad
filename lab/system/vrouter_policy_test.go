package system

import (
	"strings"
	"testing"

	"windtunnel/lab/suite"
)

func TestAConnectionBetweenTwoNodesIsComparedWithEveryRule(t *testing.T) {
	v, err := ByName("vrouter-direct-policy")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node      int
		direction string
	}{{0, "egress"}, {1, "ingress"}, {2, "ingress"}} {
		rules := rulesOn(t, v.(VRouter), c.node)
		if len(rules) != 50 {
			t.Fatalf("node %d: %d rules, want 50", c.node, len(rules))
		}
		for i, r := range rules {
			last := i == len(rules)-1
			if r.Direction != c.direction || (r.Action == "allow") != last || (r.Remote == "") != last {
				t.Errorf("node %d: rule %d is %+v", c.node, i+1, r)
			}
		}
	}
}

// rulesOn returns the rules of a port on a node.
func rulesOn(t *testing.T, v VRouter, node int) (rules []vrouterRule) {
	t.Helper()
	n := &Node{Name: "wt-t-a", Everywhere: []NodeEndpoint{{Node: node, Name: "c1"}}}
	state := v.state(n)
	for _, name := range state.Ports[0].Policies {
		for _, p := range state.Policies {
			if p.Name == name {
				rules = append(rules, p.Rules...)
			}
		}
	}
	return rules
}

func TestRulesAreRefusedOnOneNode(t *testing.T) {
	with, without := VRouter{Encap: "direct", Rules: 100}, VRouter{Encap: "direct"}
	if err := with.Supports(suite.Colocated, suite.Fabric{}); err == nil || !strings.Contains(err.Error(), "two-nodes") {
		t.Errorf("with rules: error %v, want one that names two-nodes", err)
	}
	if err := without.Supports(suite.Colocated, suite.Fabric{}); err != nil {
		t.Errorf("without rules: error %v, want none", err)
	}
	if got := rulesOn(t, without, 0); got != nil {
		t.Errorf("without rules a port has %v", got)
	}
}
