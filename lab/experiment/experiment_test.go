package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/tool"
)

func TestTheOrderIsAPermutationGivenBySeedAndBlock(t *testing.T) {
	seen := map[string]bool{}
	for block := range 20 {
		o := order(7, block, 8)
		if !slices.Equal(o, order(7, block, 8)) {
			t.Errorf("block %d: the same seed gives another order", block)
		}
		seen[fmt.Sprint(o)] = true
		slices.Sort(o)
		if !slices.Equal(o, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("block %d is no permutation: %v", block, o)
		}
	}
	if len(seen) < 19 {
		t.Errorf("20 blocks have %d orders", len(seen))
	}
	if slices.Equal(order(7, 0, 8), order(8, 0, 8)) {
		t.Error("two seeds give the same order")
	}
}

// Every first position is taken about equally often: no scenario always meets
// the machine first.
func TestEveryScenarioComesFirstAboutEquallyOften(t *testing.T) {
	first := make([]int, 4)
	for block := range 4000 {
		first[order(1, block, 4)[0]]++
	}
	for i, n := range first {
		if n < 900 || n > 1100 {
			t.Errorf("scenario %d comes first in %d of 4000 blocks", i, n)
		}
	}
}

func TestPairsAddUp(t *testing.T) {
	a := tool.Measurement{Metrics: sample.Metrics{sample.Throughput: 1e9, sample.Interruption: 4, sample.LatencyP99: 5, sample.LatencyMax: 9, sample.Errors: 1, sample.ToolSenderCPU: 30, sample.ToolSenderCPUPerByte: 2}, Warnings: []string{"one"}}
	b := tool.Measurement{Metrics: sample.Metrics{sample.Throughput: 2e9, sample.Interruption: 3, sample.LatencyP99: 7, sample.LatencyMax: 8, sample.ToolSenderCPU: 40, sample.ToolSenderCPUPerByte: 3}}
	m := must.Get(sum([]tool.Measurement{a, b}))(t)
	if _, ok := m.Metrics[sample.ToolSenderCPUPerByte]; ok || m.Metrics[sample.ToolSenderCPU] != 35 {
		t.Errorf("each tool told the whole machine's CPU, and the sum says %v", m.Metrics)
	}
	if m.Metrics[sample.Throughput] != 3e9 || m.Metrics[sample.LatencyMax] != 9 || m.Metrics[sample.Interruption] != 4 {
		t.Errorf("sum = %v", m.Metrics)
	}
	if _, ok := m.Metrics[sample.LatencyP99]; ok {
		t.Error("a percentile was made of two percentiles")
	}
	if _, ok := m.Metrics[sample.Errors]; ok {
		t.Error("a sum stands for a pair that said nothing")
	}
	if len(m.Warnings) != 1 {
		t.Errorf("warnings = %v", m.Warnings)
	}
}

// A pair weighs by what it sent: nine tenths of 100 datagrams and none of 900
// lost make 0.09, and 100 slow transactions do not count as many as 900 quick
// ones.
func TestMeansOverPairsAreWeighted(t *testing.T) {
	loss := func(ratio float64, m sample.Metric, n float64) sample.Metrics {
		return sample.Metrics{sample.LossRatio: ratio, m: n}
	}
	for name, c := range map[string]struct {
		a, b sample.Metrics
		of   sample.Metric
		want float64 // −1: absent
	}{
		"loss of a stream":                  {loss(0.9, sample.DatagramsSent, 100), loss(0, sample.DatagramsSent, 900), sample.LossRatio, 0.09},
		"loss, of which arrivals are known": {loss(0.9, sample.DatagramsReceived, 10), loss(0, sample.DatagramsReceived, 900), sample.LossRatio, 0.09},
		"loss of requests":                  {loss(0.9, sample.Transactions, 10), loss(0, sample.Transactions, 900), sample.LossRatio, 0.09},
		"loss without a weight":             {loss(0.9, sample.DatagramsSent, 100), loss(0.1, sample.Throughput, 900), sample.LossRatio, -1},
		"loss of all, and nothing sent":     {loss(1, sample.DatagramsReceived, 0), loss(0.1, sample.DatagramsReceived, 900), sample.LossRatio, -1},
		"mean latency": {
			sample.Metrics{sample.LatencyMean: 1000, sample.Transactions: 100}, sample.Metrics{sample.LatencyMean: 200, sample.Transactions: 900},
			sample.LatencyMean, 280,
		},
		"mean latency without transactions": {
			sample.Metrics{sample.LatencyMean: 1000}, sample.Metrics{sample.LatencyMean: 200, sample.Transactions: 900}, sample.LatencyMean, -1,
		},
	} {
		m := must.Get(sum([]tool.Measurement{{Metrics: c.a}, {Metrics: c.b}}))(t)
		if got, ok := m.Metrics[c.of]; ok != (c.want >= 0) || ok && math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v (%v), want %v", name, got, ok, c.want)
		}
	}
}

// Where both endpoints are on one node, each hop counts too.
func TestColocatedEndpointsAreMeasured(t *testing.T) {
	for system, hops := range map[string]string{
		"bridge":  "endpoint vif bridge vif endpoint",
		"vxlan":   "endpoint vif bridge vif endpoint",
		"macvlan": "endpoint endpoint",
	} {
		t.Run(system, func(t *testing.T) {
			s := runOK(t, scenario(system, func(sc *suite.Scenario) { sc.Placement = suite.Colocated }))
			assertMeasured(t, &s)
			assertHops(t, &s, hops)
		})
	}
}

func TestSeveralPairsRunAtOnce(t *testing.T) {
	s := runOK(t, scenario("bridge", func(sc *suite.Scenario) { sc.Pairs = 3 }))
	assertFabricAgrees(t, &s)
	if len(s.Outputs) != 6 || len(s.Commands) != 6 {
		t.Errorf("%d outputs, %d commands of 3 pairs", len(s.Outputs), len(s.Commands))
	}
}

func TestEveryWorkloadYieldsItsFigures(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*suite.Workload)
		want   []sample.Metric
	}{
		"reverse":  {func(w *suite.Workload) { w.Direction = suite.Reverse }, []sample.Metric{sample.Throughput, sample.ReceiverCPUPerByte}},
		"both":     {func(w *suite.Workload) { w.Direction = suite.Both }, []sample.Metric{sample.Throughput, sample.ForwardThroughput, sample.ReverseThroughput}},
		"ipv6":     {func(w *suite.Workload) { w.IPVersion = 6 }, []sample.Metric{sample.Throughput, sample.FabricGoodput}},
		"sendfile": {func(w *suite.Workload) { w.Sendfile = true }, []sample.Metric{sample.Throughput}},
		"rr":       {func(w *suite.Workload) { w.Kind, w.Request, w.Response, w.Rate = suite.TCPRR, 1, 1, 0 }, []sample.Metric{sample.Transactions, sample.LatencyP50, sample.LatencyP99}},
		"crr":      {func(w *suite.Workload) { w.Kind, w.Request, w.Response, w.Rate = suite.TCPCRR, 1, 1, 0 }, []sample.Metric{sample.Transactions}},
		"udp":      {func(w *suite.Workload) { w.Kind, w.Buffer, w.Rate = suite.UDPStream, 1400, 100e6 }, []sample.Metric{sample.Throughput, sample.LossRatio, sample.OfferedRate}},
		"udp rr":   {func(w *suite.Workload) { w.Kind, w.Request, w.Response, w.Rate = suite.UDPRR, 1, 1, 0 }, []sample.Metric{sample.Transactions, sample.LatencyP99}},
	} {
		t.Run(name, func(t *testing.T) {
			s := runOK(t, scenario("bridge", func(sc *suite.Scenario) { c.change(&sc.Workload) }))
			for _, m := range append(c.want, sample.SenderCPU, sample.ReceiverCPU, sample.PacketsPerSecond) {
				v, ok := s.Metrics[m]
				if !ok || v < 0 || v == 0 && m != sample.LossRatio {
					t.Errorf("%s = %v (%v)", m, v, ok)
				}
			}
		})
	}
}

// The person's interrupt ends the run at once, leaves nothing behind, and
// keeps what was measured.
func TestAnInterruptKeepsFinishedTrials(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	n := &notebook{}
	n.moved = func() {
		if len(n.samples) == 1 {
			cancel(stop)
		}
	}
	long := scenario("raw", func(sc *suite.Scenario) { sc.Timing.Duration = 2 * time.Second })
	e := lab(t, n, long)
	e.Plan.Trials = 3
	started := time.Now()
	if err := e.Run(ctx); !errors.Is(err, stop) {
		t.Errorf("Run returned %v", err)
	}
	if len(n.samples) != 1 || len(n.samples[0].Outputs) == 0 {
		t.Errorf("%d samples are kept, want the first", len(n.samples))
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestDoneAndSkippedTrialsAreNotRunAgain(t *testing.T) {
	n := &notebook{}
	e := lab(t, n, scenario("raw", nil), scenario("bridge", nil), scenario("macvlan", nil))
	e.History = []sample.Sample{
		{Scenario: "raw"},
		{Scenario: "bridge", Failure: &sample.Failure{Kind: sample.ToolHung}},
		{Scenario: "bridge", Attempt: 1, Gates: []sample.Gate{{Name: sample.Steal}}},
	}
	e.Skipped = map[string]string{"macvlan": "no macvlan here"}
	must.Succeed(t, e.Run(context.Background()))
	if len(n.samples) != 1 || n.samples[0].Scenario != "bridge" || n.samples[0].Attempt != 2 {
		t.Errorf("samples: %+v", n.samples)
	}
}

func TestAProcessOnTheToolsPortIsAFailureWithItsReason(t *testing.T) {
	n := &notebook{}
	e := lab(t, n, scenario("raw", nil))
	n.up = func(b *Bench) {
		node := b.Pairs[0].Receiver.Node.Agent()
		go node.AnswerProof(context.Background(), agent.ReachArgs{Port: basePort, Wait: time.Minute})
		if listens, err := node.Listening(context.Background(), agent.ListenArgs{Port: basePort, Wait: time.Minute}); err != nil || !listens {
			t.Errorf("the other process listens: %t, %v", listens, err)
		}
	}
	must.Succeed(t, e.Run(context.Background()))
	s := n.samples[0]
	if s.OK() || s.Failure.Kind != sample.ToolFailed || !strings.Contains(s.Failure.Message, "in use") {
		t.Errorf("failure: %v", s.Failure)
	}
}

// An agent that dies takes the trial with it and not the run.
func TestAKilledAgentFailsItsTrialOnly(t *testing.T) {
	n := &notebook{}
	e := lab(t, n, scenario("raw", nil))
	e.Attempts = 2
	once := false
	n.up = func(b *Bench) {
		if once {
			return
		}
		once = true
		a := b.Pairs[0].Sender.Node.Agent()
		h, err := a.Hello(context.Background())
		if err != nil {
			t.Error(err)
		}
		// Whether it still answers before it dies is a matter of luck.
		a.Start(context.Background(), agent.StartArgs{Argv: []string{"kill", "-9", fmt.Sprint(h.PID)}})
	}
	must.Succeed(t, e.Run(context.Background()))
	if len(n.samples) != 2 || n.samples[0].OK() || !n.samples[1].OK() {
		t.Fatalf("samples: %+v", n.samples)
	}
	if !strings.Contains(n.samples[0].Failure.Message, "agent") {
		t.Errorf("failure: %v", n.samples[0].Failure)
	}
}
