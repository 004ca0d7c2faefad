package model

import "slices"

// Equal reports whether all fields of two ports are equal.
func (p Port) Equal(o Port) bool {
	return p.Name == o.Name && p.Network == o.Network && p.Node == o.Node && p.MAC == o.MAC && slices.Equal(p.IPs, o.IPs) &&
		p.Attach == o.Attach && slices.Equal(p.Policies, o.Policies) && slices.Equal(p.AllowSources, o.AllowSources) &&
		p.Bandwidth == o.Bandwidth && p.Router == o.Router && p.Origin == o.Origin && p.Owner == o.Owner
}
