package system

import (
	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// Changes implements Changer. With each change the node gets another desired state. The states of all
// nodes change, as if they had a common store.
func (v VRouter) Changes() map[suite.Change]Change {
	all := map[suite.Change]Change{
		suite.ChangePorts:  v.change(v.addPorts),
		suite.ChangeNodes:  v.change(v.addNode),
		suite.ChangeRoutes: v.change(v.addRoute),
	}
	if v.Rules > 0 { // without rules all traffic may pass, so the first rules would affect the measured traffic
		all[suite.ChangePolicies] = v.change(v.addRules)
	}
	return all
}

// change returns a change of the desired state. alter makes the changed state from the plain one.
func (v VRouter) change(alter func(n *Node, s *vrouterState)) Change {
	apply := func(n *Node, alter func(n *Node, s *vrouterState)) error {
		path, err := program.Beside(vrouterProgram)
		if err != nil {
			return err
		}
		s := v.state(n)
		alter(n, &s)
		return vrouterApply(path, n, s)
	}
	return Change{
		Make: func(n *Node) error { return apply(n, alter) },
		Undo: func(n *Node) error { return apply(n, func(*Node, *vrouterState) {}) },
	}
}

func (v VRouter) addPorts(n *Node, s *vrouterState) {
	for _, p := range n.Spares {
		s.Ports = append(s.Ports, v.port(n, p))
	}
}

// addNode adds a node and its port.
func (v VRouter) addNode(n *Node, s *vrouterState) {
	i := len(s.Nodes)
	s.Nodes = append(s.Nodes, v.node(n, i, spareUnderlay(n)))
	s.Ports = append(s.Ports, v.port(n, NodeEndpoint{i, "c1", spareV4, spareV6, spareMAC}))
}

// addRoute routes addresses without traffic to the first port.
func (VRouter) addRoute(_ *Node, s *vrouterState) {
	s.Routes = append(s.Routes, vrouterRoute{"lab", spareDestination, []map[string]string{{"port": s.Ports[0].Name}}})
}

// addRules adds rules to the policy of all ports.
func (v VRouter) addRules(_ *Node, s *vrouterState) {
	v.Rules += spareRules
	s.Policies = v.policies()
}
