// Package report turns a stored run into what a person or a program reads:
// terminal table, Markdown, HTML, JSON, CSV and benchfmt. It needs nothing but
// the store's data.
package report

import (
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Report is the summary of one run, and the JSON contract of
// `windtunnel report --format json`. Absent metrics are absent.
type Report struct {
	Run         RunInfo      `json:"run"`
	Scenarios   []Scenario   `json:"scenarios"`
	Comparisons []Comparison `json:"comparisons"`
	Published   []Published  `json:"published,omitempty"`
	Findings    []string     `json:"findings,omitempty"` // plain sentences
	Notes       []string     `json:"notes,omitempty"`
}

// RunInfo identifies the run.
type RunInfo struct {
	ID          string             `json:"id"`
	Suite       string             `json:"suite"`
	Title       string             `json:"title"`
	Description string             `json:"description,omitempty"`
	Started     time.Time          `json:"started"`
	Finished    *time.Time         `json:"finished,omitempty"`
	Status      sample.Status      `json:"status"`
	Seed        uint64             `json:"seed"`
	Environment sample.Environment `json:"environment"`
}

// Interval is a median with its 95 % order-statistic interval. With too few
// samples for one, Low and High are the extremes and Level says what they hold.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
	Level  float64 `json:"level"` // confidence that [Low, High] really has, 0..1
}

// Latency summarises the merged distribution of all trials, nanoseconds.
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
	Pairs              int                        `json:"pairs"`
	Trials             int                        `json:"trials"`            // that yielded figures
	Failed             int                        `json:"failed,omitempty"`  // that did not
	Skipped            string                     `json:"skipped,omitempty"` // why it did not run at all
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
	Samples            []sample.Sample            `json:"samples"`           // without raw outputs
}

// Comparison is one metric of a subject as a ratio to its baseline, paired
// within blocks.
type Comparison struct {
	Title    string        `json:"title,omitempty"`
	Baseline string        `json:"baseline"`
	Subject  string        `json:"subject"`
	Metric   sample.Metric `json:"metric"`
	Ratio    Interval      `json:"ratio"`
	// Distinct: the ratio's interval leaves out 1.
	Distinct bool `json:"distinct"`
}

// Published puts a public document's figure beside the measured one.
type Published struct {
	suite.Published
	Measured *Interval `json:"measured,omitempty"`
}
