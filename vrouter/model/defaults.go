package model

import "slices"

// DefaultVXLANPort is IANA's port of VXLAN (RFC 7348).
const DefaultVXLANPort = 4789

// DefaultEncapsulations are all encapsulations, cheapest first. A node without configured
// encapsulations has this preference list.
var DefaultEncapsulations = []Encapsulation{Direct, VXLAN, MPLSoUDP, MPLSoGRE}

// WithDefaults returns the state with defaults filled in. It does not change s,
// but the result may share the list of ports with s. It is idempotent.
func (s State) WithDefaults() State {
	if s.Settings.VXLANPort == 0 {
		s.Settings.VXLANPort = DefaultVXLANPort
	}
	s.Settings.FlowExport = s.Settings.FlowExport.withDefaults()
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if len(s.Nodes[i].Encapsulations) == 0 {
			s.Nodes[i].Encapsulations = slices.Clone(DefaultEncapsulations)
		}
		if !s.Nodes[i].Locator.IsValid() {
			s.Nodes[i].Locator = s.Settings.locatorOf(s.Nodes[i])
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
	s.Ports = withDefaults(s.Ports)
	s.Gateways = slices.Clone(s.Gateways)
	for i := range s.Gateways {
		s.Gateways[i] = s.Gateways[i].withDefaults(s.Networks)
	}
	return s
}

// withDefaults fills in the defaults of ports. It copies the list only if a
// port needs a default, since a fleet has many ports.
func withDefaults(ports []Port) []Port {
	first := slices.IndexFunc(ports, func(p Port) bool { return p.Attach != p.Attach.withDefaults() })
	if first < 0 {
		return slices.Clip(ports)
	}
	ports = slices.Clone(ports)
	for i := first; i < len(ports); i++ {
		ports[i].Attach = ports[i].Attach.withDefaults()
	}
	return ports
}

// DefaultInterface is the name of a workload's device in its namespace.
const DefaultInterface = "eth0"

func (a Attachment) withDefaults() Attachment {
	if a.Netns != "" && a.Interface == "" {
		a.Interface = DefaultInterface
	}
	return a
}

// withDefaults fills in the router's MAC and the networks' VNIs of a VXLAN
// gateway. Gateways with another encapsulation use neither.
func (g Gateway) withDefaults(networks []Network) Gateway {
	if g.Encapsulation != VXLAN {
		return g
	}
	if g.MAC.IsZero() {
		g.MAC = RouterMAC
	}
	g.Networks = slices.Clone(g.Networks)
	for i := range g.Networks {
		if gn := &g.Networks[i]; gn.VNI == 0 {
			n, _ := find(networks, func(n Network) bool { return n.Name == gn.Network })
			gn.VNI = n.VNI
		}
	}
	return g
}
