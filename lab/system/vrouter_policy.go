package system

import (
	"fmt"

	"windtunnel/lab/suite"
)

// The parts of vrouter's policies that are used here.
type (
	vrouterPolicy struct {
		Name  string        `json:"name"`
		Rules []vrouterRule `json:"rules"`
	}
	vrouterRule struct {
		Direction string `json:"direction"`
		Action    string `json:"action"`
		Remote    string `json:"remote,omitempty"`
	}
)

// policies returns the policy of every port. Its last two rules allow all packets; the
// others deny addresses that no endpoint has (RFC 2544). So each port compares the first
// packet of a connection with all rules, or with all but one. Replies match the
// connection's flow and are not compared with rules.
func (v VRouter) policies() []vrouterPolicy {
	if v.Rules == 0 {
		return nil
	}
	directions := []string{"ingress", "egress"}
	var rules []vrouterRule
	for i := range v.Rules - len(directions) {
		rules = append(rules, vrouterRule{directions[i%2], "deny", fmt.Sprintf("198.18.%d.0/24", i)})
	}
	for _, d := range directions {
		rules = append(rules, vrouterRule{Direction: d, Action: "allow"})
	}
	return []vrouterPolicy{{"rules", rules}}
}

// Supports always returns nil.
func (VRouter) Supports(suite.Placement, suite.Fabric) error { return nil }
