package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/internal/screen"
	"windtunnel/vrouter/model"
)

// Text is the output of `vrouter trace`: the packet, each lookup, the verdict, and
// the paths by which the packet leaves this node.
func (t Trace) Text(o screen.Terminal) string {
	table := Table{Columns: []Column{
		{Name: "Step"},
		{Name: "Looked up", Least: 12},
		{Name: "Found", Least: 16},
	}, Empty: "no lookups"}
	for _, s := range t.Steps {
		table.Add(s.What, orNone(s.Key), orNone(s.Result))
	}
	colour := green
	if t.Dropped {
		colour = red
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", phrase.Printable(t.Packet), table.Render(o))
	b.WriteString(paint(phrase.Printable(t.Verdict), colour, o.Colour) + "\n")
	for _, line := range t.Leaves {
		b.WriteString(phrase.Printable(line) + "\n")
	}
	if t.Elsewhere != "" {
		b.WriteString(paint(phrase.Printable(t.Elsewhere), red, o.Colour) + "\n")
	}
	return b.String()
}

// WithLeaves fills in Leaves from the nexthops, one line per path of each tunnel.
// Dropped packets have none.
func (t Trace) WithLeaves(nexthops []Nexthop) Trace {
	t.Leaves = nil
	if t.Dropped {
		return t
	}
	for _, id := range t.lastNexthops() {
		at := slices.IndexFunc(nexthops, func(n Nexthop) bool { return n.ID == id })
		if at >= 0 {
			t.Leaves = append(t.Leaves, nexthops[at].leaves()...)
		}
	}
	return t
}

// lastNexthops returns the last nexthop of the packet, or the nexthops of all
// members if the packet was copied to each.
func (t Trace) lastNexthops() []uint32 {
	var copies []uint32
	for _, s := range slices.Backward(t.Steps) {
		switch s.What {
		case "nexthop":
			id, err := strconv.ParseUint(s.Key, 10, 32)
			if err != nil {
				return nil
			}
			return []uint32{uint32(id)}
		case "member":
			var id uint32
			if _, err := fmt.Sscanf(s.Result, "nexthop %d", &id); err == nil {
				copies = append(copies, id)
			}
		}
	}
	slices.Reverse(copies)
	return copies
}

// leaves formats the device and the outer addresses of each path of a tunnel.
func (n Nexthop) leaves() []string {
	var lines []string
	for i, p := range n.Paths {
		line := "leaves by "
		if len(n.Paths) > 1 {
			line = fmt.Sprintf("path %d of %d, chosen by the flow's hash: leaves by ", i+1, len(n.Paths))
		}
		if p.Device == "" {
			lines = append(lines, fmt.Sprintf("%sno device: the path %s → %s is down", line, p.Source, p.Destination))
			continue
		}
		kind := "outer addresses"
		if n.Encapsulation == model.Direct {
			kind = "labels as MAC addresses,"
		} else if n.Encapsulation == model.Translated {
			kind = "translated addresses, locators"
		}
		line += fmt.Sprintf("%s, %s %s → %s", p.Device, kind, p.Source, p.Destination)
		if p.Gateway.IsValid() && p.Gateway != p.Destination {
			line += ", next hop " + p.Gateway.String()
		}
		lines = append(lines, line+"; "+n.packetLimits())
	}
	return lines
}

// packetLimits formats the sizes of the largest packets that fit the tunnel.
func (n Nexthop) packetLimits() string {
	mtu := uint32(n.MTU)
	if n.LearnedMTU != 0 {
		return fmt.Sprintf("inner IP packets of up to %d bytes by configuration, outer packets of up to %d bytes as reported by underlay routers", mtu, n.LearnedMTU)
	}
	return fmt.Sprintf("inner IP packets of up to %d bytes fit", mtu)
}
