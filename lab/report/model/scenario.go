package model

import (
	"fmt"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

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
	Trials             int                                 `json:"trials"`                     // blocks with figures that count
	Failed             int                                 `json:"failed,omitempty"`           // blocks without figures that count: failed, or not valid
	Elsewhere          int                                 `json:"trials_elsewhere,omitempty"` // blocks with figures that count, at another CPU distance
	Skipped            string                              `json:"skipped,omitempty"`          // why it did not run at all
	Limit              sample.Limit                        `json:"limit,omitempty"`            // most frequent limit of the trials
	LimitShare         float64                             `json:"limit_share,omitempty"`      // share of the trials with this limit, 0..1
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

// Interval returns the scenario's figure of m, from its field or from Metrics. It
// returns nil if m was not measured, or is a sum over the trials.
func (s *Scenario) Interval(m sample.Metric) *quantity.Interval {
	if f := s.Field(m); f != nil {
		return *f
	}
	if iv, ok := s.Metrics[m]; ok {
		return &iv
	}
	return nil
}

// Field returns the address of the Scenario field that has the interval of m;
// nil if m has no field and is in Metrics.
func (s *Scenario) Field(m sample.Metric) **quantity.Interval {
	switch m {
	case sample.Throughput:
		return &s.Throughput
	case sample.Transactions:
		return &s.Transactions
	case sample.SenderCPU:
		return &s.SenderCPU
	case sample.ReceiverCPU:
		return &s.ReceiverCPU
	case sample.SenderCPUPerByte:
		return &s.SenderCPUPerByte
	case sample.ReceiverCPUPerByte:
		return &s.ReceiverCPUPerByte
	case sample.PacketsPerSecond:
		return &s.PacketsPerSecond
	}
	return nil
}

// Counting returns the scenario's samples that the report's figures are
// computed from.
func (s *Scenario) Counting() []*sample.Sample {
	all := make([]*sample.Sample, len(s.Samples))
	for i := range s.Samples {
		all[i] = &s.Samples[i]
	}
	return sample.Counting(all)
}

// Absent returns why a row has no figures, in a few words; empty if it has
// some.
func (s *Scenario) Absent() string {
	switch {
	case s.Skipped != "":
		return "skipped"
	case s.Trials == 0:
		return "no figures"
	}
	return ""
}

// ShareOfLimit returns the share of the scenario's trials that the limit applied to,
// such as " (70 %)"; "" if it applied to all trials. of is the text after the percent sign.
func (s *Scenario) ShareOfLimit(of string) string {
	if s.LimitShare >= 0.95 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %%%s)", 100*s.LimitShare, of)
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

// Percentiles lists the percentiles of latency that reports show, in ascending
// order.
var Percentiles = []struct {
	Metric sample.Metric
	Name   string
}{
	{sample.LatencyP50, "p50"}, {sample.LatencyP90, "p90"}, {sample.LatencyP99, "p99"},
	{sample.LatencyP999, "p99.9"}, {sample.LatencyMax, "max"},
}
