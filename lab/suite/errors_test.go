package suite

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

// with returns the small suite with more lines behind it.
func with(lines string) string { return small + lines + "\n" }

// swap returns the small suite with one piece replaced.
func swap(old, new string) string {
	if !strings.Contains(small, old) {
		panic("not in the small suite: " + old)
	}
	return strings.Replace(small, old, new, 1)
}

func TestEveryMistakeIsReportedWithPlaceProblemAndRemedy(t *testing.T) {
	workload := func(keys string) string { return swap("stream: {kind: tcp_stream}", "stream: {"+keys+"}") }
	fabric := func(keys string) string { return with("fabrics: {f: {" + keys + "}}") }
	for _, c := range []struct {
		text            string
		line, column    int
		problem, remedy string
	}{
		// keys
		{with("titel: x"), 8, 1, `unknown key "titel" in a suite`, `did you mean "title"?`},
		{with("mtu: 1500"), 8, 1, `unknown key "mtu" in a suite`, `"mtu" belongs in a fabric`},
		{workload("kind: tcp_stream, bufer: 1"), 3, 30, `unknown key "bufer" in a workload`, `did you mean "buffer"?`},
		{workload("kind: tcp_stream, buffer: 1, buffer: 2"), 3, 41, `"buffer" is set twice, first in line 3`, "remove one"},
		{workload("kind: tcp_stream, threads: 1, streams: 2"), 3, 42, `"streams" is set twice`, "remove one"},
		{with("title: a\ntitle: b"), 9, 1, `"title" is set twice, first in line 8`, "remove one"},
		{swap("  rr:", "  stream:"), 4, 3, `"stream" is defined twice, first in line 3`, "rename"},
		{workload("buffer: 1k"), 3, 11, "a workload lacks kind", `add a line "kind: …"`},
		{"title: x\n", 1, 1, "a suite lacks suite, workloads, scenarios", `add a line "suite: …"`},
		{with("? a"), 8, 1, `keys in the form "? key"`, "key: value"},
		{with("{a: b}: c"), 8, 7, "the YAML cannot be read: found an invalid key", "check the indentation"},
		// shapes
		{with("title:"), 8, 8, "the value is missing; expected text", ""},
		{with("title: [a]"), 8, 8, "a list instead of text", ""},
		{with("title: {a: b}"), 8, 8, "a mapping instead of text", ""},
		{with(`title: ""`), 8, 9, "the text is empty", ""},
		{with("title: " + strings.Repeat("x", 201)), 8, 8, "the text has 201 characters, 200 are allowed", "shorten"},
		{with("timing: 15s"), 8, 9, "a single value instead of timing", "key: value"},
		{with("fabrics: []"), 8, 10, "a list instead of names with a fabric each", "key: value"},
		{with("fabrics: {}"), 8, 10, "there are 0 entries", "write 1 to 100"},
		{with("comparisons: {a: b}"), 8, 14, "a mapping instead of a list", `start each entry with "- "`},
		{with("comparisons: []"), 8, 14, "the list has 0 entries", "1 to 100"},
		{swap("[stream, rr]", "[]"), 7, 15, "the list has 0 entries", "1 to 100"},
		{with("notes: [a, [b]]"), 8, 12, "a list instead of text", ""},
		// names and words
		{swap("suite: small", "suite: a b"), 1, 8, `"a b" cannot be a name`, "letters, digits"},
		{swap("suite: small", "suite: "+strings.Repeat("x", 41)), 1, 8, "cannot be a name", "up to 40"},
		{swap("[raw, bridge]", "[raw, -]"), 6, 19, `"-" cannot be a name`, ""},
		{workload("kind: udp"), 3, 18, `"udp" is not known here`, `did you mean "udp_stream"? allowed: tcp_stream`},
		{workload("kind: tcp_stream, parallel: 4"), 3, 30, `unknown key "parallel" in a workload`, `did you mean "streams"?`},
		{workload("kind: udp_stream, rate: 10"), 3, 36, "rate 10 bit/s is less than one packet of 1400 B per second", `write the unit, such as "10M"`},
		{workload("kind: tcp_rr, change_every: 1s"), 3, 40, "changes nothing", "set change: ports"},
		{workload("kind: tcp_rr, of_capacity: 50%, pace: 100"), 3, 50, "has of_capacity and pace", "remove one of the two"},
		{workload("kind: tcp_stream, pace: 100"), 3, 36, "pace has no meaning for tcp_stream", "tcp_rr"},
		{workload("kind: udp_stream, rate: 10M, loss: 1%"), 3, 36, "has a rate and a loss, which finds the rate", "remove rate or loss"},
		{workload("kind: udp_stream, buffer: 8, loss: 1%"), 3, 38, "no room for the numbers by which losses are counted", "write at least 16"},
		{workload("kind: tcp_stream, buffer: 1k, rate: 8k"), 3, 48, "rate 8 kbit/s is less than one packet of 1 KiB per second", "write the unit"},
		{swap("suite: small", "name: small"), 1, 1, `unknown key "name" in a suite`, `did you mean "suite"?`},
		{workload("kind: tcp_strem"), 3, 18, `"tcp_strem" is not known here`, `did you mean "tcp_stream"? allowed: tcp_stream, tcp_rr, tcp_crr, udp_stream, udp_rr`},
		{fabric("kind: existing, rate: 1G"), 8, 37, "rate has no meaning for an existing network", "remove rate, or set kind: wire"},
		{fabric("offload: tso"), 8, 24, `"tso" is not known here`, "allowed: none, tcp, tunnel"},
		{workload("kind: tcp_stream, no_delay: yes"), 3, 40, `"yes" is neither true nor false`, "write true or false"},
		{workload("kind: tcp_stream, ip_version: 5"), 3, 42, `"5" is not known here`, "allowed: 4, 6"},
		{workload("kind: tcp_stream, dscp: ef"), 3, 36, `"ef" is not a DSCP`, "CS0 to CS7, AF11 to AF43, EF or LE"},
		{workload("kind: tcp_stream, dscp: 64"), 3, 36, `"64" is not a DSCP`, "a number from 0 to 63"},
		{workload("kind: tcp_stream, dscp: -1"), 3, 36, `"-1" is not a DSCP`, ""},
		{workload("kind: tcp_stream, dscp: AF44"), 3, 36, `"AF44" is not a DSCP`, ""},
		{workload("kind: tcp_stream, dscp:"), 3, 35, "the value is missing; expected a DSCP, such as EF or 46", ""},
		// numbers and units
		{with("trials: 0"), 8, 9, `"0" is not a whole number from 1 to 1000`, "without unit"},
		{with("trials: 1.5"), 8, 9, `"1.5" is not a whole number`, ""},
		{with("trials: -1"), 8, 9, `"-1" is not a whole number`, ""},
		{with("trials: 99999999999999999999"), 8, 9, "is not a whole number", ""},
		{with("trials: .nan"), 8, 9, "is not a whole number", ""},
		{with("trials: many"), 8, 9, "is not a whole number", ""},
		{with("nodes: 0"), 8, 8, "is not a whole number from 1 to 64", ""},
		{with("timing: {duration: 15}"), 8, 22, `duration "15": has no unit`, `write "15s" for seconds`},
		{with("timing: {duration: 10Gbit}"), 8, 22, `"Gbit" is not a unit of time`, `"500ms"`},
		{with("timing: {duration: -1s}"), 8, 20, "is negative", ""},
		{with("timing: {duration: 0s}"), 8, 20, "0s is out of bounds", "write 100ms to 24h0m0s"},
		{with("timing: {warmup: 11m}"), 8, 18, "11m is out of bounds", "write 0s to 10m0s"},
		{workload("kind: tcp_stream, buffer: 128kB"), 3, 41, "may mean powers of 1000 or of 1024", `write "128k"`},
		{workload(`kind: tcp_stream, buffer: "128kB"`), 3, 42, "may mean powers of 1000", `write "128k"`},
		{workload("kind: tcp_stream, buffer: 15s"), 3, 40, `"s" is not a unit of size`, `"128k"`},
		{workload("kind: tcp_stream, buffer: 0"), 3, 38, "0 is out of bounds", "write 1 B to 1 GiB"},
		{workload("kind: tcp_stream, buffer: 2G"), 3, 38, "2G is out of bounds", ""},
		{workload("kind: tcp_stream, buffer: 0x10"), 3, 39, `"x10" is not a unit of size`, ""},
		{workload("kind: tcp_stream, buffer: 1e6"), 3, 39, `"e6" is not a unit of size`, ""},
		{workload("kind: tcp_stream, rate: 4GB/s"), 3, 37, "GB/s means bytes", `write "32Gbit"`},
		{workload("kind: tcp_stream, rate: 128KiB"), 3, 39, `"KiB" is not a unit of rate`, ""},
		{fabric("mtu: 1279"), 8, 20, `"1279" is not a whole number from 1280 to 65535`, "within these bounds"},
		{fabric("mtu: 65536"), 8, 20, "is not a whole number from 1280 to 65535", ""},
		{fabric("mtu: 9k"), 8, 20, "is not a whole number", "without unit"},
		// contradictions
		{workload("kind: tcp_stream, request: 1"), 3, 39, "request has no meaning for tcp_stream", "tcp_rr, tcp_crr, udp_rr"},
		{workload("kind: udp_stream, sendfile: true"), 3, 40, "sendfile has no meaning for udp_stream", "tcp_stream"},
		{workload("kind: udp_stream, packet_per_send: true"), 3, 47, "packet_per_send has no meaning for udp_stream", "tcp_stream"},
		{workload("kind: tcp_stream, buffer: 1390, sendfile: true, packet_per_send: true"), 3, 54, "cannot send files and end a packet with each send", "remove sendfile"},
		{workload("kind: tcp_stream, buffer: 1449, packet_per_send: true"), 3, 38, `a buffer of 1449 bytes does not fit a packet of fabric "default"`, "set buffer to 1448 or less"},
		{workload("kind: tcp_stream, packet_per_send: true"), 6, 5, "a buffer of 131072 bytes does not fit a packet", "set buffer to 1448 or less"},
		{workload("kind: tcp_stream, buffer: 1448, packet_per_send: true, ip_version: 6"), 3, 38, "a buffer of 1448 bytes does not fit a packet", "set buffer to 1428 or less"},
		{workload("kind: udp_rr, no_delay: true"), 3, 36, "no_delay has no meaning for udp_rr", ""},
		{workload("kind: tcp_rr, direction: both"), 3, 37, "direction has no meaning for workload", "set load"},
		{workload("kind: tcp_crr, buffer: 1k"), 3, 35, "buffer has no meaning for tcp_crr", ""},
		{workload("kind: tcp_rr, rate: 1G"), 3, 32, "rate has no meaning for tcp_rr", ""},
		{workload("kind: udp_stream, buffer: 65508"), 3, 38, "a UDP datagram cannot carry a buffer of 65508 bytes", "at most 65507"},
		{workload("kind: udp_rr, response: 64k"), 3, 36, "cannot carry a response of 65536 bytes", "at most 65507"},
		{fabric("kind: veth, links: 2"), 8, 34, "2 links on a veth pair, which is one link", "set kind: wire"},
		{fabric("rate: 7"), 8, 21, "rate 7 bit/s is less than one packet of 1400 B per second", `write the unit, such as "10M"`},
		{fabric("delay: 200"), 8, 25, `duration "200": has no unit`, `"200ms"`},
		{fabric("delay: 2s"), 8, 22, "2s is out of bounds", "write 0s to 500ms"},
		{fabric("kind: veth, delay: 1ms"), 8, 34, "delay has no meaning for a veth pair", "set kind: wire"},
		{fabric("cpus: 0"), 8, 21, "is not a whole number from 1 to 64", ""},
		{fabric("cpus: 1, queues: 2"), 8, 32, "2 receive queues on nodes of 1 CPU", "or remove cpus"},
		{fabric("cpu_share: 0.25"), 8, 30, "has no percent sign", `"25%"`},
		{fabric("cpu_share: 0.5%"), 8, 26, "0.5% is out of bounds", "write 1 % to 100 %"},
		{fabric("rx_checksum: inner"), 8, 28, `"inner" is not known here`, "allowed: all, outer, none"},
		{fabric("kind: veth, rx_checksum: outer"), 8, 40, "rx_checksum has no meaning for a veth pair", "set kind: wire"},
		{fabric("kind: existing, rx_checksum: none"), 8, 44, "rx_checksum has no meaning for an existing network", "remove rx_checksum"},
		{fabric("pinned: no"), 8, 23, `"no" is neither true nor false`, "write true or false"},
		{fabric("kind: veth, pinned: false"), 8, 35, "pinned: false has no meaning for a veth pair", "set kind: wire"},
		{fabric("kind: existing, pinned: false"), 8, 39, "pinned has no meaning for an existing network", "remove pinned"},
		{fabric("steering: hash"), 8, 25, `"hash" is not known here`, "allowed: flow, mac"},
		{fabric("steering: mac"), 8, 25, "a queue for each MAC address needs two queues or more", "set queues: 2 or more"},
		{fabric("kind: veth, queue_cpus: moving"), 8, 39, "have no meaning for a veth pair", "set kind: wire"},
		{fabric("cut: 1s"), 8, 20, "only a team goes on when a link is cut", "set team: bond"},
		{with("endpoints: {host: {host_vnic: true}}"), 8, 31, "needs other pairs beside it", "set pairs: 2 or more"},
		{fabric("kind: veth, team: bond"), 8, 33, "a veth pair is one link", "set kind: wire and links: 2"},
		{fabric("kind: veth") + "nodes: 3\n", 8, 21, "a veth pair connects two nodes, but the suite has 3", "set kind: wire"},
		{with("nodes: 1"), 6, 5, "the scenario needs two nodes, the suite has 1", `"placement: colocated"`},
		{strings.Replace(with("nodes: 1"), "system: [raw, bridge]", "system: raw\n    placement: gateway", 1), 7, 16, "the scenario needs two nodes, the suite has 1", `"placement: colocated"`},
		// references
		{swap("workload: [stream, rr]", "workload: [stream, r]"), 7, 24, `"r" is not defined under workloads`, `did you mean "rr"? workloads: stream, rr`},
		{swap("workload: [stream, rr]", "workload: [rr, rr]"), 7, 20, `workload "rr" is listed twice`, ""},
		{swap("workload: [stream, rr]", "tool: x"), 6, 5, "the scenario names no workload, and the suite has 2", "stream, rr"},
		{swap("workload: [stream, rr]", "workload: rr\n    fabric: fast"), 8, 13, `"fast" is not defined under fabrics`, "fabrics: default"},
		{with("fabrics: {a: {}, b: {}}"), 6, 5, "the scenario names no fabric, and the suite has 2", "a, b"},
		{swap("[raw, bridge]", "[raw, raw]"), 6, 19, `system "raw" is listed twice`, ""},
		// ids
		{swap("- system", "- id: x\n    system"), 6, 9, `two scenarios have the id "x", the first from line 6`, "{system}, {workload}"},
		{swap("- system", "- id: '{systm}'\n    system"), 6, 9, "{systm} is not a part of a scenario", `did you mean "system"?`},
		{swap("- system", "- id: '{system'\n    system"), 6, 9, `"{" without "}"`, "{system}"},
		{swap("- system", "- id: 'system}'\n    system"), 6, 9, `"}" without "{"`, "{system}"},
		{swap("- system", "- id: a/b/c\n    system"), 6, 9, `"a/b/c" cannot be an id`, `at most one "/"`},
		{swap("- system", "- id: 'a b/c'\n    system"), 6, 10, `"a b/c" cannot be an id`, `letters, digits, ".", "_" and "-"`},
		{swap("- system", "- id: '-{system}/{workload}'\n    system"), 6, 9, `"-raw/stream" cannot be an id`, ""},
		{with("  - {system: bridge, workload: rr}"), 8, 5, `two scenarios have the id "bridge/rr", the first from line 6`, `such as "bridge/rr-2"`},
		{with("  - {id: raw, system: bridge, workload: rr}"), 8, 5, `"raw" is a scenario and also the group of "raw/stream"`, `"raw/stream"`},
		// comparisons
		{with("comparisons: [{baseline: raw, subject: brdge}]"), 8, 40, `there is no scenario or group "brdge"`, `did you mean "bridge"?`},
		{with("comparisons: [{baseline: raw/x, subject: bridge}]"), 8, 26, `there is no scenario or group "raw/x"`, "raw/stream"},
		{with("comparisons: [{baseline: raw, subject: raw}]"), 8, 40, `"raw" is compared with itself`, ""},
		{with("comparisons: [{baseline: raw/stream, subjects: [bridge/stream, bridge/rr]}]"), 8, 64, `"bridge/rr" (TCP request/response 1 B) cannot be compared with "raw/stream" (TCP stream of 128 KiB)`, "compare streams with streams, and request/response with request/response"},
		{with("comparisons: [{baseline: raw, subject: bridge/rr}]"), 8, 40, "are not both scenarios or both groups", ""},
		{with("comparisons: [{baseline: raw, subjects: [bridge, bridge/rr, bridge]}]"), 8, 50, "are not both", ""},
		{with("comparisons: [{baseline: raw, subject: bridge}, {baseline: raw/rr, subject: bridge/rr}]"), 8, 77, `"bridge/rr" is compared with "raw/rr" twice`, "remove"},
		{with("comparisons: [{baseline: raw}]"), 8, 15, "a comparison lacks subjects", ""},
		{with("  - {id: z/other, system: x, workload: rr}\ncomparisons: [{baseline: raw, subject: z}]"), 9, 40, `groups "raw" and "z" have no scenario with the same part`, "scenarios: raw/stream, raw/rr, z/other"},
		// precision
		{with("precision: 2"), 8, 13, `percentage "2": has no percent sign`, `write "2%", or "200%" if a fraction was meant`},
		{with("precision: 0.02"), 8, 16, "has no percent sign", `"2%"`},
		{with("precision: 0.05%"), 8, 12, "0.05% is out of bounds", "write 0.1 % to 50 %"},
		{with("precision: 51 %"), 8, 12, "51 % is out of bounds", "write 0.1 % to 50 %"},
		{with("precision: -2%"), 8, 12, "is negative", ""},
		{with("precision: tight"), 8, 12, "does not start with a number", `"0.5 %"`},
		{with("precision: 2 percent"), 8, 14, `"percent" is not a percent sign`, `"2%"`},
		{with("precision: [2%]"), 8, 12, "a list instead of a quantity", ""},
		{with("max_trials: 20"), 8, 13, "max_trials requires precision", `add a line such as "precision: 2%"`},
		{with("max_time: 5m"), 8, 11, "max_time requires precision", `add a line such as "precision: 2%"`},
		{with("precision: 2%\nmax_trials: 5"), 9, 13, "max_trials is 5, below the minimum of 6 trials", "write 6 or more"},
		{with("precision: 2%\nmax_trials: 1001"), 9, 13, "is not a whole number from 1 to 1000", ""},
		{with("precision: 2%\ntrials: 50\nmax_trials: 40"), 10, 13, "max_trials is 40, below the minimum of 50 trials", "write 50 or more"},
		{with("precision: 2%\nmax_time: 0"), 9, 11, "0 is out of bounds", "write 1s to 168h0m0s"},
		// ladders
		{with("ladders: [{title: x}]"), 8, 11, "a ladder lacks steps", ""},
		{with("ladders: [{steps: raw}]"), 8, 19, "a single value instead of a list", ""},
		{with("ladders: [{steps: [raw]}]"), 8, 19, "the list has 1 entry", "2 to 12"},
		{with("ladders: [{steps: [a, b, c, d, e, f, g, h, i, j, k, l, m]}]"), 8, 19, "the list has 13 entries", "1 to 12"},
		{with("ladders: [{steps: [raw, brige]}]"), 8, 25, `there is no scenario or group "brige"`, `did you mean "bridge"?`},
		{with("ladders: [{steps: [raw, bridge, raw]}]"), 8, 33, `"raw" is a step of this ladder twice`, "remove"},
		{with("ladders: [{steps: [raw, bridge/rr]}]"), 8, 25, `steps "raw" and "bridge/rr" are not both scenarios or both groups`, ""},
		{with("ladders: [{steps: [raw, bridge], names: [a, b, c]}]"), 8, 41, "there are 3 names for 2 steps", "name every step"},
		{with("ladders: [{steps: [raw/rr, bridge/stream]}]"), 8, 28, `"bridge/stream" has other traffic (TCP stream of 128 KiB) than "raw/rr" (TCP request/response 1 B)`, "each step of a ladder changes one thing"},
		{with("  - {system: vxlan, workload: stream}\nladders: [{steps: [raw, vxlan]}]"), 9, 25, `group "vxlan" has no "rr", which another step of this ladder has`, `add the scenario "vxlan/rr", or make ladders of scenarios that there are: vxlan/stream`},
		{with("  - {system: vxlan, workload: stream}\nladders: [{steps: [vxlan, raw]}]"), 9, 20, `group "vxlan" has no "rr"`, ""},
		{with("  - {id: z/rr, system: x, workload: stream}\n  - {id: z/stream, system: x, workload: stream}\nladders: [{steps: [raw, z]}]"), 10, 25, `"z/rr" has other traffic`, "changes one thing"},
		// hypotheses
		{with("hypotheses: [{baseline: raw}]"), 8, 14, "a hypothesis lacks claim, subjects, ratio or difference or value", ""},
		{with("hypotheses: [{claim: c, baseline: rw, subject: bridge, ratio: 1 ± 2 %}]"), 8, 35, `there is no scenario or group "rw"`, `did you mean "raw"?`},
		{with("hypotheses: [{claim: c, baseline: raw, subject: raw, ratio: 1 ± 2 %}]"), 8, 49, `"raw" is compared with itself`, ""},
		{with("hypotheses: [{claim: c, baseline: raw, subject: bridge/rr, ratio: 1 ± 2 %}]"), 8, 49, "are not both scenarios or both groups", ""},
		{with("hypotheses: [{claim: c, baseline: raw, subjects: [bridge, bridge], ratio: 1 ± 2 %}]"), 8, 59, `"bridge" is a subject of this hypothesis twice`, "remove"},
		{with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: 1 ± 2 %, metric: speed}]"), 8, 81, `"speed" is not a metric`, ""},
		{with("hypotheses: [{claim: c, baseline: raw/rr, subject: bridge/rr, ratio: 1 ± 2 %, metric: throughput_bps}]"), 8, 87, `throughput_bps is not measured in both "raw/rr" (tcp_rr) and "bridge/rr" (tcp_rr)`, "request/response has transactions_per_s"},
		{with("hypotheses: [{claim: c, baseline: raw/stream, subject: bridge/rr, ratio: 1 ± 2 %}]"), 8, 56, `throughput_bps is not measured in both "raw/stream" (tcp_stream) and "bridge/rr" (tcp_rr)`, ""},
		{with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: 1 ± 2 %, metric: loss_ratio}]"), 8, 81, "loss_ratio is not measured in both", ""},
		{with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: 2}]"), 8, 64, `"2" does not say where a ratio lies`, `"2 ± 10 %"`},
		{with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: 1 ± 0}]"), 8, 64, "the margin is 0", ""},
		{with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: 1 ± 100 %}]"), 8, 64, "reaches down to a ratio of 0", `">= 0.95" or "<= 1.1"`},
		{with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: '>= 0'}]"), 8, 65, "a ratio of 0 is out of bounds", ""},
		{with("hypotheses:\n  - claim: c\n    ratio: >= 0.95"), 10, 12, "the YAML cannot be read", `put the value in quotes, ">= 0.95"`},
		// published
		{with("published: [{scenario: raw, metric: throughput_bps, value: 1 Gbit/s, source: x}]"), 8, 24, `there is no scenario "raw"`, "scenarios: raw/stream"},
		{with("published: [{scenario: raw/rr, metric: troughput_bps, value: 1 Gbit/s, source: x}]"), 8, 40, `"troughput_bps" is not a metric`, `did you mean "throughput_bps"?`},
		{with("published: [{scenario: raw/rr, metric: throughput_bps, value: 1 GB/s, source: x}]"), 8, 63, `"GB/s" is not a unit of this metric`, "7.5 Gbit/s"},
		{with("published: [{scenario: raw/rr, metric: throughput_bps, value: 1 Gbit/s}]"), 8, 13, "a published figure lacks source", "or make it a cell of a table"},
		{with("published: [{scenario: raw/rr, value: 1 Gbit/s, source: x}]"), 8, 13, "a published figure lacks scenario or metric", "if its note says why"},
		{with("published: [{row: a, scenario: raw/rr, metric: throughput_bps, value: 1 Gbit/s, source: x}]"), 8, 13, "a row or column without a table", "add the key table"},
		{with("published: [{table: t, row: a, column: b, scenario: raw/rr, metric: throughput_bps, value: 1 Gbit/s}]"), 8, 21, `"t" is not defined under tables`, "there are no tables"},
		{with("tables: {t: {title: x, source: y}}\npublished: [{table: t, row: a, scenario: raw/rr, metric: throughput_bps, value: 1 Gbit/s}]"), 9, 13, "a cell of a table lacks row or column", "name both"},
		{with("tables: {t: {title: x, source: y}}\npublished: [{table: t, row: a, column: b, value: 1, note: n}, {table: t, row: a, column: b, value: 2, note: n}]"), 9, 63, `table "t" has two cells in row "a" and column "b"`, "remove or rename"},
		{with("tables: {t: {title: x, source: y}}"), 8, 10, `table "t" has no figures`, "under published, or remove it"},
		{with("tables: {t: {title: x}}"), 8, 13, "a published table lacks source", ""},
		{with("published: [{scenario: raw/rr, baseline: raw/rr, metric: throughput_bps, value: -5 %, source: x}]"), 8, 42, `"raw/rr" is both the scenario and the baseline`, "or remove baseline"},
		{with("published: [{scenario: raw/rr, baseline: bridge/rr, metric: transactions_per_s, value: 5 %, source: x}]"), 8, 88, `"5 %" is not a change`, `such as "-27 %"`},
		{with("published: [{scenario: raw/rr, baseline: bridge/rr, metric: transactions_per_s, value: -105 %, source: x}]"), 8, 88, `"-105 %" is a decrease of more than 100 %`, "-100 %"},

		// the short form
		{with("short: {scenarios: raw}"), 8, 8, "a short form lacks trials", ""},
		{with("short: {trials: 0}"), 8, 17, `"0" is not a whole number from 1 to 1000`, ""},
		{with("short: {trials: 6, scenarios: [raw, brigde]}"), 8, 37, `there is no scenario "brigde"`, `did you mean "bridge"?`},
		{with("short: {trials: 6, scenarios: ['[x']}"), 8, 32, `the pattern "[x" cannot be read`, "a pattern with *, ? and [a-z]"},
		{with("short: {trials: 6, timing: {duration: 15}}"), 8, 41, `duration "15": has no unit`, `write "15s"`},
	} {
		_, err := Parse("f.yaml", []byte(c.text))
		var es Errors
		if !errors.As(err, &es) {
			t.Errorf("accepted, or a %T, where %q was expected:\n%s", err, c.problem, c.text)
			continue
		}
		found := false
		for _, e := range es {
			if e.Line == c.line && e.Column == c.column && strings.Contains(e.Problem, c.problem) && strings.Contains(e.Remedy, c.remedy) {
				found = true
				if want := strings.Split(c.text, "\n")[c.line-1]; e.Text != want || e.File != "f.yaml" {
					t.Errorf("file %q, text %q; want %q", e.File, e.Text, want)
				}
			}
		}
		if strings.Contains(err.Error(), `""`) && !strings.Contains(c.text, `""`) {
			t.Errorf("an error is about an empty text that is not in the file:\n%v", err)
		}
		if !found {
			t.Errorf("no error at %d:%d says %q and %q; there is:\n%v", c.line, c.column, c.problem, c.remedy, err)
		}
	}
}

func TestAllMistakesOfAFileAreReportedAtOnceInTheOrderOfItsLines(t *testing.T) {
	_, err := Parse("f.yaml", []byte(`suite: a b
trials: 0
fabrics: {f: {mtu: 1, kind: veth, links: 2}}
workloads:
  st: {kind: tcp_stream, request: 1}
scenarios:
  - {system: raw}
comparisons: [{baseline: nope, subject: raw/st}]
`))
	var es Errors
	if !errors.As(err, &es) {
		t.Fatalf("got %T %v", err, err)
	}
	if got, want := places(err), "1:8 2:9 3:20 3:42 5:35 8:26"; got != want {
		t.Errorf("errors at %s, want %s:\n%v", got, want, err)
	}
	var one *Error
	if !errors.As(err, &one) || one != es[0] {
		t.Errorf("errors.As finds %v, want the first", one)
	}
}

func TestAnErrorPrintsTheLineWithACaretUnderTheColumn(t *testing.T) {
	for _, c := range []struct {
		e    Error
		want string
	}{
		{Error{"a.yaml", 3, 5, "  x: y", "bad", "do better"}, "a.yaml:3:5: bad\n     3 |   x: y\n       |     ^\n  do better"},
		{Error{"a.yaml", 1, 7, "é\tü: \x1b[2J", "bad", ""}, "a.yaml:1:7: bad\n     1 | é ü: �[2J\n       |       ^"},
		{Error{"a.yaml", 0, 0, "", "empty", "write"}, "a.yaml: empty\n  write"},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
		}
	}
	long := Error{"a.yaml", 1, 5001, strings.Repeat("a", 5000) + "X" + strings.Repeat("b", 5000), "bad", "fix"}
	lines := strings.Split(long.Error(), "\n")
	caret := len([]rune(lines[2])) - 1
	if len([]rune(lines[1])) > 130 || []rune(lines[1])[caret] != 'X' {
		t.Errorf("a long line is shown as\n%s", long.Error())
	}
}

func TestFilesWithWindowsLineEndsAreReadWithTheirLineNumbers(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(with("titel: x"), "\n", "\r\n")
	_, err := Parse("f.yaml", []byte(text))
	if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:8:1: unknown key \"titel\"") {
		t.Errorf("got %v", err)
	}
	if _, err := Parse("f.yaml", []byte("\ufeff"+strings.ReplaceAll(small, "\n", "\r\n"))); err != nil {
		t.Errorf("a right file with CRLF and a byte order mark: %v", err)
	}
}

func TestASuiteThatExpandsWithoutEndIsRefused(t *testing.T) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	many := "[" + strings.Join(names, ", ") + "]"
	text := fmt.Sprintf("suite: s\nworkloads: {st: {kind: tcp_stream}}\nscenarios:\n  - system: %s\n    tool: %s\n", many, many)
	_, err := Parse("f.yaml", []byte(text))
	must.Fail(t, err, "expands into more than 1000 scenarios")
}

func TestTheNearestNameIsSuggestedOnlyWhenItIsNear(t *testing.T) {
	known := []string{"stream", "rr", "title", "kind"}
	for given, want := range map[string]string{
		"strem": "stream", "Stream": "stream", "udp": "", "parallel": "", "tilte": "title", "r": "rr", "knid": "kind", "banana": "", "": "",
		strings.Repeat("x", 1000): "",
	} {
		if got := Nearest(given, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", clip(given), got, want)
		}
	}
}

func TestEveryMetricHasAUnitThatAPublishedFigureCanBeWrittenIn(t *testing.T) {
	for _, i := range sample.Known() {
		if len(scales[i.Unit]) == 0 {
			t.Errorf("metric %s is in %q, which published figures do not know", i.Metric, i.Unit)
		}
	}
}

// places lists the positions of the errors of err.
func places(err error) string {
	var es Errors
	errors.As(err, &es)
	var out []string
	for _, e := range es {
		out = append(out, fmt.Sprintf("%d:%d", e.Line, e.Column))
	}
	return strings.Join(out, " ")
}

func TestAnMTUWithoutRoomForATunnelIsReportedWithTheSmallestOne(t *testing.T) {
	text := func(mtu int) string {
		return fmt.Sprintf("suite: s\nworkloads: {st: {kind: tcp_stream}}\nfabrics: {f: {mtu: %d}}\nscenarios:\n  - {system: [bridge, vxlan, wireguard], workload: st, fabric: f}\n", mtu)
	}
	known := ExpandOptions{Vocabulary: Vocabulary{MTUs: map[string]int{"vxlan": 1330, "wireguard": 1340}}}
	_, err := mustParse(t, text(1339)).Expand(known)
	must.Fail(t, err, "an MTU of 1339 is too small for the headers of wireguard: IPv6 needs 1280 bytes inside them")
	must.Fail(t, err, "set mtu to 1340 or more, or remove wireguard from the scenario")
	must.Equal(t, "3:20", places(err))
	must.Get(mustParse(t, text(1340)).Expand(known))(t)
}

func TestMistakesAreReportedTogetherWithoutTheirConsequences(t *testing.T) {
	known := Vocabulary{Systems: []string{"raw", "bridge", "vxlan", "vrouter-vxlan", "vrouter-direct"}, Tools: []string{"builtin", "iperf3"}}
	const workloads = "suite: s\nworkloads: {st: {kind: tcp_stream}, rr: {kind: tcp_rr}}\n"
	for _, c := range []struct{ what, text, want string }{
		{"every name of a scenario", workloads + "scenarios:\n  - {system: vxlann, workload: strem, tool: iperf, fabric: f, endpoint: e}", "4:14 4:32 4:45 4:60 4:73"},
		{"the names of different scenarios", workloads + "scenarios:\n  - {system: raw, workload: [st, rrr]}\n  - {system: vxlann, workload: rr}", "4:34 5:14"},
		{"the parts of another scenario that do not fit", workloads + "nodes: 1\nscenarios:\n  - {system: vxlann, workload: st}\n  - {system: raw, workload: rr}", "5:5 5:14 6:5"},
		{"a reference to a misspelt scenario is not checked", workloads + "scenarios:\n  - {system: [raw, vxlann], workload: st}\ncomparisons: [{baseline: raw, subject: vxlan}]\nladders: [{steps: [raw, vxlan]}]", "4:20"},
		{"other mistakes of a comparison", workloads + "scenarios:\n  - {system: [raw, vxlann], workload: st}\ncomparisons: [{baseline: raw, subject: raw}]\ntables: {t: {title: x, source: y}}", "4:20 5:40 6:10"},
		{"the metric of a misspelt scenario", workloads + "scenarios:\n  - {system: [raw, bridge], workload: st}\n  - {system: [raw, brdge], workload: rr}\nhypotheses: [{claim: c, metric: transactions_per_s, baseline: raw, subjects: bridge, ratio: '>= 0.5'}]", "5:20"},
		{"a misspelt block", strings.Replace(workloads, "workloads", "wokloads", 1) + "scenarios:\n  - {system: raw, workload: st}\n  - {system: vxlan, workload: [rr, rrr]}", "2:1 5:36"},
		{"mistakes in a misspelt block", "suite: s\nwokloads: {st: {kind: tcp_strem}}\nscenarios: [{system: raw, workload: st}]", "2:1 2:23"},
		{"a misspelt block of fabrics", workloads + "fabriks: {f: {}}\nscenarios: [{system: raw, workload: st, fabric: f}]", "3:1"},
		{"a misspelt block of scenarios", workloads + "scenaros: [{system: raw, workload: st}]\ncomparisons: [{baseline: raw, subject: rw}]", "3:1 4:40"},
		{"a misspelt key of a scenario", workloads + "scenarios: [{system: raw, wokload: st}]", "3:27"},
		{"a misspelt key that is also right", workloads + "title: a\ntilte: [b]\nscenarios: [{system: raw, workload: st}]", "4:1"},
		{"no workloads", "suite: s\nscenarios: [{system: raw, workload: st}]", "1:1"},
		{"workloads that cannot be read", "suite: s\nworkloads: x\nscenarios: [{system: raw, workload: st}]", "2:12"},
		{"fabrics that cannot be read", workloads + "fabrics: x\nscenarios: [{system: raw, workload: st, fabric: f}]", "3:10"},
		{"tables that cannot be read", workloads + "tables: x\nscenarios: [{system: raw, workload: st}]\npublished: [{table: t, row: a, column: b, scenario: raw, metric: throughput_bps, value: 1 Gbit/s}]", "3:9"},
		{"figures that cannot be read", workloads + "tables: {t: {title: x, source: y}}\nscenarios: [{system: raw, workload: st}]\npublished: x", "5:12"},
		{"a kind that cannot be read", "suite: s\nworkloads: {rr: {kind: tcp_r}}\nscenarios: [{system: [raw, bridge], workload: rr}]\nhypotheses: [{claim: c, metric: transactions_per_s, baseline: raw, subjects: bridge, ratio: '>= 0.5'}]", "2:24"},
		{"an MTU that cannot be read", "suite: s\nfabrics: {f: {mtu: 9k}}\nworkloads: {st: {kind: tcp_stream, buffer: 1k, packet_per_send: true}}\nscenarios: [{system: raw, workload: st}]", "2:20"},
		{"a misspelt system with encapsulations", workloads + "scenarios: [{system: vroutr, encap: [vxlan, direct], workload: st}]", "3:22"},
		{"a misspelt encapsulation", workloads + "scenarios: [{system: vrouter, encap: [vxlan, drect], workload: st}]", "3:46"},
		{"a system that cannot be read, with an encapsulation", workloads + "scenarios: [{system: '-', encap: vxlan, workload: st}]", "3:23"},
		{"an encapsulation that cannot be read", workloads + "scenarios: [{system: vrouter, encap: ['-', vxlan], workload: st}]", "3:40"},
		{"tools of the suite and of its short form", workloads + "tool: iperf\nscenarios: [{system: raw, workload: st}]\nshort: {trials: 6, tool: bultin}", "3:7 5:26"},
	} {
		_, err := ParseFor("f.yaml", []byte(c.text), ExpandOptions{Vocabulary: known})
		if got := places(err); got != c.want {
			t.Errorf("%s: errors at %q, want %q:\n%v", c.what, got, c.want, err)
		}
	}
}
