// Package model turns a stored run into a Report: summaries, comparisons,
// findings and the other sentences. It knows no output format. The packages
// beside it write a Report: text, markdown, html and export.
package model

import (
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Report is the summary of one run, and the JSON contract of
// `windtunnel report --format json`. Absent metrics are absent.
type Report struct {
	Run         RunInfo          `json:"run"`
	Scenarios   []Scenario       `json:"scenarios"`
	Comparisons []Comparison     `json:"comparisons"`
	Ladders     []Ladder         `json:"ladders,omitempty"`
	Hypotheses  []Hypothesis     `json:"hypotheses,omitempty"`
	Published   []Published      `json:"published,omitempty"`
	Tables      []PublishedTable `json:"published_tables,omitempty"`
	Conditions  Conditions       `json:"conditions,omitzero"` // that the figures hold for
	Elsewhere   []Elsewhere      `json:"elsewhere,omitempty"` // trials at other distances of the CPUs
	Validity    Validity         `json:"validity"`
	Precision   *Precision       `json:"precision,omitempty"` // where the plan asks for one
	Profiles    []Profile        `json:"profiles,omitempty"`
	Findings    []string         `json:"findings,omitempty"` // plain sentences
	Notes       []string         `json:"notes,omitempty"`
	Doubts      []string         `json:"-"` // those of the notes that summarising gave rise to

	systems map[string]string           // as in suite.Plan
	pairs   []suite.Comparison          // of the plan
	apart   map[suite.Comparison]string // why two scenarios with figures are not compared
}

// RunInfo identifies the run.
type RunInfo struct {
	ID          string             `json:"id"`
	Suite       string             `json:"suite"`
	Title       string             `json:"title"`
	Description string             `json:"description,omitempty"`
	Short       bool               `json:"short,omitempty"` // it ran the suite's short form
	Started     time.Time          `json:"started"`
	Finished    *time.Time         `json:"finished,omitempty"`
	Status      sample.Status      `json:"status"`
	Seed        uint64             `json:"seed"`
	Options     sample.Options     `json:"options,omitzero"`
	Environment sample.Environment `json:"environment"`
}

// Interval is a median with its 95 % interval. A figure's interval comes from order
// statistics. A ratio has Hodges and Lehmann's median of the ratios within blocks;
// its interval holds the values that the signed-rank test does not reject. With too
// few samples for an interval, Low and High are the extremes. Level is then their
// confidence.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
	Level  float64 `json:"level"` // confidence that [Low, High] really has, 0..1
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

// Scenario is one row.
type Scenario struct {
	ID                 string                     `json:"id"`
	Title              string                     `json:"title"`
	System             string                     `json:"system"`
	Placement          string                     `json:"placement"`
	Tool               string                     `json:"tool"`
	Offload            string                     `json:"offload"`
	Workload           suite.Workload             `json:"workload"`
	Fabric             suite.Fabric               `json:"fabric"`
	Endpoint           suite.Endpoint             `json:"endpoint,omitzero"`
	Pairs              int                        `json:"pairs"`
	Trials             int                        `json:"trials"`                // blocks with figures that count
	Failed             int                        `json:"failed,omitempty"`      // blocks without: failed, or not valid
	Skipped            string                     `json:"skipped,omitempty"`     // why it did not run at all
	Limit              sample.Limit               `json:"limit,omitempty"`       // what held most trials back
	LimitShare         float64                    `json:"limit_share,omitempty"` // of the trials, 0..1
	Throughput         *Interval                  `json:"throughput_bps,omitempty"`
	SenderCPU          *Interval                  `json:"sender_cpu_percent,omitempty"`
	ReceiverCPU        *Interval                  `json:"receiver_cpu_percent,omitempty"`
	SenderCPUPerByte   *Interval                  `json:"sender_cpu_ns_per_byte,omitempty"`
	ReceiverCPUPerByte *Interval                  `json:"receiver_cpu_ns_per_byte,omitempty"`
	Retransmits        *float64                   `json:"retransmits,omitempty"` // sum over trials
	Errors             *float64                   `json:"errors,omitempty"`      // sum over trials
	Transactions       *Interval                  `json:"transactions_per_s,omitempty"`
	Latency            *Latency                   `json:"latency_ns,omitempty"`
	PacketsPerSecond   *Interval                  `json:"packets_per_s,omitempty"`
	Metrics            map[sample.Metric]Interval `json:"metrics,omitempty"` // every other metric
	Flags              []GateCount                `json:"flags,omitempty"`   // outcomes of the trials that count
	Samples            []sample.Sample            `json:"samples"`           // without raw outputs
}

// Comparison is one metric of a subject as a ratio to its baseline, paired
// within blocks.
type Comparison struct {
	Title    string        `json:"title,omitempty"`
	Baseline string        `json:"baseline"`
	Subject  string        `json:"subject"`
	Metric   sample.Metric `json:"metric"`
	// Ratio within blocks; see stats.Ratio.
	Ratio Interval `json:"ratio"`
	// P is the two-sided p-value of the signed-rank test, of which Ratio's interval
	// is the inverse; nil with too few blocks. Adjusted is the p-value after the
	// correction for all of the report's comparisons (stats.Family).
	P        *float64 `json:"p,omitempty"`
	Adjusted *float64 `json:"p_adjusted,omitempty"`
	// Effect is the matched-pairs rank-biserial correlation, −1…+1.
	Effect *float64 `json:"effect,omitempty"`
	// Detectable is the smallest true difference (0.03: a ratio of 1.03) that
	// so many blocks with this spread would have shown with a power of 0.8.
	Detectable *float64 `json:"detectable,omitempty"`
	Verdict    Verdict  `json:"verdict"`
	// Distinct: the verdict is Differs.
	Distinct bool `json:"distinct"`

	logs map[int]float64 // logarithm of the ratio in each block
}

// Verdict says what a comparison shows.
type Verdict string

const (
	Differs   Verdict = "differs"   // significant after the correction for many comparisons
	Suggested Verdict = "suggested" // the interval excludes 1, but not after the correction
	Alike     Verdict = "alike"     // the interval holds 1; Detectable says what would have shown
	TooFew    Verdict = "too few"   // so few blocks can show nothing
)

// Ladder is a plan's ladder with what each step costs.
type Ladder struct {
	Title string `json:"title,omitempty"`
	Steps []Rung `json:"steps"`
}

// Rung is one step of a ladder: a scenario, and what it adds over the rung before it. The
// first adds nothing.
type Rung struct {
	Scenario string `json:"scenario"`
	Name     string `json:"name"`           // what the step adds, in the report's words
	From     string `json:"from,omitempty"` // the scenario of the rung before
	Costs    []Cost `json:"costs,omitempty"`
}

// Cost is one metric of a step: throughput lost, CPU per byte and per packet
// on each side, latency added.
type Cost struct {
	Metric sample.Metric `json:"metric"`
	Figure *Interval     `json:"figure,omitempty"` // of the step's scenario
	// Added is Figure less the figure of the rung before, in the metric's unit. Low
	// and High are the bounds of Ratio, applied to the rung before. See Adds.
	Added *Interval `json:"added,omitempty"`
	// The comparison with the rung before, as in Comparison.
	Ratio      *Interval `json:"ratio,omitempty"`
	P          *float64  `json:"p,omitempty"`
	Adjusted   *float64  `json:"p_adjusted,omitempty"`
	Detectable *float64  `json:"detectable,omitempty"`
	Verdict    Verdict   `json:"verdict,omitempty"`
	// Share is the part of the last rung's figure that this step added: 2/3 for 8 of
	// 12 ns. It needs a metric that adds up: CPU per byte or packet, or latency.
	Share *float64 `json:"share,omitempty"`

	of *Comparison // with the rung before
}

// Hypothesis is a plan's hypothesis, judged.
type Hypothesis struct {
	suite.Hypothesis
	Judgement Judgement  `json:"judgement"`
	Observed  []Observed `json:"observed,omitempty"` // one a subject
	Why       string     `json:"why"`                // the figures in a sentence
}

// Judgement of a hypothesis.
type Judgement string

const (
	Holds     Judgement = "holds"
	Refuted   Judgement = "refuted"
	Undecided Judgement = "undecided"
)

// Observed is a subject's ratio and what it says of the hypothesis.
type Observed struct {
	Subject   string    `json:"subject"`
	Ratio     *Interval `json:"ratio,omitempty"` // nil where it could not be measured
	Judgement Judgement `json:"judgement"`
}

// Validity counts the run's trials by whether their figures count.
type Validity struct {
	Attempts int            `json:"attempts"` // trials with every repeat
	Valid    int            `json:"valid"`    // their figures count
	Warned   int            `json:"warned"`   // of these, measured under conditions that were not valid (--gates warn)
	Failed   int            `json:"failed"`   // yielded no figures
	Gated    int            `json:"gated"`    // measured under conditions that were not valid
	Profiled int            `json:"profiled"` // beside the profiler; in none of the others
	Gates    []GateCount    `json:"gates,omitempty"`
	Missing  map[string]int `json:"missing,omitempty"` // by scenario: planned blocks without a valid trial
}

// GateCount is one check over a run.
type GateCount struct {
	Name   sample.GateName `json:"gate"`
	Trials int             `json:"trials"` // that failed it
	Worst  sample.Gate     `json:"worst"`
}

// Precision says whether the run knows its figures as well as the plan asked.
type Precision struct {
	Wanted  float64     `json:"wanted"` // relative half-width
	Reached bool        `json:"reached"`
	Blocks  int         `json:"blocks"`
	Why     string      `json:"why"` // why it stopped, in a sentence
	Widest  []Imprecise `json:"widest,omitempty"`
}

// Imprecise is a figure that is not known as well as was asked.
type Imprecise struct {
	Subject   string        `json:"subject"`
	Baseline  string        `json:"baseline,omitempty"` // empty: the subject's own figure
	Metric    sample.Metric `json:"metric"`
	HalfWidth float64       `json:"half_width"` // relative; 0: too few trials for an interval
}

// Profile is where the CPU time of one side of a scenario went.
type Profile struct {
	Scenario string `json:"scenario"`
	Side     string `json:"side"` // sender, receiver
	Data     string `json:"data"` // a folded.Profile, encoded
	// Slowdown is throughput (or transactions) with the profiler over that
	// without, paired within blocks.
	Slowdown *Interval `json:"slowdown,omitempty"`
	// Metered is what the meter read over the same windows, and Sampled what
	// the samples that are not idle stand for, in cores.
	Metered float64 `json:"metered_cores"`
	Sampled float64 `json:"sampled_cores"`
	// Bytes is the payload that passed in a second of the profiled trials; 0
	// where the traffic is no stream.
	Bytes float64 `json:"bytes_per_s,omitempty"`
}

// Published puts a public document's figure beside the measured one.
type Published struct {
	suite.Published
	Measured *Interval `json:"measured,omitempty"`
}
