package model

import "slices"

// DefaultVXLANPort is IANA's (RFC 7348).
const DefaultVXLANPort = 4789

// DefaultEncapsulations are what a node offers that says nothing, preferred
// first.
var DefaultEncapsulations = []Encapsulation{MPLSoUDP, MPLSoGRE, VXLAN}

// WithDefaults returns the state with what was left out filled in. The state
// itself is not changed.
func (s State) WithDefaults() State {
	if s.Settings.VXLANPort == 0 {
		s.Settings.VXLANPort = DefaultVXLANPort
	}
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if len(s.Nodes[i].Encapsulations) == 0 {
			s.Nodes[i].Encapsulations = DefaultEncapsulations
		}
	}
	s.Networks = slices.Clone(s.Networks)
	for i := range s.Networks {
		n := &s.Networks[i]
		if n.VNI == 0 {
			n.VNI = n.ID
		}
		if n.Forwarding == "" {
			n.Forwarding = L3
		}
	}
	s.Ports = slices.Clone(s.Ports)
	for i := range s.Ports {
		s.Ports[i].Attach = s.Ports[i].Attach.withDefaults()
	}
	return s
}

// DefaultInterface is the name of a workload's device in its namespace.
const DefaultInterface = "eth0"

func (a Attachment) withDefaults() Attachment {
	if a.Netns != "" && a.Interface == "" {
		a.Interface = DefaultInterface
	}
	return a
}

// Node finds a node by name.
func (s State) Node(name string) (Node, bool) {
	return find(s.Nodes, func(n Node) bool { return n.Name == name })
}

// Network finds a network by name.
func (s State) Network(name string) (Network, bool) {
	return find(s.Networks, func(n Network) bool { return n.Name == name })
}

// Port finds a port by name.
func (s State) Port(name string) (Port, bool) {
	return find(s.Ports, func(p Port) bool { return p.Name == name })
}

func find[E any](all []E, is func(E) bool) (e E, ok bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return e, false
}
