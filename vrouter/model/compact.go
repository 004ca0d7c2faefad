package model

import "net/netip"

// CompactPort has the fields of a Port in less memory, because an agent can store 100,000 ports of other nodes. Do not change the
// fields of a CompactPort: several compact ports point to the same Place and PortDetails.
type CompactPort struct {
	Name string `json:"name"`
	*Place
	MAC     MAC          `json:"mac"`
	NATSlot uint16       `json:"nat_slot,omitempty"`
	IPs     []netip.Addr `json:"ips,omitempty"`
	*PortDetails
}

// Place names a network and a node. All compact ports of this network on this node point to one Place.
type Place struct {
	Network string `json:"network"`
	Node    string `json:"node"`
}

// PortDetails has the fields that are empty in most ports. All compact ports in which they are empty point to one
// PortDetails.
type PortDetails struct {
	Floating     []netip.Addr   `json:"floating,omitempty"`
	Attach       Attachment     `json:"attach"`
	Policies     []string       `json:"policies,omitempty"`
	AllowSources []netip.Prefix `json:"allow_sources,omitempty"`
	Router       bool           `json:"router,omitempty"`
	Bandwidth    Bandwidth      `json:"bandwidth,omitzero"`
	Origin       Origin         `json:"origin,omitempty"`
	Owner        string         `json:"owner,omitempty"`
	OfPod        *Pod           `json:"pod,omitempty"`
}

var noDetails PortDetails

// Compact converts p to a CompactPort. The result points to at, which must have the network and the node of p, and uses the
// slices of p without copying them.
func (p *Port) Compact(at *Place) CompactPort {
	c := CompactPort{p.Name, at, p.MAC, p.NATSlot, p.IPs, &noDetails}
	if !c.Port().Equal(*p) {
		c.PortDetails = &PortDetails{p.Floating, p.Attach, p.Policies, p.AllowSources, p.Router, p.Bandwidth, p.Origin, p.Owner, p.OfPod}
	}
	return c
}

// Port converts c to a Port. The result uses the slices of c without copying them.
func (c *CompactPort) Port() Port {
	return Port{
		Name: c.Name, Network: c.Network, Node: c.Node, MAC: c.MAC, NATSlot: c.NATSlot, IPs: c.IPs, Floating: c.Floating, Attach: c.Attach, Policies: c.Policies,
		AllowSources: c.AllowSources, Router: c.Router, Bandwidth: c.Bandwidth, Origin: c.Origin, Owner: c.Owner, OfPod: c.OfPod,
	}
}
