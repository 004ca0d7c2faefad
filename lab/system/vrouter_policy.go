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

// policies returns two policies: one for the ports of node 0, which has the senders,
// and one for all other ports. Each policy has half of the rules, because vrouter
// allows 64 rules on a port. Only the last rule matches, so the first packet of a
// connection is compared with every rule. Replies match the connection's flow and
// are not compared with rules.
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

// vrouterRules returns the given number of rules. The last rule allows all packets;
// the others deny addresses that no endpoint has (RFC 2544).
func vrouterRules(direction string, count int) []vrouterRule {
	var rules []vrouterRule
	for i := range count - 1 {
		rules = append(rules, vrouterRule{direction, "deny", fmt.Sprintf("198.18.%d.0/24", i)})
	}
	return append(rules, vrouterRule{Direction: direction, Action: "allow"})
}

// portPolicies returns the names of the policies of the ports on a node, by node
// index.
func (v VRouter) portPolicies(node int) []string {
	switch {
	case v.Rules == 0:
		return nil
	case node == 0:
		return []string{"senders"}
	}
	return []string{"receivers"}
}

// Supports returns an error for policy rules on one node: only half of the rules
// would apply to a connection.
func (v VRouter) Supports(p suite.Placement, _ suite.Fabric) error {
	if v.Rules > 0 && p == suite.Colocated {
		return errors.New("half of the policy rules apply on the sender's node and half on the receiver's node; use placement two-nodes")
	}
	return nil
}
