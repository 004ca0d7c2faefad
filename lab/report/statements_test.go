package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// sketched is a stream scenario of ten blocks, with its throughput and the CPU per byte
// of the sender (from) and of the receiver (to).
type sketched struct {
	id, system             string
	bits, sender, receiver [2]float64
}

// sketch returns the report of a run of the scenarios with the given
// comparisons.
func sketch(pairs [][2]string, rows ...sketched) (suite.Plan, []sample.Sample) {
	plan := suite.Plan{Systems: reporttest.Systems()}
	var samples []sample.Sample
	for _, r := range rows {
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{
			ID: r.id, System: r.system, Placement: suite.TwoNodes, Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream},
		})
		column := column(r.id, sample.Throughput, spread(r.bits[0], r.bits[1], 10)...)
		for i := range column {
			column[i].Metrics[sample.SenderCPUPerByte] = spread(r.sender[0], r.sender[1], 10)[i]
			column[i].Metrics[sample.ReceiverCPUPerByte] = spread(r.receiver[0], r.receiver[1], 10)[i]
		}
		samples = append(samples, column...)
	}
	for _, p := range pairs {
		plan.Comparisons = append(plan.Comparisons, suite.Comparison{Subject: p[0], Baseline: p[1]})
	}
	return plan, samples
}

// halved has half the throughput of the reference, and twice its CPU per byte.
func halved(id, system string) sketched {
	return sketched{id, system, [2]float64{5e9, 5e9}, [2]float64{0.8, 0.8}, [2]float64{0.6, 0.6}}
}

func reference(id, system string) sketched {
	return sketched{id, system, [2]float64{10e9, 10e9}, [2]float64{0.4, 0.4}, [2]float64{0.3, 0.3}}
}

const halfAndTwice = " [50.0, 50.0], costs the sender 100.0 % more CPU per byte [100.0, 100.0] and costs the receiver 100.0 % more CPU per byte [100.0, 100.0]."

func TestAFindingNamesSystemsOrScenariosAndTheWorkload(t *testing.T) {
	for name, c := range map[string]struct {
		pairs [][2]string
		rows  []sketched
		want  []string
	}{
		"within one system": {[][2]string{{"bridge/no-seg", "bridge/stream"}, {"bridge/threads", "bridge/stream"}},
			[]sketched{reference("bridge/stream", "bridge"), halved("bridge/no-seg", "bridge"), halved("bridge/threads", "bridge")},
			[]string{"bridge/no-seg carries 50.0 % less than bridge/stream", "bridge/threads carries 50.0 % less than bridge/stream"}},
		"another workload of another system": {[][2]string{{"vxlan/no-seg", "bridge/stream"}},
			[]sketched{reference("bridge/stream", "bridge"), halved("vxlan/no-seg", "vxlan")},
			[]string{"vxlan/no-seg carries 50.0 % less than bridge/stream"}},
		"several workloads": {[][2]string{{"vrouter/stream", "bridge/stream"}, {"vrouter/stream-4", "bridge/stream-4"}},
			[]sketched{reference("bridge/stream", "bridge"), reference("bridge/stream-4", "bridge"), halved("vrouter/stream", "vrouter-mpls-udp"), halved("vrouter/stream-4", "vrouter-mpls-udp")},
			[]string{"In stream, vrouter carries 50.0 % less than the bridge", "In stream-4, vrouter carries 50.0 % less than the bridge"}},
	} {
		for i := range c.want {
			c.want[i] += halfAndTwice
		}
		if diff := cmp.Diff(c.want, sentencesOf(sketch(c.pairs, c.rows...))); diff != "" {
			t.Errorf("the sentences of %s differ: %s", name, diff)
		}
	}
}
