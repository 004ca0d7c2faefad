package system

import (
	"errors"
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

// policies returns a policy for the ports of node 0, where senders are, and one
// for all other ports. Each has half of the rules: vrouter allows 64 on a port.
// Only the last rule matches, so the first packet of a connection is compared with
// every rule, and its answers pass by the flow.
func (v VRouter) policies() []vrouterPolicy {
	if v.Rules == 0 {
		return nil
	}
	half := v.Rules / 2
	return []vrouterPolicy{
		{"senders", vrouterRules("egress", half)},
		{"receivers", vrouterRules("ingress", v.Rules-half)},
	}
}

// vrouterRules denies addresses that no endpoint has (RFC 2544) and allows the rest.
func vrouterRules(direction string, count int) []vrouterRule {
	var rules []vrouterRule
	for i := range count - 1 {
		rules = append(rules, vrouterRule{direction, "deny", fmt.Sprintf("198.18.%d.0/24", i)})
	}
	return append(rules, vrouterRule{Direction: direction, Action: "allow"})
}

// portPolicies names the policies of a port on a node, which is an index.
func (v VRouter) portPolicies(node int) []string {
	switch {
	case v.Rules == 0:
		return nil
	case node == 0:
		return []string{"senders"}
	}
	return []string{"receivers"}
}

// Supports refuses rules on one node, where a connection would pass half of them.
func (v VRouter) Supports(p suite.Placement, _ suite.Fabric) error {
	if v.Rules > 0 && p == suite.Colocated {
		return errors.New("half of its policy rules are on each of two nodes; use placement two-nodes")
	}
	return nil
}
