package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// made describes a run for the generator.
type made struct {
	id     string
	blocks int
	seed   uint64
	scale  map[string]float64 // of a scenario's throughput; 1 where absent
	noise  float64            // standard deviation of the log of every figure
	drift  float64            // factor on everything, as when the machine is slower that day
	state  float64            // standard deviation of the log of each scenario's factor from run to run
}

// runs makes four runs of a side, which differ by their noise.
func (m made) runs() []Side {
	var sides []Side
	for i := range uint64(4) {
		run := m
		run.id, run.seed = fmt.Sprintf("%s%d", m.id, i), 10*m.seed+i
		sides = append(sides, run.run())
	}
	return sides
}

// run makes a run of raw and bridge, each as stream and request/response, with
// bridge compared to raw. The same description makes the same run.
func (m made) run() Side {
	s := Side{Run: sample.Run{
		ID: m.id, Suite: "pair", Started: time.Date(2026, 11, 20, 8, int(m.seed)%60, 0, 0, time.UTC), Seed: m.seed, Status: sample.Complete,
		Environment: sample.Environment{
			Hostname: "lab-1", Kernel: "6.18.3-amd64", CPUModel: "EPYC 9454P", CPUs: 4, MemoryBytes: 8 << 30, Virtualization: "kvm",
			ClockSource: "tsc", HZ: 250, CongestionControl: "cubic", Version: "0.1.0", Revision: "8b3dce6",
			Sysctls: map[string]string{"net.ipv4.tcp_rmem": "4096 131072 33554432"}, Tools: map[string]string{"iperf3": "3.12"},
		},
	}}
	s.Plan = suite.Plan{Suite: "pair", Title: "a pair", Nodes: 2, Trials: m.blocks}
	for _, system := range []string{"raw", "bridge"} {
		for _, kind := range []suite.Kind{suite.TCPStream, suite.TCPRR} {
			name := map[suite.Kind]string{suite.TCPStream: "stream", suite.TCPRR: "rr"}[kind]
			s.Plan.Scenarios = append(s.Plan.Scenarios, suite.Scenario{
				ID: system + "/" + name, System: system, Placement: suite.TwoNodes, Pairs: 1, Tool: "builtin",
				Workload: suite.Workload{Name: name, Kind: kind, Streams: 1, IPVersion: 4},
				Fabric:   suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1},
				Timing:   suite.Timing{Duration: 2 * time.Second},
			})
			if system == "bridge" {
				s.Plan.Comparisons = append(s.Plan.Comparisons, suite.Comparison{Baseline: "raw/" + name, Subject: "bridge/" + name})
			}
		}
	}
	r := rand.New(rand.NewPCG(m.seed, 1))
	states := make(map[string]float64)
	day := rand.New(rand.NewPCG(m.seed, 2))
	for _, sc := range s.Plan.Scenarios {
		states[sc.ID] = math.Exp(m.state * day.NormFloat64())
	}
	for block := range m.blocks {
		for position, sc := range s.Plan.Scenarios {
			s.Samples = append(s.Samples, sample.Sample{Scenario: sc.ID, Block: block, Position: position, Started: s.Run.Started, Metrics: m.trial(sc, states[sc.ID], r)})
		}
	}
	return s
}

func (m made) trial(sc suite.Scenario, state float64, r *rand.Rand) sample.Metrics {
	figure := func(centre float64) float64 { return centre * math.Exp(m.noise*r.NormFloat64()) }
	scale, drift := 1.0, state
	if v, ok := m.scale[sc.ID]; ok {
		scale = v
	}
	if m.drift > 0 {
		drift *= m.drift
	}
	ms := sample.Metrics{sample.SenderCPUPerByte: figure(0.7 / drift), sample.ReceiverCPUPerByte: figure(0.6 / drift)}
	if sc.Workload.Kind == suite.TCPRR {
		ms[sample.Transactions] = figure(27e3 * scale * drift)
		ms[sample.LatencyP50] = figure(36e3 / scale / drift)
		ms[sample.LatencyP99] = figure(52e3 / scale / drift)
		return ms
	}
	ms[sample.Throughput] = figure(9.5e9 * scale * drift)
	ms[sample.Retransmits] = 0
	return ms
}

// find returns the row of a table.
func find(rows []Row, scenario string, m sample.Metric) *Row {
	for i := range rows {
		if rows[i].Scenario == scenario && rows[i].Metric == m {
			return &rows[i]
		}
	}
	return nil
}
