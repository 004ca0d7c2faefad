package drawings

import (
	"cmp"
	"fmt"
	"slices"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
)

// wire is the node of the fabric's devices in a sample's hops.
const wire = "wire"

// path is the path of a trial's packets through the devices, in three parts.
type path struct {
	Nodes     []string // one node, or the sender's and the receiver's
	Near, Far []stop   // the sender's devices and the receiver's, in the order of the path
	Between   []stop   // the wire's ports, or the devices that both endpoints of one node share
}

// stop is a place on the path of the packets: a device, the devices of all containers
// that have the same role, or a workload.
type stop struct {
	Name string // name of the device, with its container if it is in one
	Role string
	Of   int // number of merged devices; 0 for a workload
	hops sample.Hop
}

// Drops is the number of packets that the device and its queueing discipline dropped.
func (s stop) Drops() uint64 { return dropsOf(s.hops) }

// Dropped prints Drops; "" if there are none.
func (s stop) Dropped() string {
	if s.Drops() == 0 {
		return ""
	}
	return amount(s.Drops(), "dropped")
}

func dropsOf(h sample.Hop) uint64 { return h.RxDropped + h.TxDropped + h.QdiscDrop }

// Lines returns the counters of received and sent traffic; none for a workload.
func (s stop) Lines() []string {
	if s.Of == 0 {
		return nil
	}
	return []string{counter("rx", s.hops.RxPackets, s.hops.RxBytes), counter("tx", s.hops.TxPackets, s.hops.TxBytes)}
}

// Class returns the CSS classes of the stop. An unknown role gets no class.
func (s stop) Class() string {
	switch {
	case s.Of == 0:
		return "pill"
	case s.Drops() > 0:
		return "device dropping"
	case slices.Contains([]string{"endpoint", "bridge", "tunnel"}, s.Role):
		return "device " + s.Role
	}
	return "device"
}

func counter(what string, packets, bytes uint64) string {
	return fmt.Sprintf("%s %s · %s", what, amount(packets, "pkts"), amount(bytes, "B"))
}

// pathOf returns the path of a trial's packets. The first hop is on the sender's node. ok
// is false if the trial has no hops.
func pathOf(s *sample.Sample) (p path, ok bool) {
	if s == nil || len(s.Hops) == 0 {
		return path{}, false
	}
	hops := slices.Clone(s.Hops)
	slices.SortStableFunc(hops, func(a, b sample.Hop) int { return cmp.Compare(a.Order, b.Order) })
	var near, between, far []sample.Hop
	for _, h := range hops {
		switch {
		case h.Node == wire:
			between = append(between, h)
		case len(p.Nodes) == 0 || h.Node == p.Nodes[0]:
			if len(p.Nodes) == 0 {
				p.Nodes = []string{h.Node}
			}
			near = append(near, h)
		default:
			if len(p.Nodes) == 1 {
				p.Nodes = append(p.Nodes, h.Node)
			}
			far = append(far, h)
		}
	}
	if len(p.Nodes) == 1 {
		near, between, far = colocated(near)
	}
	p.Near, p.Between, p.Far = mergeDevices(near), mergeDevices(between), mergeDevices(far)
	return p, true
}

// colocated divides the devices of one node into the sender's, the devices that both
// endpoints share (such as a bridge), and the receiver's.
func colocated(hops []sample.Hop) (near, between, far []sample.Hop) {
	shared := func(h sample.Hop) bool { return h.Role != "endpoint" && h.Role != "vif" }
	first := slices.IndexFunc(hops, shared)
	if first < 0 {
		half := (len(hops) + 1) / 2
		return hops[:half], nil, hops[half:]
	}
	end := first
	for end < len(hops) && shared(hops[end]) {
		end++
	}
	return hops[:first], hops[first:end], hops[end:]
}

// mergeDevices returns the stops of a part of the path. It merges all endpoints into one
// stop, and all vifs, because separate stops for many containers do not fit into the
// picture.
func mergeDevices(hops []sample.Hop) []stop {
	count := make(map[string]int)
	for _, h := range hops {
		count[h.Role]++
	}
	var list []stop
	at := make(map[string]int)
	for _, h := range hops {
		many := count[h.Role] > 1 && (h.Role == "endpoint" || h.Role == "vif")
		if i, ok := at[h.Role]; many && ok {
			list[i].add(h)
			continue
		}
		s := stop{Name: h.Device, Role: h.Role, Of: 1, hops: h}
		switch {
		case many && h.Role == "endpoint":
			s.Name = fmt.Sprintf("%s in %d containers", h.Device, count[h.Role])
		case many:
			s.Name = fmt.Sprintf("%d vifs", count[h.Role])
		case h.Role == "endpoint" && h.Endpoint != "":
			s.Name = h.Endpoint + " · " + h.Device
		}
		at[h.Role] = len(list)
		list = append(list, s)
	}
	return list
}

func (s *stop) add(h sample.Hop) {
	s.Of++
	s.hops.RxPackets += h.RxPackets
	s.hops.RxBytes += h.RxBytes
	s.hops.TxPackets += h.TxPackets
	s.hops.TxBytes += h.TxBytes
	s.hops.RxDropped += h.RxDropped
	s.hops.TxDropped += h.TxDropped
	s.hops.QdiscDrop += h.QdiscDrop
}

// amount prints a count with an SI prefix: "1.23 M pkts", "13.4 GB".
func amount(n uint64, unit string) string {
	v, prefix := float64(n), ""
	for _, p := range []string{"k", "M", "G", "T", "P", "E"} {
		if v < 999.5 {
			break
		}
		v, prefix = v/1000, p
	}
	figure := quantity.Scale{By: 1}.Print(v)
	if n < 1000 {
		figure = fmt.Sprint(n)
	}
	if unit == "B" {
		return figure + " " + prefix + unit
	}
	if prefix != "" {
		prefix += " "
	}
	return figure + " " + prefix + unit
}
