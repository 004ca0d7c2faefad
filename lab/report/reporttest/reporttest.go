// Package reporttest makes runs for the tests of reports. The runs are similar to a real
// run of the suite quick. Every call makes the same run.
package reporttest

import (
	"math/rand/v2"
	"time"

	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Blocks of the run that Sample returns.
const Blocks = 6

// Sample returns a finished run with nine scenarios: raw, bridge, colocated bridge
// and kernel VXLAN, each as stream and request/response, and one skipped scenario. It
// has six blocks. In bridge/stream block 3 was repeated after a hung tool. In
// vxlan/rr block 2 failed in both attempts. Streams have a series of 30 points;
// request/response has latency histograms. Every call returns equal values in new
// memory.
func Sample() (sample.Run, suite.Plan, []sample.Sample) { return Sized(Blocks) }

// Quick returns the report of Sample.
func Quick() *model.Report { return report.Build(Sample()) }

// Sized is Sample with another number of blocks, for tests with few trials and for
// benchmarks. Each block has eight samples, and up to three repeats.
func Sized(blocks int) (sample.Run, suite.Plan, []sample.Sample) {
	plan := quickPlan(blocks)
	run := quickRun(blocks)
	var samples []sample.Sample
	for block := range blocks {
		order := rand.New(rand.NewPCG(run.Seed, uint64(block))).Perm(2 * len(cells))
		for position, i := range order {
			samples = append(samples, trials(&plan.Scenarios[i], i, block, position)...)
		}
	}
	return run, plan, samples
}

var started = time.Date(2026, time.November, 21, 9, 30, 15, 0, time.UTC)

func quickRun(blocks int) sample.Run {
	return sample.Run{
		ID:       "20261121-093015-quick",
		Suite:    "quick",
		Title:    "What a virtual network costs, in three minutes",
		Started:  started,
		Finished: started.Add(time.Duration(blocks*8) * 4 * time.Second),
		Seed:     42,
		Status:   sample.Complete,
		Skipped: map[string]string{
			"macvlan/stream": "this kernel has no macvlan: load the module with `modprobe macvlan`",
		},
		Environment: sample.Environment{
			Hostname: "lab-1", Kernel: "6.18.3", OS: "Debian GNU/Linux 12 (bookworm)",
			CPUModel: "AMD EPYC 9454P 48-Core Processor", CPUs: 2, MemoryBytes: 8 << 30,
			Virtualization: "kvm", ClockSource: "tsc", HZ: 250, IRQTimeAccounting: "yes",
			CongestionControl: "cubic",
			Mitigations:       map[string]string{"spectre_v2": "Mitigation: Enhanced / Automatic IBRS"},
			Sysctls:           map[string]string{"net.ipv4.tcp_rmem": "4096 131072 33554432", "net.ipv4.tcp_wmem": "4096 16384 33554432"},
			Offloads:          map[string]string{"fab": "tx-checksum-ip-generic tx-tcp-segmentation rx-gro"},
			Tools:             map[string]string{"builtin": "0.1.0", "iperf3": "3.12"},
			NodeCPUs:          map[string]string{"a": "0", "b": "1"},
			Fabric:            "wire: ports with TSO and GSO off, pfifo 1000, GRO by napi/fab threads, coalescing 50 µs",
			Revision:          "8b3dce6", Version: "0.1.0",
		},
	}
}

// Systems has the systems' names in sentences.
func Systems() map[string]string {
	return map[string]string{"raw": "raw", "bridge": "the bridge", "vxlan": "kernel VXLAN", "geneve": "kernel Geneve"}
}

func quickPlan(blocks int) suite.Plan {
	plan := suite.Plan{
		Suite: "quick", Title: "What a virtual network costs, in three minutes",
		Description: "Host stack to host stack, a Linux bridge on each side, the same on one node, and kernel VXLAN.",
		Nodes:       2, Trials: blocks, Systems: Systems(),
		Notes: []string{"Published figures come from other machines: compare ratios, not rates."},
	}
	for _, c := range cells {
		for _, w := range []suite.Workload{stream, requestResponse} {
			plan.Scenarios = append(plan.Scenarios, scenario(c, w))
			if c.group != "raw" {
				plan.Comparisons = append(plan.Comparisons, suite.Comparison{Baseline: "raw/" + w.Name, Subject: c.group + "/" + w.Name})
			}
		}
	}
	plan.Scenarios = append(plan.Scenarios, scenario(cell{group: "macvlan", system: "macvlan", placement: suite.TwoNodes, title: "macvlan"}, stream))
	plan.Published = []suite.Published{
		{Scenario: "raw/stream", Metric: string(sample.Throughput), Value: 7.375159e9, Printed: "7375.159 Mbit/s",
			Source: "Contrail on Windows, performance, table 1", Note: "printed in units of 1.048576 Mbit/s"},
		{Scenario: "vxlan/stream", Metric: string(sample.Throughput), Value: 1.592691e9, Printed: "1592.691 Mbit/s",
			Source: "Contrail on Windows, performance, table 2"},
		{Scenario: "raw/rr", Metric: string(sample.LatencyP50), Value: 41_000, Printed: "41 µs", Source: "Contrail on Windows, performance, table 3"},
	}
	return plan
}

func scenario(c cell, w suite.Workload) suite.Scenario {
	return suite.Scenario{
		ID: c.group + "/" + w.Name, Title: c.title, System: c.system, Placement: c.placement, Pairs: 1,
		Workload: w, Tool: "builtin",
		Fabric: suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1},
		Timing: suite.Timing{Warmup: time.Second, Duration: 3 * time.Second, Cooldown: 200 * time.Millisecond},
	}
}

var stream = suite.Workload{Name: "stream", Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 128 << 10, IPVersion: 4}

var requestResponse = suite.Workload{Name: "rr", Kind: suite.TCPRR, Direction: suite.Forward, Streams: 1, NoDelay: true, Request: 1, Response: 1, IPVersion: 4}

// cell is one system in one placement, with the medians of its figures.
type cell struct {
	group, system, title string
	placement            suite.Placement
	bits                 float64 // stream, bit/s
	senderCPU, recvCPU   float64 // stream, percent
	rtt                  float64 // request/response, ns
}

var cells = []cell{
	{"raw", "raw", "raw: host stack to host stack", suite.TwoNodes, 11.2e9, 71, 64, 31_000},
	{"bridge", "bridge", "containers on a Linux bridge each side", suite.TwoNodes, 10.8e9, 76, 57, 36_500},
	{"bridge-colocated", "bridge", "containers on one Linux bridge", suite.Colocated, 14.1e9, 93, 0, 24_000},
	{"vxlan", "vxlan", "kernel VXLAN behind a bridge", suite.TwoNodes, 8.8e9, 82, 59, 43_000},
}
