package reporttest

import (
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// hops lists the devices between the endpoints of a cell, in the direction of
// the data, with counters that agree with the trial's packet rate.
func hops(c cell, ms sample.Metrics) []sample.Hop {
	packets := uint64(ms[sample.PacketsPerSecond] * window)
	bytes := packets * 66
	if b, ok := ms[sample.BytesInWindow]; ok {
		bytes = uint64(b * 1.046)
	}
	var list []sample.Hop
	add := func(node, endpoint, device, role string, in, out uint64) {
		h := sample.Hop{Node: node, Endpoint: endpoint, Device: device, Role: role, Order: len(list)}
		h.RxPackets, h.TxPackets = packets*in/100, packets*out/100
		h.RxBytes, h.TxBytes = bytes*in/100, bytes*out/100
		list = append(list, h)
	}
	switch {
	case c.placement == suite.Colocated:
		add("a", "a1", "eth0", "endpoint", 4, 96)
		add("a", "", "vif-a1", "vif", 96, 4)
		add("a", "", "br0", "bridge", 100, 100)
		add("a", "", "vif-a2", "vif", 4, 96)
		add("a", "a2", "eth0", "endpoint", 96, 4)
		return list
	case c.system == "raw":
		add("a", "", "fab", "fabric", 4, 96)
		add("wire", "", "port-a", "port", 96, 4)
		add("wire", "", "port-b", "port", 4, 96)
		add("b", "", "fab", "fabric", 96, 4)
		return list
	}
	add("a", "a1", "eth0", "endpoint", 4, 96)
	add("a", "", "vif-a1", "vif", 96, 4)
	add("a", "", "br0", "bridge", 100, 100)
	if c.system == "vxlan" {
		add("a", "", "vxlan0", "tunnel", 4, 96)
	}
	add("a", "", "fab", "fabric", 4, 96)
	add("wire", "", "port-a", "port", 96, 4)
	add("wire", "", "port-b", "port", 4, 96)
	add("b", "", "fab", "fabric", 96, 4)
	if c.system == "vxlan" {
		add("b", "", "vxlan0", "tunnel", 96, 4)
		list[len(list)-1].RxDropped = 2
	}
	add("b", "", "br0", "bridge", 100, 100)
	add("b", "", "vif-b1", "vif", 4, 96)
	add("b", "b1", "eth0", "endpoint", 96, 4)
	return list
}
