// Package model turns a stored run into a Report with summaries, comparisons and
// findings. It knows no output format. The packages text, markdown, html and export
// write a Report.
package model

import (
	"time"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Report is the summary of one run. Its JSON is the output of `windtunnel report
// --format json`. Metrics that were not measured are absent.
type Report struct {
	Run         RunInfo          `json:"run"`
	Scenarios   []Scenario       `json:"scenarios"`
	Comparisons []Comparison     `json:"comparisons"`
	Ladders     []Ladder         `json:"ladders,omitempty"`
	Hypotheses  []Hypothesis     `json:"hypotheses,omitempty"`
	Published   []Published      `json:"published,omitempty"`
	Tables      []PublishedTable `json:"published_tables,omitempty"`
	Conditions  Conditions       `json:"conditions,omitzero"` // of the machine during the trials
	Elsewhere   []Elsewhere      `json:"elsewhere,omitempty"` // figures at other CPU distances
	Validity    Validity         `json:"validity"`
	Precision   *Precision       `json:"precision,omitempty"` // nil if the plan asks for none
	Profiles    []Profile        `json:"profiles,omitempty"`
	// HostMatrices has the figures between pairs of hosts, for each scenario of the plan;
	// nil if the plan has no matrix.
	HostMatrices []HostMatrix `json:"host_matrices,omitempty"`
	Findings     []string     `json:"findings,omitempty"` // plain sentences
	Notes        []string     `json:"notes,omitempty"`
	Doubts       []string     `json:"-"` // notes on this run's gaps; part of Notes

	systems map[string]string           // as in suite.Plan
	pairs   []suite.Comparison          // of the plan
	apart   map[suite.Comparison]string // reasons why scenarios with figures are not compared
}

// RunInfo identifies the run.
type RunInfo struct {
	ID          string             `json:"id"`
	Name        string             `json:"name,omitempty"` // as the user gave it, and the note
	Note        string             `json:"note,omitempty"`
	Suite       string             `json:"suite"`
	Title       string             `json:"title"`
	Description string             `json:"description,omitempty"`
	Short       bool               `json:"short,omitempty"` // the run used the suite's short form
	Started     time.Time          `json:"started"`
	Finished    *time.Time         `json:"finished,omitempty"`
	Status      sample.Status      `json:"status"`
	Seed        uint64             `json:"seed"`
	Options     sample.Options     `json:"options,omitzero"`
	Environment sample.Environment `json:"environment"`
}

// Latency has the medians of the trials' percentiles, in ns. Scenario.Metrics has
// their intervals.
type Latency struct {
	P50  *float64 `json:"p50,omitempty"`
	P90  *float64 `json:"p90,omitempty"`
	P99  *float64 `json:"p99,omitempty"`
	P999 *float64 `json:"p999,omitempty"`
	Max  *float64 `json:"max,omitempty"`
}

// Scenario has the figures of one scenario.
type Scenario struct {
	ID                 string                              `json:"id"`
	Title              string                              `json:"title"`
	System             string                              `json:"system"`
	Placement          string                              `json:"placement"`
	Tool               string                              `json:"tool"`
	Offload            string                              `json:"offload"`
	Workload           suite.Workload                      `json:"workload"`
	Fabric             suite.Fabric                        `json:"fabric"`
	Endpoint           suite.Endpoint                      `json:"endpoint,omitzero"`
	Pairs              int                                 `json:"pairs"`
	Trials             int                                 `json:"trials"`                // blocks with figures that count
	Failed             int                                 `json:"failed,omitempty"`      // blocks without figures that count: failed, or not valid
	Skipped            string                              `json:"skipped,omitempty"`     // why it did not run at all
	Limit              sample.Limit                        `json:"limit,omitempty"`       // most frequent limit of the trials
	LimitShare         float64                             `json:"limit_share,omitempty"` // share of the trials with this limit, 0..1
	Throughput         *quantity.Interval                  `json:"throughput_bps,omitempty"`
	SenderCPU          *quantity.Interval                  `json:"sender_cpu_percent,omitempty"`
	ReceiverCPU        *quantity.Interval                  `json:"receiver_cpu_percent,omitempty"`
	SenderCPUPerByte   *quantity.Interval                  `json:"sender_cpu_ns_per_byte,omitempty"`
	ReceiverCPUPerByte *quantity.Interval                  `json:"receiver_cpu_ns_per_byte,omitempty"`
	Retransmits        *float64                            `json:"retransmits,omitempty"` // sum over trials
	Errors             *float64                            `json:"errors,omitempty"`      // sum over trials
	Transactions       *quantity.Interval                  `json:"transactions_per_s,omitempty"`
	Latency            *Latency                            `json:"latency_ns,omitempty"`
	PacketsPerSecond   *quantity.Interval                  `json:"packets_per_s,omitempty"`
	Metrics            map[sample.Metric]quantity.Interval `json:"metrics,omitempty"` // every other metric
	Flags              []GateCount                         `json:"flags,omitempty"`   // flags of the trials that count
	Samples            []sample.Sample                     `json:"samples"`           // without raw outputs
}

// Comparison is the ratio of one metric of a subject to its baseline. Each block gives
// one ratio.
type Comparison struct {
	Title    string        `json:"title,omitempty"`
	Baseline string        `json:"baseline"`
	Subject  string        `json:"subject"`
	Metric   sample.Metric `json:"metric"`
	// Ratio within blocks; see stats.Ratio.
	Ratio quantity.Interval `json:"ratio"`
	// P is the two-sided p-value of the signed-rank test; nil with too few blocks.
	// Ratio's interval is the inverse of this test. Adjusted is the p-value after the
	// correction for all comparisons of the report (stats.Family).
	P        *float64 `json:"p,omitempty"`
	Adjusted *float64 `json:"p_adjusted,omitempty"`
	// Effect is the matched-pairs rank-biserial correlation, −1…+1.
	Effect *float64 `json:"effect,omitempty"`
	// Detectable is the smallest true difference that these blocks would have shown
	// with a power of 0.8. 0.03 means a ratio of 1.03.
	Detectable *float64 `json:"detectable,omitempty"`
	Verdict    Verdict  `json:"verdict"`
	// Distinct: the verdict is Differs.
	Distinct bool `json:"distinct"`

	logs map[int]float64 // logarithm of the ratio in each block
}

// Verdict is the result of a comparison.
type Verdict string

const (
	Differs   Verdict = "differs"            // significant after the correction for many comparisons
	Suggested Verdict = "suggested"          // the interval excludes 1, but not after the correction
	Alike     Verdict = "alike"              // the interval contains 1; see Detectable
	TooFew    Verdict = "too few"            // too few blocks to show a difference
	TooNoisy  Verdict = "too noisy to judge" // as Alike, but Detectable is above NoisyAbove
)

// NoisyAbove is the bound of the smallest detectable difference, as a share. Where only a
// larger difference would show, the figures are too noisy to judge.
const NoisyAbove = 1.0

// Equal reports whether the interval contains 1: no difference shows, or the figures are
// too noisy.
func (v Verdict) Equal() bool { return v == Alike || v == TooNoisy }

// Ladder is a plan's ladder with the cost of each step.
type Ladder struct {
	Title string `json:"title,omitempty"`
	Steps []Rung `json:"steps"`
}

// Rung is one step of a ladder: a scenario, and its cost over the rung before it. The
// first rung has no cost.
type Rung struct {
	Scenario string `json:"scenario"`
	Name     string `json:"name"`           // name of the step in the report
	From     string `json:"from,omitempty"` // the scenario of the rung before
	Costs    []Cost `json:"costs,omitempty"`
}

// Cost is one metric of a step: throughput, transactions, CPU per byte or packet of one
// side, or latency.
type Cost struct {
	Metric sample.Metric      `json:"metric"`
	Figure *quantity.Interval `json:"figure,omitempty"` // of the step's scenario
	// Added is Figure less the figure of the rung before, in the metric's unit. Low
	// and High are the bounds of Ratio, applied to the rung before. See Adds.
	Added *quantity.Interval `json:"added,omitempty"`
	// The comparison with the rung before, as in Comparison.
	Ratio      *quantity.Interval `json:"ratio,omitempty"`
	P          *float64           `json:"p,omitempty"`
	Adjusted   *float64           `json:"p_adjusted,omitempty"`
	Detectable *float64           `json:"detectable,omitempty"`
	Verdict    Verdict            `json:"verdict,omitempty"`
	// Share is the part of the last rung's figure that this step added: 2/3 for 8 of
	// 12 ns. It needs a metric that adds up: CPU per byte or packet, or latency.
	Share *float64 `json:"share,omitempty"`

	of *Comparison // with the rung before
}

// Hypothesis is a plan's hypothesis, judged.
type Hypothesis struct {
	suite.Hypothesis
	Judgement Judgement  `json:"judgement"`
	Observed  []Observed `json:"observed,omitempty"` // one for each subject
	Why       string     `json:"why"`                // the figures and the reason, in sentences
	Cause     string     `json:"cause,omitempty"`    // the suite's cause if the hypothesis is refuted; "" if it knows none
}

// Judgement is the result of a hypothesis.
type Judgement string

const (
	Holds     Judgement = "holds"
	Refuted   Judgement = "refuted"
	Undecided Judgement = "undecided"
	NotHere   Judgement = "cannot be judged here" // the machine cannot run a scenario; Why has the reason
)

// Observed is the figure of one subject, and the judgement from it. The figure is a
// ratio, or a difference or a value in the metric's unit.
type Observed struct {
	Subject   string             `json:"subject"`
	Figure    *quantity.Interval `json:"figure,omitempty"` // nil if it could not be measured
	Judgement Judgement          `json:"judgement"`
}

// Validity counts the run's trials, by whether their figures count and why not.
type Validity struct {
	Attempts int            `json:"attempts"` // trials, including repeats
	Valid    int            `json:"valid"`    // trials with figures that count
	Warned   int            `json:"warned"`   // part of Valid: conditions were not valid (--gates warn)
	Failed   int            `json:"failed"`   // trials without figures
	Gated    int            `json:"gated"`    // trials rejected, because the conditions were not valid
	Profiled int            `json:"profiled"` // trials with the profiler; not in the other counts
	Gates    []GateCount    `json:"gates,omitempty"`
	Missing  map[string]int `json:"missing,omitempty"` // planned blocks without a valid trial, by scenario
}

// GateCount counts the trials that failed one check.
type GateCount struct {
	Name   sample.GateName `json:"gate"`
	Trials int             `json:"trials"` // trials that failed the check
	Worst  sample.Gate     `json:"worst"`
}

// Precision says whether the intervals are as narrow as the plan asks.
type Precision struct {
	Wanted  float64     `json:"wanted"` // relative half-width
	Reached bool        `json:"reached"`
	Blocks  int         `json:"blocks"`
	Why     string      `json:"why"` // why the run stopped, in a sentence
	Widest  []Imprecise `json:"widest,omitempty"`
}

// Imprecise is a figure with a wider interval than the plan asks for.
type Imprecise struct {
	Subject   string        `json:"subject"`
	Baseline  string        `json:"baseline,omitempty"` // empty: the subject's own figure
	Metric    sample.Metric `json:"metric"`
	HalfWidth float64       `json:"half_width"` // relative; 0: too few trials for an interval
}

// Profile is the CPU profile of one side of a scenario.
type Profile struct {
	Scenario string `json:"scenario"`
	Side     string `json:"side"` // sender, receiver
	Data     string `json:"data"` // a folded.Profile, encoded
	// Slowdown is the ratio of throughput (or transactions) with the profiler to the
	// rate without it, within blocks.
	Slowdown *quantity.Interval `json:"slowdown,omitempty"`
	// Metered is the CPU time by the meter over the same windows, in cores. Sampled is
	// the CPU time by the samples that are not idle, in cores.
	Metered float64 `json:"metered_cores"`
	Sampled float64 `json:"sampled_cores"`
	// Bytes is the payload rate in the profiled trials, bytes per second; 0 if the
	// traffic is not a stream.
	Bytes float64 `json:"bytes_per_s,omitempty"`
}

// Published is a public document's figure with the measured figure.
type Published struct {
	suite.Published
	Measured *quantity.Interval `json:"measured,omitempty"`
}
