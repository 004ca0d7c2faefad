package experiment

import (
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// setDSCPShare sets the share of the bytes on the fabric that have the workload's DSCP.
func (m *meters) setDSCPShare() {
	if m.start.marks == nil || m.colocated() {
		return
	}
	sender, receiver := m.sent(0), m.sent(1)
	if share, ok := dscpShare(m.traffic.bench.scenario.Workload, sender, receiver); ok {
		m.traffic.sample.Metrics.Set(sample.DSCPShare, share)
	}
}

// sent returns what a node sent in the window.
func (m *meters) sent(node int) testbed.Marks {
	sent, name := testbed.Marks{}, m.nodes[node].Name()
	for dscp, bytes := range m.end.marks[name] {
		sent[dscp] = bytes - m.start.marks[name][dscp]
	}
	return sent
}

// dscpShare returns the share of the bytes with the workload's DSCP. Of a stream one way only the
// node that sends the data counts. ok is false if no bytes were sent.
func dscpShare(w suite.Workload, sender, receiver testbed.Marks) (share float64, ok bool) {
	counted := []testbed.Marks{sender, receiver}
	switch {
	case !w.Kind.Stream() || w.Direction == suite.Both:
	case w.Direction == suite.Reverse:
		counted = counted[1:]
	default:
		counted = counted[:1]
	}
	marked, all := uint64(0), uint64(0)
	for _, node := range counted {
		marked += node[w.DSCP]
		for _, bytes := range node {
			all += bytes
		}
	}
	return float64(marked) / float64(all), all > 0
}
