package main

import (
	"slices"
	"strings"

	"windtunnel/lab/sample"
)

// profiles returns a line for each offload profile of a system.
func profiles(name, group string) (lines []line) {
	for _, profile := range []string{"none", "tcp", "tunnel"} {
		lines = append(lines, line{name: name + ", " + profile, group: group, variant: "-" + profile})
	}
	return lines
}

// targets returns a line with the targets of the lines below it.
func targets(name string, list ...bound) []line {
	return []line{{name: "target, " + name, targets: list}}
}

// scenarios lists the scenarios of grids, as --scenario takes them.
func scenarios(grids []grid) string {
	var ids []string
	for _, g := range grids {
		for _, l := range g.lines {
			for _, c := range g.columns {
				if id := l.scenario(c); l.targets == nil && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return strings.Join(ids, ",")
}

// overlay compares vrouter with the bridge and with the kernel's VXLAN, in every offload profile.
var overlay = []grid{
	{
		corner: "over the bridge",
		columns: []column{
			{"throughput", "", "stream", sample.Throughput, "bridge*"},
			{"TCP_RR", "", "rr", sample.Transactions, "bridge*"},
			{"sender CPU per byte", "", "stream", sample.SenderCPUPerByte, "bridge*"},
			{"receiver CPU per byte", "", "stream", sample.ReceiverCPUPerByte, "bridge*"},
		},
		lines: slices.Concat(
			profiles("bridge", "bridge*"), profiles("kernel VXLAN", "vxlan*"),
			targets("direct", least(0.98), least(1), most(1.03), most(0.97)),
			profiles("direct", "vrouter-direct*"), profiles("translated", "vrouter-translated*"),
			targets("tunnels", bound{}, least(0.98), most(1.05), most(1.35)),
			profiles("VXLAN", "vrouter-vxlan*"), profiles("MPLS over UDP", "vrouter-mpls-udp*"), profiles("MPLS over GRE", "vrouter-mpls-gre*"),
			targets("one node", least(1)), []line{{name: "vrouter, one node", group: "vrouter-mpls-udp*", variant: "-colocated"}},
		),
	},
	{
		name: "vxlan", corner: "over the kernel's VXLAN",
		columns: []column{
			{"throughput", "", "stream", sample.Throughput, "vxlan*"},
			{"TCP_RR", "", "rr", sample.Transactions, "vxlan*"},
			{"sender CPU per byte", "", "stream", sample.SenderCPUPerByte, "vxlan*"},
			{"receiver CPU per byte", "", "stream", sample.ReceiverCPUPerByte, "vxlan*"},
		},
		lines: slices.Concat(
			targets("direct", least(1.25), least(1.02), most(0.80), most(0.78)),
			profiles("direct", "vrouter-direct*"), profiles("translated", "vrouter-translated*"),
			targets("VXLAN", least(0.95), bound{}, most(0.90), most(0.90)), profiles("VXLAN", "vrouter-vxlan*"),
			targets("MPLS", least(0.95)), profiles("MPLS over UDP", "vrouter-mpls-udp*"), profiles("MPLS over GRE", "vrouter-mpls-gre*"),
		),
	},
	{
		name: "big-tcp", corner: "direct-big-tcp over direct",
		columns: []column{
			{"throughput", "", "stream", sample.Throughput, "vrouter-direct*"},
			{"sender CPU per byte", "", "stream", sample.SenderCPUPerByte, "vrouter-direct*"},
			{"receiver CPU per byte", "", "stream", sample.ReceiverCPUPerByte, "vrouter-direct*"},
		},
		lines: slices.Concat(
			targets("tcp", least(1.1)), []line{{name: "tcp", group: "vrouter-direct-big-tcp*", variant: "-tcp"}},
			targets("veth", least(3)), []line{{name: "veth", group: "vrouter-direct-big-tcp*", variant: "-veth"}},
		),
	},
}

// parity compares containers with their hosts.
var parity = []grid{{
	corner: "over the host",
	columns: []column{
		{"one stream", "", "stream", sample.Throughput, "raw"},
		{"sender CPU per byte", "", "stream", sample.SenderCPUPerByte, "raw"},
		{"receiver CPU per byte", "", "stream", sample.ReceiverCPUPerByte, "raw"},
		{"UDP, 64 bytes", "", "udp-64", sample.Throughput, "raw"},
		{"requests", "", "rr", sample.Transactions, "raw"},
	},
	lines: slices.Concat(
		[]line{{name: "raw", group: "raw"}, {name: "bridge", group: "bridge"}},
		targets("direct", least(0.95), bound{}, bound{}, least(0.90), least(0.98)),
		[]line{{name: "vrouter, direct", group: "vrouter-direct"}},
	),
}}

// overlayTraffic compares vrouter without a tunnel with the bridge, and a policy with none.
var overlayTraffic = []grid{{
	corner: "direct over the bridge", byKind: true,
	columns: []column{
		{"rate", "", "", sample.Throughput, "bridge"},
		{"sender CPU", "", "", sample.SenderCPUPerByte, "bridge"},
		{"receiver CPU", "", "", sample.ReceiverCPUPerByte, "bridge"},
	},
	lines: slices.Concat(
		targets("TCP", least(0.97)),
		[]line{
			{name: "one stream", group: "vrouter-direct", workload: "stream"},
			{name: "both directions at once", group: "vrouter-direct", workload: "both"},
			{name: "4 streams", group: "vrouter-direct", workload: "streams-4"},
			{name: "16 streams", group: "vrouter-direct", workload: "streams-16"},
			{name: "64 streams", group: "vrouter-direct", workload: "streams-64"},
			{name: "4 workloads on each node", group: "vrouter-direct", workload: "workloads-4"},
			{name: "16 workloads on each node", group: "vrouter-direct", workload: "workloads-16"},
		},
		targets("UDP", least(1), most(1), most(1)),
		[]line{
			{name: "UDP, 64 bytes", group: "vrouter-direct", workload: "udp-64"},
			{name: "UDP, 1,400 bytes", group: "vrouter-direct", workload: "udp-1400"},
		},
		targets("a policy of 100 rules over none", least(0.97), most(1.03), most(1.03)),
		[]line{{name: "one stream, with a policy", group: "vrouter-direct-policy", workload: "stream", over: "vrouter-direct"}},
		targets("the same, TCP_RR", least(0.98)),
		[]line{{name: "TCP_RR, with a policy", group: "vrouter-direct-policy", workload: "rr", over: "vrouter-direct"}},
		targets("the same, TCP_CRR", bound{}),
		[]line{{name: "TCP_CRR, with a policy", group: "vrouter-direct-policy", workload: "crr", over: "vrouter-direct"}},
	),
}}

// lossy compares systems on a link that loses 0.1 % of the frames.
var lossy = []grid{{
	corner: "0.1 % of the frames are lost",
	columns: []column{
		{"throughput", "", "stream", sample.Throughput, "bridge-lossy"},
		{"sender CPU per byte", "", "stream", sample.SenderCPUPerByte, "bridge-lossy"},
		{"receiver CPU per byte", "", "stream", sample.ReceiverCPUPerByte, "bridge-lossy"},
	},
	lines: slices.Concat(
		[]line{{name: "bridge", group: "bridge-lossy"}, {name: "vrouter, VXLAN", group: "vrouter-vxlan-lossy"}, {name: "kernel VXLAN", group: "vxlan-lossy"}},
		targets("direct", least(0.97)), []line{{name: "vrouter, direct", group: "vrouter-direct-lossy"}},
	),
}}

// all lists the systems that are compared with the bridge.
var all = []line{
	{name: "raw", group: "raw"},
	{name: "bridge", group: "bridge"},
	{name: "vrouter, direct", group: "vrouter-direct"},
	{name: "vrouter, translated", group: "vrouter-translated"},
	{name: "vrouter, VXLAN", group: "vrouter-vxlan"},
	{name: "vrouter, MPLS over UDP", group: "vrouter-mpls-udp"},
	{name: "vrouter under Docker", group: "vrouter-docker"},
	{name: "kernel VXLAN", group: "vxlan"},
	{name: "flannel, host-gw", group: "flannel-host-gw"},
	{name: "flannel, VXLAN", group: "flannel-vxlan"},
	{name: "flannel, UDP", group: "flannel-udp"},
	{name: "EVPN", group: "evpn"},
	{name: "Docker overlay", group: "docker-overlay"},
	{name: "Open vSwitch in user space, VXLAN", group: "ovs-vxlan"},
	{name: "wireguard-go", group: "wireguard"},
	{name: "Weave", group: "weave"},
}

var systems = []grid{{
	corner: "system", lines: all, sorted: true,
	columns: []column{
		{"throughput", "", "stream", sample.Throughput, ""},
		{"over the bridge", "", "stream", sample.Throughput, "bridge"},
		{"sender CPU per byte", "", "stream", sample.SenderCPUPerByte, "bridge"},
		{"receiver CPU per byte", "", "stream", sample.ReceiverCPUPerByte, "bridge"},
		{"transactions", "", "rr", sample.Transactions, "bridge"},
	},
}}

var packets = []grid{{
	corner: "system", sorted: true,
	lines: slices.Concat(all, []line{
		{name: "vrouter, MPLS over GRE", group: "vrouter-mpls-gre"},
		{name: "Open vSwitch in user space, GRE", group: "ovs-gre"},
	}),
	columns: []column{
		{"64 bytes", "", "udp-64", sample.DatagramsReceived, ""},
		{"over the bridge", "", "udp-64", sample.Throughput, "bridge"},
		{"1,400 bytes", "", "udp-1400", sample.DatagramsReceived, ""},
		{"over the bridge", "", "udp-1400", sample.Throughput, "bridge"},
		{"requests", "", "rr-1", sample.Transactions, ""},
		{"over the bridge", "", "rr-1", sample.Transactions, "bridge"},
		{"p50", "", "rr-1", sample.LatencyP50, ""},
		{"p99", "", "rr-1", sample.LatencyP99, ""},
	},
}}

// few lists the bridge and the systems that its figures are compared with most often.
var few = []line{
	{name: "bridge", group: "bridge"}, {name: "vrouter, direct", group: "vrouter-direct"},
	{name: "vrouter, VXLAN", group: "vrouter-vxlan"}, {name: "kernel VXLAN", group: "vxlan"},
}

// loss shows the highest rate at which at most 0.1 % of the datagrams are lost. Its second table shows datagrams of mixed sizes.
var loss = []grid{
	{
		corner: "system", lines: packets[0].lines, sorted: true,
		columns: []column{
			{"64 bytes, at most 0.1 % lost", "", "udp-64-loss", sample.DatagramsReceived, ""},
			{"over the bridge", "", "udp-64-loss", sample.Throughput, "bridge"},
		},
	},
	{
		name: "imix", corner: "system", lines: few, sorted: true,
		columns: []column{
			{"IMIX, as fast as possible", "", "udp-imix", sample.DatagramsReceived, ""},
			{"over the bridge", "", "udp-imix", sample.Throughput, "bridge"},
		},
	},
}

// pace shows the latency of requests at 10, 50 and 90 % of the highest request rate.
var pace = []grid{{
	corner: "system", lines: few,
	columns: []column{
		{"p50 at 10 %", "", "pace-10", sample.LatencyP50, ""},
		{"p50 at 50 %", "", "pace-50", sample.LatencyP50, ""},
		{"p50 at 90 %", "", "pace-90", sample.LatencyP50, ""},
		{"p99 at 10 %", "", "pace-10", sample.LatencyP99, ""},
		{"p99 at 50 %", "", "pace-50", sample.LatencyP99, ""},
		{"p99 at 90 %", "", "pace-90", sample.LatencyP99, ""},
		{"p99 at 50 %, over the bridge", "", "pace-50", sample.LatencyP99, "bridge"},
		{"p99 at 90 %, over the bridge", "", "pace-90", sample.LatencyP99, "bridge"},
	},
}}

var loadedLatency = []grid{{
	corner: "system",
	lines: []line{
		{name: "bridge", group: "bridge"}, {name: "vrouter, direct", group: "vrouter-direct"}, {name: "vrouter, VXLAN", group: "vrouter-vxlan"},
		{name: "kernel VXLAN", group: "vxlan"}, {name: "Weave", group: "weave"},
		{name: "bridge, link of 100 Mbit/s", group: "bridge*", variant: "-100M"},
		{name: "vrouter, VXLAN, link of 100 Mbit/s", group: "vrouter-vxlan*", variant: "-100M"},
	},
	columns: []column{
		{"p50, alone", "", "idle", sample.LatencyP50, ""},
		{"over the bridge", "", "idle", sample.LatencyP50, "bridge*"},
		{"p50, beside 8 streams", "", "up-8", sample.LatencyP50, ""},
		{"over the bridge", "", "up-8", sample.LatencyP50, "bridge*"},
		{"p99, alone", "", "idle", sample.LatencyP99, ""},
		{"p99, beside 8 streams", "", "up-8", sample.LatencyP99, ""},
		{"p99.9, alone", "", "idle", sample.LatencyP999, ""},
		{"p99.9, beside 8 streams", "", "up-8", sample.LatencyP999, ""},
		{"streams", "", "up-8", sample.LoadThroughput, ""},
	},
}}

var sweep = []grid{{
	corner: "traffic", byKind: true,
	columns: []column{
		{"bridge", "bridge", "", sample.Throughput, ""},
		{"raw over the bridge", "raw", "", sample.Throughput, "bridge"},
		{"vrouter, direct", "vrouter-direct", "", sample.Throughput, "bridge"},
		{"vrouter, VXLAN", "vrouter-vxlan", "", sample.Throughput, "bridge"},
		{"kernel VXLAN", "vxlan", "", sample.Throughput, "bridge"},
	},
	lines: []line{
		{name: "1 TCP stream", workload: "streams-1"}, {name: "2 streams", workload: "streams-2"}, {name: "4 streams", workload: "streams-4"},
		{name: "8 streams", workload: "streams-8"}, {name: "16 streams", workload: "streams-16"}, {name: "32 streams", workload: "streams-32"},
		{name: "64 streams", workload: "streams-64"},
		{name: "writes of 64 bytes", workload: "write-64"}, {name: "writes of 1 KiB", workload: "write-1k"},
		{name: "writes of 8 KiB", workload: "write-8k"}, {name: "writes of 64 KiB", workload: "write-64k"},
		{name: "UDP, 64 bytes", workload: "udp-64"}, {name: "UDP, 256 bytes", workload: "udp-256"},
		{name: "UDP, 1,024 bytes", workload: "udp-1024"}, {name: "UDP, 1,400 bytes", workload: "udp-1400"},
		{name: "TCP_RR, 1 connection", workload: "rr-1"}, {name: "TCP_RR, 4 connections", workload: "rr-4"},
		{name: "TCP_RR, 16 connections", workload: "rr-16"}, {name: "TCP_RR, 64 connections", workload: "rr-64"},
		{name: "TCP_RR, 256 connections", workload: "rr-256"}, {name: "TCP_RR, 1,000 connections", workload: "rr-1000"},
		{name: "NTttcp, 1 thread", workload: "threads-1"}, {name: "NTttcp, 4 threads", workload: "threads-4"},
		{name: "NTttcp, 8 threads", workload: "threads-8"}, {name: "NTttcp, 12 threads", workload: "threads-12"}, {name: "NTttcp, 16 threads", workload: "threads-16"},
		{name: "NTttcp, 24 threads", workload: "threads-24"},
	},
}}

// churn shows the datagrams that are lost while the network changes, and the longest time without a datagram.
var churn = []grid{changes("", "datagrams lost", sample.LostDatagrams), changes("gap", "longest gap", sample.Interruption)}

// changes returns a table of one metric, with a column for each kind of change.
func changes(name, corner string, m sample.Metric) grid {
	return grid{
		name: name, corner: corner,
		columns: []column{
			{"no change", "", "still", m, ""}, {"containers", "", "ports", m, ""}, {"nodes", "", "nodes", m, ""}, {"routes", "", "routes", m, ""}, {"rules", "", "policies", m, ""},
		},
		lines: []line{
			{name: "bridge", group: "bridge"}, {name: "Docker's bridge", group: "docker-bridge"},
			{name: "vrouter, direct", group: "vrouter-direct"}, {name: "vrouter, direct, with a policy", group: "vrouter-direct-policy"}, {name: "vrouter, VXLAN", group: "vrouter-vxlan"},
			{name: "kernel VXLAN", group: "vxlan"}, {name: "flannel, VXLAN", group: "flannel-vxlan"},
		},
	}
}

var gateway = []grid{{
	corner: "way out",
	columns: []column{
		{"stream", "", "stream", sample.Throughput, "raw"},
		{"request/response", "", "rr", sample.Transactions, "raw"},
		{"connections", "", "crr", sample.Transactions, "raw"},
		{"sender CPU", "", "stream", sample.SenderCPUPerByte, ""},
	},
	lines: slices.Concat(
		[]line{
			{name: "raw", group: "raw"},
			{name: "bridge, with the kernel's NAT", group: "bridge-nat"},
			{name: "vrouter's NAT", group: "vrouter-nat"},
			{name: "vrouter without NAT", group: "vrouter-routed"},
			{name: "vrouter, VXLAN to FRR", group: "vrouter-evpn"},
		},
		targets("vrouter's NAT", least(0.97), least(0.97), least(0.97)),
		[]line{
			{name: "over the kernel's NAT", group: "vrouter-nat", over: "bridge-nat"},
			{name: "over the same way without NAT", group: "vrouter-nat", over: "vrouter-routed"},
		},
	),
}}
