package report

import (
	"fmt"
	"slices"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Passage is a headed paragraph of plain text.
type Passage struct{ Title, Text string }

// Method says how this run was measured and what its figures mean.
func (r *Report) Method() (list []Passage) {
	rejected := "is repeated; its figures stand among the samples and count nowhere"
	if r.Run.Options.Lenient {
		rejected = "counts all the same and is flagged (--gates warn)"
	}
	perByte, oneNode := "", ""
	if r.has(sample.SenderCPUPerByte) || r.has(sample.ReceiverCPUPerByte) {
		perByte = " ns/byte is that CPU time for each byte of payload, which stays comparable when throughputs differ."
	}
	if r.any(func(s *Scenario) bool { return s.Placement == string(suite.Colocated) && s.Trials > 0 }) {
		oneNode = " Where both endpoints are on one node, the sender's figure is the whole node's."
	}
	compared := len(r.Comparisons) > 0
	for _, p := range []struct {
		applies     bool
		title, text string
	}{
		{true, "Order", fmt.Sprintf("Every scenario ran once in each block, in random order (seed %d), so that whatever drifts on the machine hits all of them alike.", r.Run.Seed)},
		{true, "Figures", "A figure is the median of its trials. The range in brackets holds the true median with 95 % confidence (order statistics, no assumption about the distribution); of fewer than 6 trials it is the lowest and the highest."},
		{compared, "Ratios", "A ratio is Hodges and Lehmann's estimate of the subject over the baseline within blocks: the median of the averages of all pairs of blocks, in logarithms. What a block does to both cancels, so it can differ a little from the ratio of the two medians. Its range is a 95 % interval: the ratios that the signed-rank test does not reject."},
		{compared, "Differences", "There is a difference where the ratio's interval leaves out 1, which is where the p-value of Wilcoxon's exact signed-rank test over the blocks is at most 0.05. Neither supposes a distribution of the figures. All comparisons of the report, those of the ladders' steps too, are corrected together (Westfall and Young's permutation test), so that the chance of even one false difference among them stays below 5 %. A difference that the correction does not confirm is suggested (?). Where none shows (~), the report says how small a one would have shown in 4 of 5 runs like this."},
		{len(r.Ladders) > 0, "Steps", "A step adds its median less the median of the step before. The ratio beside it, its interval and the verdict are those of the comparison of the two scenarios within blocks. Nothing is added where no difference shows, or where blocks drifted so much that medians and ratio disagree in direction."},
		{len(r.Hypotheses) > 0, "Hypotheses", "A hypothesis holds where the 95 % interval of its ratio lies within what it claims, is refuted where it lies outside, and is undecided where it does neither. Of several subjects it must hold for every one, and their intervals are wider in proportion."},
		{r.Validity.Attempts > 0, "Validity", "Every trial is checked for what the machine did meanwhile: foreign work on the nodes' CPUs, time stolen by the machine's host, a machine that stood still, and the like. A trial that fails such a check " + rejected + ". What the system under test did, such as a rate that is not steady, is an outcome: the trial counts and is flagged."},
		{r.has(sample.SenderCPU) || r.has(sample.ReceiverCPU), "CPU", "Each node owns its CPUs. CPU is the share of all of a node's CPUs that was busy in user, system, irq and softirq over one window, common to both sides and inside the traffic; steal is not in it, nor the work of the fabric itself, as far as it can be told apart." + perByte + oneNode},
		{r.has(sample.LatencyP50), "Latency", "Latency is the round trip of one transaction. A percentile, and the longest round trip (max), is the median over the trials of each trial's own, as every figure is."},
		{r.fabric(suite.Wire), "Fabric", "The fabric stands for two NICs and a wire: frames cross it in MTU size, cut by its ports in the NIC's place, and the receiving node merges them again by GRO on its own CPUs; a full queue stops the sender instead of dropping. It has no propagation delay and no real NIC's driver."},
		{r.fabric(suite.Veth), "Fabric", "The fabric is a plain veth pair: it hands large segments over whole, so that a receiver looks cheaper than behind a NIC."},
		{r.offload(suite.OffloadNone), "Offload none", "The NIC segments nothing: the sending node cuts segments in software."},
		{r.offload(suite.OffloadTCP), "Offload tcp", "The NIC segments plain TCP only: tunnelled traffic is cut in software on the sending node."},
		{r.offload(suite.OffloadTunnel), "Offload tunnel", "The NIC segments plain and tunnelled TCP."},
	} {
		if p.applies {
			list = append(list, Passage{p.title, p.text})
		}
	}
	return list
}

func (r *Report) any(so func(s *Scenario) bool) bool {
	return slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return so(&s) })
}

func (r *Report) has(m sample.Metric) bool {
	return r.any(func(s *Scenario) bool { return s.Interval(m) != nil })
}

func (r *Report) fabric(kind suite.FabricKind) bool {
	return r.any(func(s *Scenario) bool { return s.Fabric.Kind == kind })
}

func (r *Report) offload(o suite.Offload) bool {
	return r.any(func(s *Scenario) bool { return s.Fabric.Offload == o })
}
