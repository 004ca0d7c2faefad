package report

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Passage is a headed paragraph of plain text.
type Passage struct{ Title, Text string }

// Method says how this run was measured and what its figures mean.
func (r *Report) Method() []Passage {
	list := []Passage{
		{"Order", fmt.Sprintf("Every scenario ran once in each block, in random order (seed %d), so that whatever drifts on the machine hits all of them alike.", r.Run.Seed)},
		{"Figures", "A figure is the median of its trials. The range in brackets holds the true median with 95 % confidence (order statistics, no assumption about the distribution); of fewer than 6 trials it is the lowest and the highest."},
	}
	if len(r.Comparisons) > 0 {
		list = append(list, Passage{"Ratios", "A ratio is Hodges and Lehmann's estimate of the subject over the baseline within blocks: the median of the averages of all pairs of blocks, in logarithms. What a block does to both cancels, so it can differ a little from the ratio of the two medians. Its range is a 95 % interval: the ratios that the signed-rank test does not reject."}, r.differences())
	}
	if len(r.Ladders) > 0 {
		list = append(list, Passage{"Steps", "A step adds its median less the median of the step before. The ratio beside it, its interval and the verdict are those of the comparison of the two scenarios within blocks. Nothing is added where no difference shows, or where blocks drifted so much that medians and ratio disagree in direction."})
	}
	if len(r.Hypotheses) > 0 {
		list = append(list, Passage{"Hypotheses", "A hypothesis holds where the 95 % interval of its ratio lies within what it claims, is refuted where it lies outside, and is undecided where it does neither. Of several subjects it must hold for every one, and their intervals are wider in proportion."})
	}
	if r.Validity.Attempts > 0 {
		failed := "is repeated; its figures stand among the samples and count nowhere"
		if r.Run.Options.Lenient {
			failed = "counts all the same and is flagged (--gates warn)"
		}
		list = append(list, Passage{"Validity", "Every trial is checked for what the machine did meanwhile: foreign work on the nodes' CPUs, time stolen by the machine's host, a machine that stood still, and the like. A trial that fails such a check " + failed + ". What the system under test did, such as a rate that is not steady, is an outcome: the trial counts and is flagged."})
	}
	if r.has(sample.SenderCPU) || r.has(sample.ReceiverCPU) {
		text := "Each node owns its CPUs. CPU is the share of all of a node's CPUs that was busy in user, system, irq and softirq over one window, common to both sides and inside the traffic; steal is not in it, nor the work of the fabric itself, as far as it can be told apart."
		if r.has(sample.SenderCPUPerByte) || r.has(sample.ReceiverCPUPerByte) {
			text += " ns/byte is that CPU time for each byte of payload, which stays comparable when throughputs differ."
		}
		if r.colocated() {
			text += " Where both endpoints are on one node, the sender's figure is the whole node's."
		}
		list = append(list, Passage{"CPU", text})
	}
	if r.has(sample.LatencyP50) {
		list = append(list, Passage{"Latency", "Latency is the round trip of one transaction. A percentile, and the longest round trip (max), is the median over the trials of each trial's own, as every figure is."})
	}
	return append(list, r.fabrics()...)
}

// differences says how a difference is told from chance.
func (r *Report) differences() Passage {
	text := "There is a difference where the ratio's interval leaves out 1, which is where the p-value of Wilcoxon's exact signed-rank test over the blocks is at most 0.05. Neither supposes a distribution of the figures."
	text += " All comparisons of the report, those of the ladders' steps too, are corrected together (Westfall and Young's permutation test), so that the chance of even one false difference among them stays below 5 %. A difference that the correction does not confirm is suggested (?). Where none shows (~), the report says how small a one would have shown in 4 of 5 runs like this."
	return Passage{"Differences", text}
}

// fabrics describes each kind of fabric that a scenario had.
func (r *Report) fabrics() []Passage {
	var list []Passage
	seen := make(map[string]bool)
	add := func(title, text string) {
		if !seen[text] && text != "" {
			seen[text] = true
			list = append(list, Passage{title, text})
		}
	}
	for i := range r.Scenarios {
		switch r.Scenarios[i].Fabric.Kind {
		case suite.Wire:
			add("Fabric", "The fabric stands for two NICs and a wire: frames cross it in MTU size, cut by its ports in the NIC's place, and the receiving node merges them again by GRO on its own CPUs; a full queue stops the sender instead of dropping. It has no propagation delay and no real NIC's driver.")
		case suite.Veth:
			add("Fabric", "The fabric is a plain veth pair: it hands large segments over whole, so that a receiver looks cheaper than behind a NIC.")
		}
	}
	for i := range r.Scenarios {
		switch r.Scenarios[i].Fabric.Offload {
		case suite.OffloadNone:
			add("Offload none", "The NIC segments nothing: the sending node cuts segments in software.")
		case suite.OffloadTCP:
			add("Offload tcp", "The NIC segments plain TCP only: tunnelled traffic is cut in software on the sending node.")
		case suite.OffloadTunnel:
			add("Offload tunnel", "The NIC segments plain and tunnelled TCP.")
		}
	}
	return list
}

func (r *Report) has(m sample.Metric) bool {
	return slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return s.Interval(m) != nil })
}

func (r *Report) colocated() bool {
	return slices.ContainsFunc(r.Scenarios, func(s Scenario) bool {
		return s.Placement == string(suite.Colocated) && s.Trials > 0
	})
}

// Repeat gives the lines that repeat the run, and those that one trial of a
// scenario was made of.
type Repeat struct {
	Run      []string // shell lines, of the whole run
	Scenario string   // of which trial Steps are
	Steps    []Step
}

// Step is one process of a trial.
type Step struct {
	Role, On string // "server", the endpoint
	Line     string // quoted for a shell
}

// Repeat tells how to make the run again, with the commands of the first trial
// that has any.
func (r *Report) Repeat() Repeat {
	again := Repeat{Run: []string{fmt.Sprintf("%s --seed %d", r.Run.Command(), r.Run.Seed)}}
	for i := range r.Scenarios {
		for j := range r.Scenarios[i].Samples {
			s := &r.Scenarios[i].Samples[j]
			if !s.OK() || len(s.Commands) == 0 {
				continue
			}
			again.Scenario = r.Scenarios[i].ID
			for _, c := range s.Commands {
				again.Steps = append(again.Steps, Step{c.Role, c.On, Shell(c.Argv)})
			}
			return again
		}
	}
	return again
}

// Command is what made the run, without the seed of its order. Runs of earlier
// versions have recorded no arguments but the suite's.
func (i *RunInfo) Command() string {
	text := "windtunnel " + i.Options.Command
	if i.Options.Command == "" {
		if text += "run " + Shell([]string{i.Suite}); i.Short {
			text += " --short"
		}
	}
	if i.Options.Lenient {
		text += " --gates warn"
	}
	return text
}

// Shell joins argv so that a POSIX shell splits it into the same words.
func Shell(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		plain := a != "" && strings.IndexFunc(a, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=+@%", r))
		}) < 0
		if words[i] = a; !plain {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
