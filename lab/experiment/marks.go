package experiment

import (
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// setDSCPShare sets the share of the bytes on the fabric that have the workload's DSCP. Only
// nodes that send data count.
func (m *meters) setDSCPShare() {
	w := m.traffic.bench.scenario.Workload
	if w.DSCP == 0 || m.start.marks == nil || m.colocated() {
		return
	}
	marked, all := uint64(0), uint64(0)
	for i, n := range m.nodes {
		if !w.Kind.Exchange() && (w.Direction == suite.Forward && i > 0 || w.Direction == suite.Reverse && i == 0) {
			continue
		}
		at := slices.IndexFunc(m.traffic.bench.Testbed.Nodes(), func(o testbed.Node) bool { return o.Name() == n.Name() })
		for dscp, bytes := range m.end.marks[at] {
			bytes -= m.start.marks[at][dscp]
			all += bytes
			if dscp == w.DSCP {
				marked += bytes
			}
		}
	}
	if all > 0 {
		m.traffic.sample.Metrics.Set(sample.DSCPShare, float64(marked)/float64(all))
	}
}
