package system

import (
	"testing"

	"windtunnel/internal/must"
)

func TestAConnectionIsComparedWithEveryRuleOfAPort(t *testing.T) {
	with := must.Get(ByName("vrouter-direct-policy"))(t)
	for node := range 3 {
		rules := rulesOn(with.(VRouter), node)
		if len(rules) != 100 {
			t.Fatalf("node %d: %d rules, want 100", node, len(rules))
		}
		for i, r := range rules {
			allows := i >= 98
			if (r.Action == "allow") != allows || (r.Remote == "") != allows {
				t.Errorf("node %d: rule %d is %+v", node, i+1, r)
			}
		}
		if in, out := rules[98].Direction, rules[99].Direction; in != "ingress" || out != "egress" {
			t.Errorf("node %d: the last rules allow %s and %s, want ingress and egress", node, in, out)
		}
	}
	if got := rulesOn(VRouter{Encap: "direct"}, 0); got != nil {
		t.Errorf("without rules a port has %v", got)
	}
}

// rulesOn returns the rules of a port on a node.
func rulesOn(v VRouter, node int) (rules []vrouterRule) {
	state := v.state(&Node{Name: "wt-t-a", Everywhere: []NodeEndpoint{{Node: node, Name: "c1"}}})
	for _, name := range state.Ports[0].Policies {
		for _, p := range state.Policies {
			if p.Name == name {
				rules = append(rules, p.Rules...)
			}
		}
	}
	return rules
}
