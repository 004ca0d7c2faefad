package fib

import (
	"fmt"
	"net/netip"
	"slices"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// policy concatenates the rules of a port and of its network. A direction without
// rules allows everything. A port that connects the node itself (attach.host)
// accepts only replies if it has no policies, so that workloads cannot reach the
// node's services. With node_access, such a port has only its own rules: the rules of the
// workloads' ports decide, and the node's firewall.
func (c *compiler) policy(p *model.Port, n *network) Policy {
	f := Policy{AllowIn: true, AllowOut: true}
	if g := c.facts.Grouping; g != nil {
		if f.Group = g.Groups[p.Name]; f.Group.isClosed() {
			f.Revision = g.Revision
		}
	}
	names := [][]string{p.Policies, n.Policies}
	switch {
	case p == n.host:
		names = names[:1]
	case n.host != nil:
		f.Rules = n.probes()
	case p.Attach.Host && len(p.Policies) == 0:
		c.add(&f, &nodesOwn)
	}
	for _, names := range names {
		for _, name := range names {
			policy := c.policies[name]
			if policy == nil {
				c.errs = append(c.errs, fmt.Errorf("compile port %q: policy %q does not exist; create it, or remove it from the port", p.Name, name))
				continue
			}
			c.add(&f, policy)
		}
	}
	if f.AllowIn && f.AllowOut {
		f.Rules = nil // the rules for probes decide nothing
	}
	if f.Group.isClosed() && n.host != nil {
		c.addOwnNode(&f, n)
	}
	return f
}

// grouping copies the sets to the tables if they fit; else closed groups allow no flow.
func (c *compiler) grouping() {
	g, limit := c.facts.Grouping, int(c.facts.Limits.Sets)
	if g == nil {
		return
	}
	if n := g.Entries(); limit != 0 && n > limit {
		c.warn("node", "groups", "the NetworkPolicies need %d map entries, and the maps have room for %d, so all ports that a policy selects are closed; raise limits.routes in the node's configuration", n, limit)
		c.facts.Grouping = &Grouping{Groups: g.Groups}
		return
	}
	c.t.Sets = g.Sets
}

// addOwnNode adds rules that allow all flows between a workload and its node, even if the group does not. In a
// direction with rules of vrouter's own policies, these rules decide.
func (c *compiler) addOwnNode(f *Policy, n *network) {
	for _, a := range slices.Concat(n.host.IPs, c.self.Underlay) {
		rule := layout.Rule{Flags: layout.RuleAllow | layout.RuleAlways, LastPort: 65535}.With(netip.PrefixFrom(a, a.BitLen()))
		if f.AllowIn && len(f.Rules) < layout.MaxRules {
			f.Rules = append(f.Rules, rule)
		}
		if rule.Flags |= layout.RuleEgress; f.AllowOut && len(f.Rules) < layout.MaxRules {
			f.Rules = append(f.Rules, rule)
		}
	}
}

var nodesOwn = model.Policy{Name: "the node's own", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny}}}

func (c *compiler) add(f *Policy, policy *model.Policy) {
	for i, r := range policy.Rules {
		rule, err := ruleOf(r)
		if err != nil {
			c.errs = append(c.errs, fmt.Errorf("policy %q: rule %d: %w", policy.Name, i+1, err))
			continue
		}
		if rule.Flags&layout.RuleEgress != 0 {
			f.AllowOut = false
		} else {
			f.AllowIn = false
		}
		f.Rules = append(f.Rules, rule)
	}
}

func ruleOf(r model.Rule) (layout.Rule, error) {
	first, last, err := r.PortRange()
	if err != nil {
		return layout.Rule{}, err
	}
	protocol, err := r.ProtocolNumber()
	if err != nil {
		return layout.Rule{}, err
	}
	rule := layout.Rule{Protocol: protocol, FirstPort: first, LastPort: last, Flags: layout.If[uint8](r.Direction == model.Egress, layout.RuleEgress) |
		layout.If[uint8](r.Action == model.Allow, layout.RuleAllow) | layout.If[uint8](r.Log, layout.RuleLog)}
	return rule.With(r.Remote), nil
}

// Sets has the identities of addresses, and the flows that groups of policies allow. Package vrouter/k8s/netpol
// computes them.
type Sets struct {
	Identities map[RouteKey]layout.Identity // of addresses, by the longest prefix
	Allows     map[Allow]bool
}

// Entries returns the number of entries that the larger map needs.
func (s Sets) Entries() int { return max(len(s.Identities), len(s.Allows)) }

// Grouping says which policies restrict which ports of a node: each port's group, and the flows that each group
// allows.
type Grouping struct {
	Sets
	Revision uint32           // checksum of the sets
	Groups   map[string]Group // by port
}

// Allow is a key of Sets.Allows. It allows the workloads of a group flows with these properties.
type Allow struct {
	Group    uint32
	Identity uint32 // of the other end; 0: any address
	Egress   bool   // from the workload; else to it
	Protocol uint8  // 0: any protocol, also without ports
	PortBits uint8  // leading bits of Port that must be equal
	Port     uint16 // of the destination
}

// Group identifies a set of NetworkPolicies that select the same workload. The zero Group is the empty set.
type Group struct {
	Number  uint32
	In, Out bool // only flows in Sets.Allows may go to, or from, the workload
}

func (g Group) isClosed() bool { return g.In || g.Out }
