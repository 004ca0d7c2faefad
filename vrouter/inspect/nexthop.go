package inspect

import (
	"fmt"
	"strings"
)

// NexthopTable shows nexthops as `nh --list` does. The last column has the
// destination, for all types.
func NexthopTable(rows []Nexthop) Table {
	t := Table{
		Empty: "no nexthops",
		Columns: []Column{
			{Name: "Id", Right: true},
			{Name: "Type"},
			{Name: "Name", Least: 10, Leave: 2},
			{Name: "Ref_cnt", Right: true, Leave: 3},
			{Name: "Vrf", Right: true, Leave: 4},
			{Name: "Flags", Leave: 5},
			{Name: "MTU", Right: true, Leave: 1},
			{Name: "Oif | Sip → Dip | Sub NH(label)", Least: 20},
		},
	}
	for _, n := range rows {
		t.Add(number(n.ID), n.Type, orNone(n.Name), number(n.References), numberOrNone(n.VRF), list(n.Flags), nexthopMTU(n), destination(n))
	}
	return t
}

// nexthopMTU formats the configured MTU and the path MTU that routers reported.
func nexthopMTU(n Nexthop) string {
	if n.LearnedMTU != 0 {
		return numberOrNone(n.MTU) + fmt.Sprintf(" (learned %d)", n.LearnedMTU)
	}
	return numberOrNone(n.MTU)
}

// destination formats the destination of a nexthop as one line.
func destination(n Nexthop) string {
	switch {
	case len(n.Members) > 0:
		return members(n.Members)
	case len(n.Paths) > 0:
		words := make([]string, len(n.Paths))
		for i, p := range n.Paths {
			words[i] = p.String()
		}
		return string(n.Encapsulation) + " " + strings.Join(words, ", ")
	case n.Device != "":
		return fmt.Sprintf("%s %s", n.Device, mac(n.DMAC))
	}
	return none
}

func members(all []Member) string {
	words := make([]string, len(all))
	for i, m := range all {
		words[i] = number(m.Nexthop)
		if m.Label != 0 {
			words[i] += "(" + number(m.Label) + ")"
		}
	}
	return strings.Join(words, " ")
}

// String is "source → destination device", or "source → destination down".
func (p Path) String() string {
	s := p.Source.String() + " → " + p.Destination.String()
	if p.Device == "" {
		return s + " down"
	}
	if p.Gateway.IsValid() && p.Gateway != p.Destination {
		s += " via " + p.Gateway.String()
	}
	return s + " " + p.Device
}

// NexthopFields returns all fields of one nexthop, with a line per path and per
// member. It takes the names of the members from all.
func NexthopFields(n Nexthop, all []Nexthop) Fields {
	names := nexthopNames(all)
	fields := NexthopTable([]Nexthop{n}).Fields(0)
	if len(n.Paths) > 0 || len(n.Members) > 0 {
		fields = fields[:len(fields)-1]
	}
	if n.Encapsulation != "" {
		fields.Add("Encapsulation", string(n.Encapsulation))
	}
	if n.Vif != 0 {
		fields.Add("Vif", number(n.Vif))
	}
	if len(n.Paths) > 0 && !n.DMAC.IsZero() {
		fields.Add("Inner MAC", n.DMAC.String())
	}
	for i, p := range n.Paths {
		fields.Add(fmt.Sprintf("Path %d", i), p.String())
	}
	for i, m := range n.Members {
		value := fmt.Sprintf("nexthop %d %s", m.Nexthop, names[m.Nexthop])
		if m.Label != 0 {
			value += fmt.Sprintf(", label %d", m.Label)
		}
		fields.Add(fmt.Sprintf("Sub NH %d", i), value)
	}
	return fields
}

// nexthopNames maps nexthop ids to names. It always has id 0, which discards
// packets, as every empty entry of the nexthop table does.
func nexthopNames(all []Nexthop) map[uint32]string {
	names := map[uint32]string{0: "discard"}
	for _, n := range all {
		names[n.ID] = n.Name
		if n.Name == "" {
			names[n.ID] = n.Type
		}
	}
	return names
}
