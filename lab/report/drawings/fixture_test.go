package drawings

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func at[T any](v T) *T { return &v }

// rigorous is the sample run with all that a sceptical reader asks for: verdicts,
// a ladder, hypotheses, a trial that failed a gate, a precision that was not
// reached, and profiles of two systems.
func rigorous(t testing.TB) *model.Report {
	t.Helper()
	r := reporttest.Quick()
	judge(r)
	r.Ladders = []model.Ladder{streamLadder(r)}
	r.Hypotheses = claims()
	mar(r)
	r.Precision = &model.Precision{Wanted: 0.02, Blocks: 12, Why: "The precision of ±2 % was not reached in 12 blocks: the plan allows no more.",
		Widest: []model.Imprecise{{Subject: "vxlan/stream", Baseline: "raw/stream", Metric: sample.ReceiverCPU, HalfWidth: 0.034}}}
	r.Profiles = []model.Profile{
		profileOf(t, "raw/stream", "sender", 1, 0.80), profileOf(t, "raw/stream", "receiver", 1, 0.55),
		profileOf(t, "vxlan/stream", "sender", 1.15, 0.92), profileOf(t, "vxlan/stream", "receiver", 1.4, 0.9),
	}
	return r
}

// judge gives the comparisons one verdict of each kind.
func judge(r *model.Report) {
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		c.Verdict, c.Distinct = model.Differs, true
		c.P, c.Adjusted, c.Detectable = at(0.0005), at(0.0125), at(0.031)
		switch c.Subject + " " + string(c.Metric) {
		case "bridge/stream " + string(sample.SenderCPUPerByte):
			c.Verdict, c.Distinct = model.Suggested, false
		case "bridge/rr " + string(sample.LatencyP50):
			c.Verdict, c.Distinct = model.Alike, false
		case "vxlan/rr " + string(sample.LatencyP50):
			c.Verdict, c.Distinct, c.P, c.Adjusted = model.TooFew, false, nil, nil
		}
	}
}

func interval(median, half float64) *quantity.Interval {
	return &quantity.Interval{Median: median, Low: median - half, High: median + half, N: 6, Level: 0.97}
}

// streamLadder climbs from raw over bridge to VXLAN; the bridge's CPU is not
// significant, and macvlan, at the end, was skipped.
func streamLadder(r *model.Report) model.Ladder {
	cost := func(m sample.Metric, figure, added, half float64, v model.Verdict) model.Cost {
		c := model.Cost{Metric: m, Figure: interval(figure, figure/100)}
		if v != "" {
			c.Added, c.Ratio = interval(added, half), interval(figure/(figure-added), half/figure)
			c.P, c.Adjusted, c.Verdict = at(0.001), at(0.004), v
			c.Share = at(added / figure)
		}
		return c
	}
	return model.Ladder{Title: "what a stream pays", Steps: []model.Rung{
		{Scenario: "raw/stream", Name: "the host's own stack", Costs: []model.Cost{
			cost(sample.Throughput, 11e9, 0, 0, ""), cost(sample.SenderCPUPerByte, 0.60, 0, 0, ""), cost(sample.ReceiverCPUPerByte, 0.41, 0, 0, "")}},
		{Scenario: "bridge/stream", Name: "the bridge", From: "raw/stream", Costs: []model.Cost{
			cost(sample.Throughput, 10.6e9, -0.4e9, 0.1e9, model.Differs), cost(sample.SenderCPUPerByte, 0.61, 0.01, 0.02, model.Alike), cost(sample.ReceiverCPUPerByte, 0.44, 0.03, 0.02, model.Suggested)}},
		{Scenario: "vxlan/stream", Name: "encapsulation in VXLAN", From: "bridge/stream", Costs: []model.Cost{
			cost(sample.Throughput, 8.6e9, -2e9, 0.2e9, model.Differs), cost(sample.SenderCPUPerByte, 0.75, 0.14, 0.02, model.Differs), cost(sample.ReceiverCPUPerByte, 0.52, 0.08, 0.01, model.Differs)}},
		{Scenario: "macvlan/stream", Name: "macvlan", From: "vxlan/stream"},
	}}
}

func claims() []model.Hypothesis {
	claim := func(text, asked string, j model.Judgement, observed ...model.Observed) model.Hypothesis {
		return model.Hypothesis{Hypothesis: suite.Hypothesis{Claim: text, Metric: string(sample.Throughput), Baseline: "raw/stream", Printed: asked},
			Judgement: j, Observed: observed, Why: "the figures of “" + text + "” in a sentence"}
	}
	return []model.Hypothesis{
		claim("VXLAN leaves at least 70 % of the throughput", "≥ 0.7", model.Holds, model.Observed{Subject: "vxlan/stream", Figure: interval(0.784, 0.004), Judgement: model.Holds}),
		claim("VXLAN takes less than a tenth", "≥ 0.9", model.Refuted, model.Observed{Subject: "vxlan/stream", Figure: interval(0.784, 0.004), Judgement: model.Refuted}),
		claim("bridges take nothing, wherever the containers are", "1 ± 5 %", model.Undecided,
			model.Observed{Subject: "bridge/stream", Figure: interval(0.96, 0.02), Judgement: model.Undecided},
			model.Observed{Subject: "macvlan/stream", Judgement: model.Undecided}),
	}
}

const gateMessage = "processes outside the experiment used 31 % of node b's CPUs, more than the 3 % that pass"

// mar marks two trials of vxlan/stream: block 2 was repeated, block 5 is lost.
func mar(r *model.Report) {
	row := scenario(r, "vxlan/stream")
	gate := sample.Gate{Name: sample.ForeignCPU, Value: 31, Limit: 3, Unit: "%", Message: gateMessage}
	for i := range row.Samples {
		if s := &row.Samples[i]; s.Block == 4 {
			s.Gates = []sample.Gate{gate}
		}
	}
	for _, s := range row.Samples {
		switch s.Block {
		case 1:
			s.Gates, s.Attempt = []sample.Gate{gate}, -1
			s.Metrics = sample.Metrics{sample.Throughput: s.Metrics[sample.Throughput] * 0.8, sample.SenderCPU: 99}
		case 0:
			s.Profiled = true // in addition to the trial that counts
		default:
			continue
		}
		row.Samples = append(row.Samples, s)
	}
	for i := range row.Samples {
		if row.Samples[i].Block == 1 {
			row.Samples[i].Attempt++
		}
	}
	row.Trials, row.Failed = 5, 1
	row.Flags = []model.GateCount{{Name: sample.Unsteady, Trials: 2, Worst: sample.Gate{Value: 14, Limit: 10, Unit: "%"}}}
	r.Validity = model.Validity{Attempts: 53, Valid: 48, Failed: 3, Gated: 2, Profiled: 1, Missing: map[string]int{"vxlan/stream": 1},
		Gates: []model.GateCount{{Name: sample.ForeignCPU, Trials: 2, Worst: gate}}}
}

func scenario(r *model.Report, id string) *model.Scenario {
	for i := range r.Scenarios {
		if r.Scenarios[i].ID == id {
			return &r.Scenarios[i]
		}
	}
	panic("the sample run has no " + id)
}

// stacks returns the stacks of a typical profile of one side, in thousandths of a core.
func stacks(heavier float64) []folded.Stack {
	s := func(category string, milli uint64, comm string, frames ...string) folded.Stack {
		return folded.Stack{Category: category, Comm: comm, Frames: frames, Count: milli * 3, Nanos: milli * 3_000_000}
	}
	k := func(names ...string) []string {
		for i := range names {
			names[i] += folded.KernelSuffix
		}
		return names
	}
	write := k("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_write", "sock_write_iter", "tcp_sendmsg")
	under := func(more ...string) []string {
		return append(append([]string{"main", "write"}, write...), k(more...)...)
	}
	list := []folded.Stack{
		s("generator", 20, "traffic", "main", "fill"),
		s("syscall and copy", 300, "traffic", under("tcp_sendmsg_locked", "copy_from_iter", "rep_movs_alternative")...),
		s("syscall and copy", 40, "traffic", under("tcp_sendmsg_locked", "sk_page_frag_refill")...),
		s("TCP/IP", 90, "traffic", under("tcp_sendmsg_locked", "tcp_push", "__tcp_push_pending_frames", "tcp_write_xmit", "__tcp_transmit_skb")...),
		s("TCP/IP", 60, "traffic", under("tcp_sendmsg_locked", "tcp_push", "__tcp_push_pending_frames", "tcp_write_xmit", "__tcp_transmit_skb", "__ip_queue_xmit")...),
		s("qdisc", 25, "traffic", under("tcp_sendmsg_locked", "tcp_push", "tcp_write_xmit", "__ip_queue_xmit", "__dev_queue_xmit", "pfifo_enqueue")...),
		s("softirq and IPI", 70, "napi/fab-7", k("ret_from_fork", "kthread", "napi_threaded_poll", "__napi_poll", "net_rx_action")...),
		s("GRO", 55, "napi/fab-7", k("ret_from_fork", "kthread", "napi_threaded_poll", "__napi_poll", "napi_gro_receive", "dev_gro_receive", "tcp4_gro_receive")...),
		s(folded.Wire, 180, "swapper", k("net_rx_action", "veth_poll")...),
		s(folded.Idle, 200, "swapper", k("cpu_startup_entry", "do_idle")...),
	}
	if heavier > 1 {
		list = append(list,
			s("VXLAN", uint64(100*heavier), "traffic", under("tcp_sendmsg_locked", "tcp_push", "tcp_write_xmit", "__ip_queue_xmit", "vxlan_xmit", "vxlan_xmit_one")...),
			s("GSO", uint64(40*heavier), "traffic", under("tcp_sendmsg_locked", "tcp_push", "tcp_write_xmit", "__ip_queue_xmit", "vxlan_xmit", "skb_udp_tunnel_segment", "skb_segment")...))
	}
	return list
}

// profileOf is 3 s of one CPU.
func profileOf(t testing.TB, scenario, side string, heavier, metered float64) model.Profile {
	t.Helper()
	p := &folded.Profile{Node: "a", Side: side, CPUs: []int{0}, Seconds: 3, Rate: 997, Clock: "cpu-clock", Stacks: stacks(heavier)}
	for _, s := range p.Stacks {
		p.Samples += s.Count
	}
	return packedProfile(t, scenario, p, metered)
}

func packedProfile(t testing.TB, scenario string, p *folded.Profile, metered float64) model.Profile {
	t.Helper()
	data := must.Get(folded.Encode(p))(t)
	return model.Profile{Scenario: scenario, Side: p.Side, Data: data, Metered: metered, Sampled: folded.Sum(p).Busy, Slowdown: interval(0.97, 0.01), Bytes: 0.97 * 1.2e9}
}

// wide is a profile of n stacks of equal weight that part at random depths.
func wide(n int, side string, seed uint64) *folded.Profile {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := &folded.Profile{Node: "a", Side: side, CPUs: []int{0}, Seconds: 30, Rate: 997}
	for range n {
		s := folded.Stack{Comm: "traffic", Category: []string{"TCP/IP", "GRO", "VXLAN"}[rng.IntN(3)], Count: 10, Nanos: 10_000_000}
		for d := range 8 + rng.IntN(30) {
			s.Frames = append(s.Frames, fmt.Sprintf("function_%d_at_%d%s", rng.IntN(1+d*d), d, folded.KernelSuffix))
		}
		p.Stacks = append(p.Stacks, s)
		p.Samples += s.Count
	}
	return p
}
