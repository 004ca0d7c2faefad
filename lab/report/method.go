package report

import (
	"fmt"
	"slices"

	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Method explains how the run was measured and how to read its figures.
func Method(r *model.Report) (list []document.Term) {
	rejected := "is repeated; its figures are kept among the samples and do not count"
	if r.Run.Options.Lenient {
		rejected = "counts, with a flag (--gates warn)"
	}
	perByte, oneNode := "", ""
	if has(r, sample.SenderCPUPerByte) || has(r, sample.ReceiverCPUPerByte) {
		perByte = " ns/byte is that CPU time for each byte of payload, which stays comparable when throughputs differ."
	}
	if someScenario(r, func(s *model.Scenario) bool { return s.Placement == string(suite.Colocated) && s.Trials > 0 }) {
		oneNode = " Where both endpoints are on one node, the sender's figure is the whole node's."
	}
	if someScenario(r, func(s *model.Scenario) bool { return s.Placement == string(suite.Gateway) && s.Trials > 0 }) {
		oneNode += " Where the receiver is outside the virtual network, its figure is that of the gateway's node, with the receiver on it."
	}
	owned := "Each node owns its CPUs."
	switch r.Run.Environment.NodesShare {
	case sample.SharedMachine:
		owned = "The nodes are on one machine. Programs outside the workloads, such as kubelets, can run on the CPUs of another node, and count there."
	case sample.SharedCPUs:
		owned = "The nodes are on one machine and share CPUs: the CPU of one node includes work of the other."
	}
	type offload struct {
		existing bool // the network between hosts
		is       suite.Offload
	}
	kinds, offloads := map[suite.FabricKind]bool{}, map[offload]bool{}
	for i := range r.Scenarios {
		f := r.Scenarios[i].Fabric
		kinds[f.Kind], offloads[offload{f.Kind == suite.Existing, f.Offload}] = true, true
	}
	compared := len(r.Comparisons) > 0
	for _, p := range []struct {
		applies     bool
		title, text string
	}{
		{true, "Order", fmt.Sprintf("Every scenario ran once in each block, in random order (seed %d), so that a drift of the machine affects all of them equally.", r.Run.Seed)},
		{true, "Figures", "A figure is the median of its trials. The range in brackets holds the true median with 95 % confidence (order statistics, no assumption about the distribution). With fewer than 6 trials it is the lowest and the highest trial."},
		{compared, "Ratios", "A ratio is Hodges and Lehmann's estimate of the subject over the baseline within blocks: the median of the averages of all pairs of blocks, in logarithms. An effect of a block on both scenarios cancels. So the ratio can differ slightly from the ratio of the two medians. Its range is a 95 % interval: the ratios that the signed-rank test does not reject."},
		{compared, "Differences", "There is a difference if the ratio's interval excludes 1. Then the p-value of Wilcoxon's exact signed-rank test over the blocks is at most 0.05. Both assume no distribution of the figures. One correction covers all comparisons of the report and the ladders' steps (Westfall and Young's permutation test). It keeps the chance of even one false difference at 5 % or below. A difference that the correction does not confirm is suggested (?). If no difference shows (~), the report gives the smallest difference that would be detected in 4 of 5 such runs."},
		{len(r.Ladders) > 0, "Steps", "A step adds its median less the median of the step before. The ratio beside it, its interval and the verdict are those of the comparison of the two scenarios within blocks. The report states no addition if no difference shows, or if medians and ratio disagree in direction because blocks drifted."},
		{r.Validity.Attempts > 0, "Validity", "Every trial has checks of the machine's state: foreign work on the nodes' CPUs, time stolen by the machine's host, a machine that stood still, and others. A trial that fails such a check " + rejected + ". An effect of the system under test, such as an unsteady rate, is an outcome: the trial counts and has a flag."},
		{has(r, sample.SenderCPU) || has(r, sample.ReceiverCPU), "CPU", owned + " CPU is the share of all of a node's CPUs that was busy in user, system, irq and softirq over one window. Both sides have the same window, and traffic flows during all of it. CPU includes neither steal nor the measurable work of the fabric." + perByte + oneNode},
		{has(r, sample.LatencyP50), "Latency", "Latency is the round trip of one transaction. Each trial has its own percentiles and its longest round trip (max). The figure shown is the median over the trials."},
		{kinds[suite.Wire], "Fabric", "The fabric emulates two NICs and a wire. Its ports cut segments to the MTU, as a NIC does. The receiving node merges frames by GRO on its own CPUs. A full queue stops the sender instead of dropping frames. The fabric has no propagation delay and no real NIC's driver."},
		{kinds[suite.Veth], "Fabric", "The fabric is a plain veth pair. It delivers large segments whole, so a receiver appears cheaper than behind a NIC."},
		{kinds[suite.Existing], "Fabric", "The fabric is the network that joins the hosts, with their NICs and drivers. Coalescing, queues and GRO are those of the hosts."},
		{offloads[offload{true, suite.OffloadKept}], "Offload", "NICs segment what they segmented before the run. The environment lists their offloads."},
		{offloads[offload{true, suite.OffloadNone}] || offloads[offload{false, suite.OffloadNone}], "Offload none", "The NIC segments nothing: the sending node cuts segments in software."},
		{offloads[offload{true, suite.OffloadTCP}], "Offload tcp", "The NICs segment plain TCP: a system's tunnelled traffic is cut in software on the sending node."},
		{offloads[offload{false, suite.OffloadTCP}], "Offload tcp", "The NIC segments plain TCP only: tunnelled traffic is cut in software on the sending node."},
		{offloads[offload{true, suite.OffloadTunnel}] || offloads[offload{false, suite.OffloadTunnel}], "Offload tunnel", "The NIC segments plain and tunnelled TCP."},
	} {
		if p.applies {
			list = append(list, document.Term{Name: p.title, Text: p.text})
		}
	}
	return list
}

func someScenario(r *model.Report, has func(s *model.Scenario) bool) bool {
	return slices.ContainsFunc(r.Scenarios, func(s model.Scenario) bool { return has(&s) })
}

func has(r *model.Report, m sample.Metric) bool {
	return someScenario(r, func(s *model.Scenario) bool { return s.Interval(m) != nil })
}
