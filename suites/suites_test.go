package suites

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

var vocabulary = suite.Vocabulary{
	Systems: []string{
		"raw", "bridge", "vxlan", "macvlan", "vrouter-direct", "vrouter-direct-policy", "vrouter-direct-big-tcp", "vrouter-translated", "vrouter-mpls-gre", "vrouter-mpls-udp", "vrouter-mpls-udp-checksum", "vrouter-vxlan",
		"flannel-vxlan", "flannel-udp", "flannel-host-gw", "evpn", "docker-overlay", "docker-bridge", "vrouter-docker", "ovs-vxlan", "ovs-gre", "wireguard", "weave",
		"bridge-nat", "vrouter-nat", "vrouter-routed", "vrouter-evpn",
		"host", "cni", "service",
	},
	Tools: []string{"builtin", "builtin-ntttcp", "iperf3", "qperf", "netperf", "sockperf", "ntttcp", "fio"},
}

func plan(t *testing.T, name string) *suite.Plan {
	t.Helper()
	return planned(t, name, suite.ExpandOptions{})
}

func planned(t *testing.T, name string, opts suite.ExpandOptions) *suite.Plan {
	t.Helper()
	data := must.Get(Read(name))(t)
	s := must.Get(suite.Parse(name+".yaml", data))(t)
	opts.Vocabulary = vocabulary
	return must.Get(s.Expand(opts))(t)
}

func TestEverySuiteHasTheNameOfItsFileAndADescription(t *testing.T) {
	want := []string{"aa", "agreement", "churn", "cloud-instances", "contrail-windows", "converged", "gateway", "k8s-cni", "loaded-latency", "opencontrail", "overlay-traffic", "overlay", "packets", "parity", "quick-overlay", "quick", "steadiness", "sweep", "systems", "tour"}
	if diff := cmp.Diff(want, Names()); diff != "" {
		t.Fatalf("names (-want +got):\n%s", diff)
	}
	for _, name := range Names() {
		p := plan(t, name)
		if p.Suite != name || p.Title == name || p.Description == "" {
			t.Errorf("%s.yaml: suite %q, title %q, description %q", name, p.Suite, p.Title, p.Description)
		}
	}
}

func TestSuitesExpandIntoTheirScenarios(t *testing.T) {
	for name, want := range map[string]struct {
		ids    []string
		pairs  []string
		trials int
	}{
		"quick": {
			ids: []string{
				"raw/stream", "raw/rr", "bridge/stream", "bridge/rr",
				"bridge-colocated/stream", "bridge-colocated/rr", "vxlan/stream", "vxlan/rr",
			},
			pairs: []string{
				"bridge/stream over raw/stream", "bridge/rr over raw/rr",
				"bridge-colocated/stream over bridge/stream", "bridge-colocated/rr over bridge/rr",
				"vxlan/stream over bridge/stream", "vxlan/rr over bridge/rr",
			},
			trials: 10,
		},
		"quick-overlay": {
			ids: []string{
				"bridge/stream", "bridge/rr", "vxlan/stream", "vxlan/rr",
				"vrouter-direct/stream", "vrouter-direct/rr",
				"vrouter-vxlan/stream", "vrouter-vxlan/rr",
				"vrouter-mpls-udp/stream", "vrouter-mpls-udp/rr",
				"bridge-colocated/stream", "vrouter-mpls-udp-colocated/stream",
			},
			pairs: []string{
				"vrouter-direct/stream over bridge/stream", "vrouter-direct/rr over bridge/rr",
				"vxlan/stream over bridge/stream", "vxlan/rr over bridge/rr",
				"vrouter-vxlan/stream over bridge/stream", "vrouter-vxlan/rr over bridge/rr",
				"vrouter-mpls-udp/stream over bridge/stream", "vrouter-mpls-udp/rr over bridge/rr",
				"vrouter-direct/stream over vxlan/stream", "vrouter-direct/rr over vxlan/rr",
				"vrouter-vxlan/stream over vxlan/stream", "vrouter-vxlan/rr over vxlan/rr",
				"vrouter-mpls-udp/stream over vxlan/stream", "vrouter-mpls-udp/rr over vxlan/rr",
				"vrouter-mpls-udp-colocated/stream over bridge-colocated/stream",
			},
			trials: 11,
		},
		"gateway": {
			ids: []string{
				"raw/stream", "raw/rr", "raw/crr", "bridge-nat/stream", "bridge-nat/rr", "bridge-nat/crr",
				"vrouter-nat/stream", "vrouter-nat/rr", "vrouter-nat/crr",
				"vrouter-routed/stream", "vrouter-routed/rr", "vrouter-routed/crr", "vrouter-evpn/stream", "vrouter-evpn/rr", "vrouter-evpn/crr",
			},
			pairs: []string{
				"bridge-nat/stream over raw/stream", "bridge-nat/rr over raw/rr", "bridge-nat/crr over raw/crr",
				"vrouter-nat/stream over raw/stream", "vrouter-nat/rr over raw/rr", "vrouter-nat/crr over raw/crr",
				"vrouter-routed/stream over raw/stream", "vrouter-routed/rr over raw/rr", "vrouter-routed/crr over raw/crr",
				"vrouter-evpn/stream over raw/stream", "vrouter-evpn/rr over raw/rr", "vrouter-evpn/crr over raw/crr",
				"vrouter-nat/stream over bridge-nat/stream", "vrouter-nat/rr over bridge-nat/rr", "vrouter-nat/crr over bridge-nat/crr",
				"vrouter-evpn/stream over bridge-nat/stream", "vrouter-evpn/rr over bridge-nat/rr", "vrouter-evpn/crr over bridge-nat/crr",
				"vrouter-nat/stream over vrouter-routed/stream", "vrouter-nat/rr over vrouter-routed/rr", "vrouter-nat/crr over vrouter-routed/crr",
			},
			trials: 11,
		},
		"aa": {
			ids:    []string{"a/stream", "a/rr", "b/stream", "b/rr"},
			pairs:  []string{"b/stream over a/stream", "b/rr over a/rr"},
			trials: 10,
		},
		"steadiness": {
			ids: []string{
				"none/unlimited", "tcp/unlimited", "tunnel/unlimited", "none/paced", "tcp/paced", "tunnel/paced",
			},
			pairs: []string{
				"none/unlimited over tcp/unlimited", "none/paced over tcp/paced",
				"tunnel/unlimited over tcp/unlimited", "tunnel/paced over tcp/paced",
			},
			trials: 9,
		},
		"agreement": {
			ids:    []string{"builtin/stream", "builtin-ntttcp/stream", "fio/stream", "iperf3/stream", "netperf/stream", "qperf/stream", "builtin/rr", "netperf/rr", "builtin/udp-rr", "qperf/udp-rr", "sockperf/udp-rr"},
			pairs:  []string{"builtin/stream over iperf3/stream", "builtin/stream over netperf/stream", "builtin/rr over netperf/rr", "builtin/udp-rr over sockperf/udp-rr"},
			trials: 10,
		},
		"k8s-cni": {
			ids: []string{
				"host/stream", "host/both", "host/udp-64", "host/rr", "cni/stream", "cni/both", "cni/udp-64", "cni/rr",
				"service/stream", "service/both", "service/udp-64", "service/rr", "host-connect/crr", "service-connect/crr",
				"cni-colocated/stream", "cni-colocated/both", "cni-colocated/udp-64", "cni-colocated/rr",
			},
			pairs: []string{
				"cni/stream over host/stream", "cni/both over host/both", "cni/udp-64 over host/udp-64", "cni/rr over host/rr",
				"service/stream over cni/stream", "service/both over cni/both", "service/udp-64 over cni/udp-64", "service/rr over cni/rr",
				"service/stream over host/stream", "service/both over host/both", "service/udp-64 over host/udp-64", "service/rr over host/rr", "service-connect/crr over host-connect/crr",
				"cni-colocated/stream over cni/stream", "cni-colocated/both over cni/both", "cni-colocated/udp-64 over cni/udp-64", "cni-colocated/rr over cni/rr",
			},
			trials: 10,
		},
		"tour": {
			ids: []string{
				"bridge/tcp_stream", "bridge/tcp_stream-reverse", "bridge/tcp_stream-both", "bridge/tcp_stream-sendfile",
				"bridge/tcp_stream-no_delay", "bridge/tcp_stream-4", "bridge/tcp_stream-ipv6",
				"bridge/tcp_rr", "bridge/tcp_crr", "bridge/udp_stream", "bridge/udp_rr",
			},
			pairs:  []string{"bridge/tcp_stream-ipv6 over bridge/tcp_stream"},
			trials: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, name)
			var ids, pairs []string
			for _, s := range p.Scenarios {
				ids = append(ids, s.ID)
			}
			for _, c := range p.Comparisons {
				pairs = append(pairs, c.Subject+" over "+c.Baseline)
			}
			must.Equal(t, want.ids, ids)
			must.Equal(t, want.pairs, pairs)
			if p.Trials != want.trials || p.Nodes != 2 {
				t.Errorf("%d trials on %d nodes, want %d on 2", p.Trials, p.Nodes, want.trials)
			}
		})
	}
}

func TestEverySuiteHasEnoughTrialsForASignificantDifference(t *testing.T) {
	for _, name := range Names() {
		p := plan(t, name)
		if name == "tour" { // it looks and does not judge, and says so
			if p.Trials != 3 || !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "too few for any comparison") }) {
				t.Errorf("tour runs %d trials and notes %q", p.Trials, p.Notes)
			}
			continue
		}
		if need := stats.MinimumTrials(stats.Level); p.Trials < need+2 {
			t.Errorf("%s: %d trials are too few: %d can show a difference, and some are lost", name, p.Trials, need)
		}
	}
}

func TestSuitesTakeNoLongerThanTheirTimes(t *testing.T) {
	for name, most := range map[string]time.Duration{
		"quick": 2*time.Minute + 15*time.Second, "quick-overlay": 3 * time.Minute, "overlay": 22 * time.Minute, "overlay-traffic": 26 * time.Minute,
		"cloud-instances": 2 * time.Hour, "contrail-windows": 80 * time.Minute, "opencontrail": 65 * time.Minute,
		"packets": 60 * time.Minute, "loaded-latency": 75 * time.Minute,
		"aa": 2 * time.Minute, "parity": 10 * time.Minute, "churn": 50 * time.Minute, "gateway": 5 * time.Minute, "k8s-cni": 12 * time.Minute, "agreement": 8 * time.Minute, "converged": 35 * time.Minute, "steadiness": 4 * time.Minute, "sweep": 25 * time.Minute, "tour": 90 * time.Second,
	} {
		p := plan(t, name)
		if e := p.Estimate(); e <= 0 || e > most {
			t.Errorf("%s is estimated at %v, want %v at most", name, e, most)
		}
		for _, s := range p.Scenarios {
			stream := s.Workload.Kind == suite.TCPStream || s.Workload.Kind == suite.UDPStream
			if s.Timing.Warmup < 250*time.Millisecond || stream && s.Timing.Duration < 700*time.Millisecond {
				t.Errorf("%s: %s warms up for %v and counts %v", name, s.ID, s.Timing.Warmup, s.Timing.Duration)
			}
		}
	}
}

// experiments are the suites that repeat published documents.
var experiments = []string{"cloud-instances", "contrail-windows", "converged", "opencontrail"}

func TestEveryPublishedExperimentHasAShortFormOfLessThanThreeMinutes(t *testing.T) {
	for _, name := range experiments {
		p := planned(t, name, suite.ExpandOptions{Short: true})
		whole := plan(t, name)
		if e := p.Estimate(); e <= 0 || e >= 3*time.Minute {
			t.Errorf("%s: the short form takes %v, want less than 3m", name, e)
		}
		if !p.Short || len(p.Scenarios) == 0 || len(p.Comparisons) == 0 || len(p.Published) == 0 {
			t.Errorf("%s: the short form is %+v", name, p)
		}
		if whole.Short || whole.Estimate() <= p.Estimate() {
			t.Errorf("%s: the whole takes %v, its short form %v", name, whole.Estimate(), p.Estimate())
		}
		if p.Trials < stats.MinimumTrials(stats.Level) {
			t.Errorf("%s: the short form has %d trials, too few for a significant test", name, p.Trials)
		}
	}
}

func TestEachStepOfALadderChangesOneThing(t *testing.T) {
	for name, want := range map[string][]string{
		"contrail-windows": {"raw/stream → bridge/stream → vrouter/stream"},
		"opencontrail":     {"bridge/one → vrouter-mpls-gre/one", "bridge/both → vrouter-mpls-gre/both", "bridge/rr → vrouter-mpls-gre/rr"},
		"quick":            {"raw/stream → bridge/stream → vxlan/stream", "raw/rr → bridge/rr → vxlan/rr"},
		"quick-overlay":    {"bridge/stream → vrouter-direct/stream → vrouter-vxlan/stream", "bridge/rr → vrouter-direct/rr → vrouter-vxlan/rr"},
		"overlay": {
			"bridge-none/stream → vrouter-direct-none/stream → vrouter-vxlan-none/stream → vrouter-mpls-udp-none/stream",
			"bridge-none/rr → vrouter-direct-none/rr → vrouter-vxlan-none/rr → vrouter-mpls-udp-none/rr",
			"bridge-tcp/stream → vrouter-direct-tcp/stream → vrouter-vxlan-tcp/stream → vrouter-mpls-udp-tcp/stream",
			"bridge-tcp/rr → vrouter-direct-tcp/rr → vrouter-vxlan-tcp/rr → vrouter-mpls-udp-tcp/rr",
			"bridge-tunnel/stream → vrouter-direct-tunnel/stream → vrouter-vxlan-tunnel/stream → vrouter-mpls-udp-tunnel/stream",
			"bridge-tunnel/rr → vrouter-direct-tunnel/rr → vrouter-vxlan-tunnel/rr → vrouter-mpls-udp-tunnel/rr",
			"vrouter-mpls-udp-tunnel/stream → vrouter-mpls-udp-tcp/stream → vrouter-mpls-udp-none/stream",
		},
	} {
		p := plan(t, name)
		var got []string
		for _, l := range p.Ladders {
			got = append(got, strings.Join(l.Steps, " → "))
			for i, id := range l.Steps[1:] {
				if n := changes(scenario(t, p, l.Steps[i]), scenario(t, p, id)); n != 1 {
					t.Errorf("%s: from %s to %s %d things change", name, l.Steps[i], id, n)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: ladders (-want +got):\n%s", name, diff)
		}
	}
}

func scenario(t *testing.T, p *suite.Plan, id string) suite.Scenario {
	t.Helper()
	i := slices.IndexFunc(p.Scenarios, func(s suite.Scenario) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("no scenario %s", id)
	}
	return p.Scenarios[i]
}

// changes counts what sets two scenarios apart.
func changes(a, b suite.Scenario) (n int) {
	for _, differs := range []bool{
		a.System != b.System, a.Placement != b.Placement, a.Workload != b.Workload, a.Fabric != b.Fabric,
		a.Tool != b.Tool, a.Pairs != b.Pairs, a.Timing != b.Timing,
	} {
		if differs {
			n++
		}
	}
	return n
}

func TestHypothesesSayWhatTheSuitesAreAbout(t *testing.T) {
	for name, want := range map[string][]string{
		"aa": {
			"throughput_bps of b/stream over a/stream: 0.97 to 1.03", "transactions_per_s of b/rr over a/rr: 0.97 to 1.03",
			"sender_cpu_ns_per_byte of b/stream over a/stream: 0.97 to 1.03", "receiver_cpu_ns_per_byte of b/stream over a/stream: 0.97 to 1.03",
		},
		"agreement": {"throughput_bps of iperf3/stream netperf/stream over builtin/stream: 0.95 to 1.05"},
		"contrail-windows": {
			"throughput_bps of bridge-2-cpus/stream-4-containers over bridge-2-cpus/stream: 1.8 to 2.2",
			"throughput_bps of bridge-2-cpus/stream-2-threads over bridge-2-cpus/stream: 0 to 1.05",
			"throughput_bps of bridge-2-cpus/stream-2-threads over bridge-2-cpus/stream-4-containers: 0.9 to 1.1",
			"throughput_bps of bridge/stream: 0 to 3e+09",
			"throughput_bps of raw/stream over bridge/stream: 3 to 4",
			"throughput_bps of raw-10g/stream over bridge-10g/stream: 3 to 4",
			"throughput_bps of bridge-colocated/stream over bridge/stream: 0 to 1.5",
			"throughput_bps of vrouter/no-seg over bridge/no-seg: 0.4 to 0.5",
			"throughput_bps of bridge/stream: 1.44e+09 to 1.76e+09",
			"receiver_cpu_percent of bridge/stream over raw/stream: 1.95 to 4.05",
			"receiver_cpu_percent of bridge-2-cpus/stream-4-containers bridge-2-cpus/stream-2-threads over raw-2-cpus/stream: 1.95 to 4.05",
			"receiver_cpu_percent of bridge/stream over sender_cpu_percent: 2 to 4",
			"sender_cpu_ns_per_byte of bridge/stream over raw/stream: 1.05 or more",
			"receiver_cpu_ns_per_byte of bridge/stream over raw/stream: 1.05 or more",
			"throughput_bps of bridge-8-cpus/stream-8-threads over bridge-2-cpus/stream-2-threads: 1.05 or more",
			"sent_packet_bytes of bridge/no-seg vrouter/no-seg: 1376 to 1404",
			"tool_sender_frame_bytes of bridge/no-seg vrouter/no-seg: 1376 to 1404",
		},
		"opencontrail": {
			"throughput_bps of vrouter-mpls-gre/one over bridge/one: 0.9 to 1.1",
			"throughput_bps of vrouter-mpls-gre/both over bridge/both: 0.9 to 1.1",
			"transactions_per_s of vrouter-mpls-gre/rr over bridge/rr: 0.9 to 1.1",
			"throughput_bps of vrouter-mpls-gre-jumbo/both-sendfile over bridge-jumbo/both-sendfile: 0.9 to 1.1",
			"sender_cpu_cores of vrouter-mpls-gre-jumbo/both-sendfile over bridge-jumbo/both-sendfile: 0 to 1",
			"throughput_bps of vrouter-mpls-gre-vm/one over bridge-vm/one: 0.9 to 1.1",
			"throughput_bps of vrouter-mpls-gre-vm/both over bridge-vm/both: 0.9 to 1.1",
			"transactions_per_s of vrouter-mpls-gre-vm/rr over bridge-vm/rr: 0.9 to 1.1",
			"throughput_bps of vrouter-mpls-gre-vm-jumbo/both-sendfile over bridge-vm-jumbo/both-sendfile: 0.9 to 1.1",
			"throughput_bps of vrouter-direct/one over bridge/one: 0.9 or more",
			"throughput_bps of vrouter-direct/both over bridge/both: 0.9 or more",
			"transactions_per_s of vrouter-direct/rr over bridge/rr: 0.9 or more",
			"throughput_bps of vrouter-direct-jumbo/both-sendfile over bridge-jumbo/both-sendfile: 0.9 or more",
			"throughput_bps of vrouter-mpls-gre-10g/one over bridge-10g/one: 0.96 to 1",
			"throughput_bps of vrouter-mpls-gre-10g/one: 9e+09 or more",
			"transactions_per_s of vrouter-mpls-gre/rr over bridge/rr: 0 to 1",
			"throughput_bps of bridge-jumbo/both-sendfile over bridge-jumbo/both: 1.05 or more",
			"throughput_bps of vrouter-mpls-udp/one over vrouter-mpls-gre/one: 0.95 to 1.05",
			"receiver_cpu_ns_per_byte of vrouter-mpls-udp-checksum-nic-outer/paced over vrouter-mpls-gre-nic-outer/paced: 0.8 to 0.9",
			"receiver_cpu_ns_per_byte of vrouter-mpls-udp-checksum-nic-outer/paced less vrouter-mpls-gre-nic-outer/paced: -0.175 to -0.087",
			"receiver_cpu_ns_per_byte of vrouter-mpls-udp-checksum-nic-none/paced over vrouter-mpls-gre-nic-none/paced: 0.95 to 1.05",
			"receiver_network_cpu_cores of vrouter-mpls-udp-vm/one over vrouter-mpls-gre-vm/one: 0.8 to 0.9",
			"receiver_network_cpu_cores of vrouter-mpls-udp-vm/one less vrouter-mpls-gre-vm/one: -0.2 to -0.1",
			"spread of throughput_bps of bridge/one over bridge-unpinned/one: 0 to 1",
			"spread of transactions_per_s of bridge/rr over bridge-unpinned/rr: 0 to 1",
			"spread of throughput_bps of vrouter-mpls-gre/one over vrouter-mpls-gre-unpinned/one: 0 to 1",
			"spread of transactions_per_s of vrouter-mpls-gre/rr over vrouter-mpls-gre-unpinned/rr: 0 to 1",
		},
		"converged": {
			"throughput_bps of 9000-lso/half over 1500-lso/half: 1.6875 to 2.0625",
			"throughput_bps of 9000-vm/half over 1500-vm/half: 1.6875 to 2.0625",
			"capacity_bps of 1500-lso/half: 3.5e+09 to 4.5e+09",
			"throughput_bps of 1500-10g-lso/half over capacity_bps: 0.9 or more",
			"throughput_bps of 9000-10g-lso/half over capacity_bps: 0 to 0.9",
			"throughput_bps of 9000-10g-lso/half: 8.5e+09 or more",
			"throughput_bps of 9000-lso-spread/full over 9000-lso/full: 1.05 or more",
			"sender_cpu_cores of 9000-lso-spread/full over 9000-lso/full: 1.05 or more",
			"throughput_bps of 9000-10g-lso-spread/half over 9000-10g-lso/half: 0.95 to 1.05",
			"throughput_bps of 9000-vmq-lso/full over 9000-lso/full: 0.9 to 1.1",
			"throughput_bps of 9000-vmq-two-vnics/full over 9000-two-vnics/full: 1.05 or more",
			"interruption_ns of team-cut/datagrams team-cut/paced: 0 to 1e+09",
			"host_share_ratio of host-and-container/half: 0.45 to 0.55",
		},
		"cloud-instances": {
			"throughput_bps of raw-a2/bw over raw-a1/bw: 1.9 to 2.1", "throughput_bps of raw-a3/bw over raw-a1/bw: 3.8 to 4.2",
			"throughput_bps of raw-a1/bw: 9e+07 or more", "throughput_bps of raw-a2/bw: 1.8e+08 or more", "throughput_bps of raw-a3/bw: 3.6e+08 or more",
			"throughput_bps of raw-d1-share/bw over raw-a2-share/bw: 1.05 or more", "latency_ns_mean of raw-d1-far/lat over raw-a2-far/lat: 0 to 0.95",
			"throughput_bps of raw-a8/bw over raw-d2/bw: 2 or more",
			"throughput_bps of weave-a1-share/bw over raw-a1-share/bw: 0 to 0.75", "throughput_bps of weave-a2-share/bw over raw-a2-share/bw: 0 to 0.75",
			"throughput_bps of weave-a3-share/bw over raw-a3-share/bw: 0 to 0.75", "throughput_bps of weave-a8-share/bw over raw-a8-share/bw: 0 to 0.75",
			"throughput_bps of weave-d1-share/bw over raw-d1-share/bw: 0 to 0.75", "throughput_bps of weave-d2-share/bw over raw-d2-share/bw: 0 to 0.75",
			"throughput_bps of vxlan-a8/bw over weave-a8/bw: 0.9 to 1.1",
			"throughput_bps of flannel-vxlan-a8/bw vxlan-a8/bw over weave-a8/bw: 1.05 or more",
		},
		"overlay-traffic": {
			"throughput_bps of vrouter-direct/both over bridge/both: 0.97 or more",
			"datagrams_received_per_s of vrouter-direct/udp-64 over bridge/udp-64: 1 or more",
			"sender_cpu_ns_per_packet of vrouter-direct/udp-64 over bridge/udp-64: 0 to 1",
			"receiver_cpu_ns_per_packet of vrouter-direct/udp-64 over bridge/udp-64: 0 to 1",
			"datagrams_received_per_s of vrouter-direct/udp-1400 over bridge/udp-1400: 1 or more",
			"sender_cpu_ns_per_packet of vrouter-direct/udp-1400 over bridge/udp-1400: 0 to 1",
			"receiver_cpu_ns_per_packet of vrouter-direct/udp-1400 over bridge/udp-1400: 0 to 1",
			"throughput_bps of vrouter-direct/stream over bridge/stream: 0.97 or more",
			"throughput_bps of vrouter-direct/streams-4 over bridge/streams-4: 0.97 or more",
			"throughput_bps of vrouter-direct/streams-16 over bridge/streams-16: 0.97 or more",
			"throughput_bps of vrouter-direct/streams-64 over bridge/streams-64: 0.97 or more",
			"throughput_bps of vrouter-direct/workloads-4 over bridge/workloads-4: 0.97 or more",
			"throughput_bps of vrouter-direct/workloads-16 over bridge/workloads-16: 0.97 or more",
			"throughput_bps of vrouter-direct-policy/stream over vrouter-direct/stream: 0.97 or more",
			"sender_cpu_ns_per_byte of vrouter-direct-policy/stream over vrouter-direct/stream: 0 to 1.03",
			"receiver_cpu_ns_per_byte of vrouter-direct-policy/stream over vrouter-direct/stream: 0 to 1.03",
			"transactions_per_s of vrouter-direct-policy/rr over vrouter-direct/rr: 0.98 or more",
		},
		"quick": {"throughput_bps of bridge/stream over raw/stream: 0.9 or more"},
		"quick-overlay": {
			"throughput_bps of vrouter-direct/stream vrouter-vxlan/stream vrouter-mpls-udp/stream over vxlan/stream: 0.95 or more",
			"transactions_per_s of vrouter-direct/rr vrouter-vxlan/rr vrouter-mpls-udp/rr over vxlan/rr: 0.95 or more",
			"throughput_bps of vrouter-direct/stream over bridge/stream: 0.98 or more",
		},
	} {
		var got []string
		for _, h := range plan(t, name).Hypotheses {
			bounds := fmt.Sprintf("%g to %g", h.Low, h.High)
			if h.High == math.MaxFloat64 {
				bounds = fmt.Sprintf("%g or more", h.Low)
			}
			by, metric := "", h.Metric
			if h.Spread {
				metric = "spread of " + metric
			}
			switch other := h.Baseline + h.Over; {
			case h.Difference:
				by = " less " + other
			case other != "":
				by = " over " + other
			}
			got = append(got, fmt.Sprintf("%s of %s%s: %s", metric, strings.Join(h.Subjects, " "), by, bounds))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: hypotheses (-want +got):\n%s", name, diff)
		}
	}
	if n := len(plan(t, "overlay").Hypotheses); n != 9 {
		t.Errorf("overlay has %d hypotheses, want 9: three for each offload profile", n)
	}
}

func TestQuickMeasuresWhatItsTitleSays(t *testing.T) {
	p := plan(t, "quick")
	wire := suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1}
	stream := suite.Workload{Name: "stream", Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 131072, IPVersion: 4}
	rr := suite.Workload{Name: "rr", Kind: suite.TCPRR, Streams: 1, Request: 1, Response: 1, IPVersion: 4}
	for _, s := range p.Scenarios {
		workload, duration := stream, time.Second
		wire.NoCoalescing = strings.HasSuffix(s.ID, "/rr")
		if wire.NoCoalescing {
			workload, duration = rr, 600*time.Millisecond
		}
		placement := suite.TwoNodes
		if strings.HasPrefix(s.ID, "bridge-colocated/") {
			placement = suite.Colocated
		}
		if diff := cmp.Diff(wire, s.Fabric); diff != "" {
			t.Errorf("%s: fabric (-want +got):\n%s", s.ID, diff)
		}
		if diff := cmp.Diff(workload, s.Workload); diff != "" {
			t.Errorf("%s: workload (-want +got):\n%s", s.ID, diff)
		}
		if s.Timing.Duration != duration || s.Placement != placement || s.Tool != "builtin" || s.Pairs != 1 {
			t.Errorf("%s: duration %v, placement %s, tool %s, pairs %d", s.ID, s.Timing.Duration, s.Placement, s.Tool, s.Pairs)
		}
	}
}

func TestOverlayTrafficHasEveryKindOfTrafficOnEverySystem(t *testing.T) {
	p := plan(t, "overlay-traffic")
	traffic := func(s suite.Scenario) string {
		w := s.Workload
		return fmt.Sprintf("%s %s, %d streams, %d B, %d pairs, %g lost", w.Kind, w.Direction, w.Streams, w.Buffer, s.Pairs, s.Fabric.Loss)
	}
	got := map[string][]string{}
	for _, s := range p.Scenarios {
		if s.Placement != suite.TwoNodes || s.Fabric.Offload != suite.OffloadTCP || s.Tool != "builtin" {
			t.Errorf("%s is %s with offload %s by %s", s.ID, s.Placement, s.Fabric.Offload, s.Tool)
		}
		if !s.Workload.Kind.Exchange() {
			got[s.System] = append(got[s.System], traffic(s))
		}
	}
	want := []string{
		"tcp_stream forward, 1 streams, 131072 B, 1 pairs, 0 lost", "tcp_stream both, 1 streams, 131072 B, 1 pairs, 0 lost",
		"udp_stream forward, 1 streams, 64 B, 1 pairs, 0 lost", "udp_stream forward, 1 streams, 1400 B, 1 pairs, 0 lost",
		"tcp_stream forward, 4 streams, 131072 B, 1 pairs, 0 lost", "tcp_stream forward, 16 streams, 131072 B, 1 pairs, 0 lost",
		"tcp_stream forward, 64 streams, 131072 B, 1 pairs, 0 lost",
		"tcp_stream forward, 1 streams, 131072 B, 4 pairs, 0 lost", "tcp_stream forward, 1 streams, 131072 B, 16 pairs, 0 lost",
		"tcp_stream forward, 1 streams, 131072 B, 1 pairs, 0.001 lost",
	}
	for _, system := range []string{"bridge", "vxlan", "vrouter-direct", "vrouter-vxlan"} {
		if diff := cmp.Diff(want, got[system]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", system, diff)
		}
	}
	var policy []string
	for _, c := range p.Comparisons {
		if c.Baseline == "vrouter-direct/"+suite.Part(c.Subject) {
			policy = append(policy, c.Subject)
		}
	}
	must.Equal(t, []string{"vrouter-direct-policy/stream", "vrouter-direct-policy/rr", "vrouter-direct-policy/crr"}, policy)
	short := planned(t, "overlay-traffic", suite.ExpandOptions{Short: true})
	if e := short.Estimate(); e > 6*time.Minute || len(short.Hypotheses) != len(p.Hypotheses) {
		t.Errorf("the short form takes %v and judges %d of %d hypotheses", e, len(short.Hypotheses), len(p.Hypotheses))
	}
}

func TestSteadinessPacesTheSenderAndNotTheLink(t *testing.T) {
	for _, s := range plan(t, "steadiness").Scenarios {
		want := int64(0)
		if s.Workload.Name == "paced" {
			want = 4e9
		}
		if s.Workload.Rate != want || s.Fabric.Rate != 0 || s.Timing.Duration != 3*time.Second {
			t.Errorf("%s: workload at %d, link at %d bits/s for %v", s.ID, s.Workload.Rate, s.Fabric.Rate, s.Timing.Duration)
		}
		if string(s.Fabric.Offload) != s.Fabric.Name {
			t.Errorf("%s: offload %s", s.ID, s.Fabric.Offload)
		}
	}
}

func TestTourHasEveryKindDirectionAndIPVersion(t *testing.T) {
	seen := map[any]bool{}
	for _, s := range plan(t, "tour").Scenarios {
		seen[s.Workload.Kind], seen[s.Workload.Direction], seen[s.Workload.IPVersion] = true, true, true
		if s.Timing.Duration != time.Second {
			t.Errorf("%s takes %v", s.ID, s.Timing.Duration)
		}
	}
	for _, want := range []any{
		suite.TCPStream, suite.TCPRR, suite.TCPCRR, suite.UDPStream, suite.UDPRR,
		suite.Forward, suite.Reverse, suite.Both, 4, 6,
	} {
		if !seen[want] {
			t.Errorf("no scenario with %v", want)
		}
	}
}

func TestTheErrorOfAnUnknownSuiteListsTheSuites(t *testing.T) {
	for _, name := range []string{"quik", "", "../go.mod", "quick.yaml"} {
		_, err := Read(name)
		must.Fail(t, err, strings.Join(Names(), ", "))
	}
}

func TestCommittedSchemaIsThatOfTheCode(t *testing.T) {
	committed := must.Get(os.ReadFile("schema.json"))(t)
	must.Equal(t, suite.Schema(), committed)
}

func TestEverySuiteNamesItsSchemaForEditors(t *testing.T) {
	for _, name := range Names() {
		data := must.Get(Read(name))(t)
		first := strings.SplitN(string(data), "\n", 2)[0]
		if !slices.Contains(strings.Fields(first), "$schema=schema.json") {
			t.Errorf("%s.yaml: first line %q", name, first)
		}
	}
}
