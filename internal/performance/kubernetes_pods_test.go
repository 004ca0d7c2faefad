package main

import (
	"testing"

	"windtunnel/internal/testcluster"
	"windtunnel/lab/sample"
)

// pods compares the networks of pods: each with the host network in its cluster, a service with a pod, and vrouter with
// the others. The clusters of the networks take turns.
func (b *kubernetesBench) pods(t *testing.T) {
	rounds, args := 6, []string{"--trials", "2", "--duration", "1s"}
	if testing.Short() {
		rounds, args = 1, []string{"--trials", "1", "--duration", "1s", "--gates", "warn"}
	}
	args = append(args, "--scenario", "host/stream,host/udp-64,host/rr,cni/stream,cni/udp-64,cni/rr,service/stream,service/udp-64,service/rr")
	all := map[string]networkFigures{}
	for round := range rounds {
		for _, n := range podNetworks {
			if all[n.name] == nil {
				all[n.name] = networkFigures{}
			}
			b.visit(t, round, n, func(k *testcluster.Cluster) { all[n.name].add(b.run(k, args...), round) })
		}
	}
	for _, n := range podNetworks {
		b.podsOf(t, n.name, all[n.name])
	}
	for _, w := range []struct {
		network                string
		throughput, cpuPerByte bound
	}{{"flannel", least(1.2), most(0.8)}, {"bridge", least(0.98), noTarget}} {
		subject, baseline := all["vrouter"], all[w.network]
		distances := subject.of("cni/stream", sample.CPUDistance).byRound(t).over(baseline.of("cni/stream", sample.CPUDistance).byRound(t))
		for _, q := range quantities {
			target := noTarget
			if q.workload == "stream" {
				target = w.throughput
				if len(q.metrics) == 2 {
					target = w.cpuPerByte
				}
			}
			what := "vrouter over " + w.network + ": " + q.what
			ours, theirs := q.of(subject, "cni"), q.of(baseline, "cni")
			b.ratio(t, what, ours.byRound(t).over(theirs.byRound(t)).alike(distances), target)
			b.ratio(t, what+", each relative to its host network", ours.over(q.of(subject, "host")).byRound(t).over(theirs.over(q.of(baseline, "host")).byRound(t)), noTarget)
		}
	}
}

// podsOf adds the rows of one network.
func (b *kubernetesBench) podsOf(t *testing.T, name string, f networkFigures) {
	services, target := "kube-proxy", noTarget
	if name == "vrouter" {
		services, target = "vrouter", least(0.97)
	}
	b.absolute(t, name+": CPU distance", f.of("cni/stream", sample.CPUDistance), "ns", 1)
	for _, q := range quantities {
		b.absolute(t, name+": "+q.what, q.of(f, "cni"), q.unit, q.scale)
		b.ratio(t, name+": "+q.what+", over the host network", q.of(f, "cni").over(q.of(f, "host")), noTarget)
		if len(q.metrics) == 1 {
			b.ratio(t, name+": "+q.what+", ClusterIP by "+services+" over pod", q.of(f, "service").over(q.of(f, "cni")), target)
		}
	}
}

// measured is a quantity of a workload.
type measured struct {
	workload, what string
	unit           string
	scale          float64
	metrics        []sample.Metric // whose sum it is
}

var quantities = []measured{
	{"stream", "throughput", "Gbit/s", 1e-9, []sample.Metric{sample.Throughput}},
	{"stream", "CPU per byte of both sides", "ns", 1, []sample.Metric{sample.SenderCPUPerByte, sample.ReceiverCPUPerByte}},
	{"rr", "request/response", "1/s", 1, []sample.Metric{sample.Transactions}},
	{"udp-64", "UDP 64 B", "Mbit/s", 1e-6, []sample.Metric{sample.Throughput}},
}

func (q measured) of(f networkFigures, system string) trialValues {
	return f.of(system+"/"+q.workload, q.metrics...)
}
