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

	"windtunnel/lab/agent"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
	"windtunnel/lab/tool"
)

func TestTheOrderIsAPermutationGivenBySeedAndBlock(t *testing.T) {
	seen := map[string]bool{}
	for block := range 20 {
		o := Order(7, block, 8)
		if !slices.Equal(o, Order(7, block, 8)) {
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
	if slices.Equal(Order(7, 0, 8), Order(8, 0, 8)) {
		t.Error("two seeds give the same order")
	}
}

// Every first position is taken about equally often: no scenario always meets
// the machine first.
func TestEveryScenarioComesFirstAboutEquallyOften(t *testing.T) {
	first := make([]int, 4)
	for block := range 4000 {
		first[Order(1, block, 4)[0]]++
	}
	for i, n := range first {
		if n < 900 || n > 1100 {
			t.Errorf("scenario %d comes first in %d of 4000 blocks", i, n)
		}
	}
}

func TestPairsAddUp(t *testing.T) {
	a := tool.Measurement{Metrics: sample.Metrics{sample.Throughput: 1e9, sample.LatencyP99: 5, sample.LatencyMax: 9, sample.Errors: 1, sample.ToolSenderCPU: 30, sample.ToolSenderCPUPerByte: 2}, Warnings: []string{"one"}}
	b := tool.Measurement{Metrics: sample.Metrics{sample.Throughput: 2e9, sample.LatencyP99: 7, sample.LatencyMax: 8, sample.ToolSenderCPU: 40, sample.ToolSenderCPUPerByte: 3}}
	m, err := sum([]tool.Measurement{a, b})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Metrics[sample.ToolSenderCPUPerByte]; ok || m.Metrics[sample.ToolSenderCPU] != 35 {
		t.Errorf("each tool told the whole machine's CPU, and the sum says %v", m.Metrics)
	}
	if m.Metrics[sample.Throughput] != 3e9 || m.Metrics[sample.LatencyMax] != 9 {
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
		m, err := sum([]tool.Measurement{{Metrics: c.a}, {Metrics: c.b}})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := m.Metrics[c.of]; ok != (c.want >= 0) || ok && math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v (%v), want %v", name, got, ok, c.want)
		}
	}
}

// Every system carries the traffic in each placement that it supports, its
// figures agree with the fabric's counters, and its hops have counted it.
func TestEverySystemIsMeasured(t *testing.T) {
	for _, c := range []struct {
		system    string
		placement suite.Placement
		hops      string // roles in path order
	}{
		{"raw", suite.TwoNodes, "fabric port port fabric"},
		{"bridge", suite.TwoNodes, "endpoint vif bridge fabric port port fabric bridge vif endpoint"},
		{"bridge", suite.Colocated, "endpoint vif bridge vif endpoint"},
		{"vxlan", suite.TwoNodes, "endpoint vif bridge tunnel fabric port port fabric tunnel bridge vif endpoint"},
		{"vxlan", suite.Colocated, "endpoint vif bridge vif endpoint"},
		{"macvlan", suite.TwoNodes, "endpoint fabric port port fabric endpoint"},
		{"macvlan", suite.Colocated, "endpoint endpoint"},
	} {
		t.Run(c.system+"/"+string(c.placement), func(t *testing.T) {
			wants := []func(*sample.Sample) error{}
			if c.placement == suite.TwoNodes {
				wants = append(wants, fabricStandsFor(0.05))
			}
			s := runOK(t, scenario(c.system, func(sc *suite.Scenario) { sc.Placement = c.placement }), wants...)
			var roles []string
			for _, h := range s.Hops {
				roles = append(roles, h.Role)
				if h.RxBytes+h.TxBytes == 0 && h.Role != "bridge" {
					t.Errorf("hop %s of %s counted nothing", h.Device, h.Node)
				}
			}
			if got := strings.Join(roles, " "); got != c.hops {
				t.Errorf("hops: %s\nwant: %s", got, c.hops)
			}
			if s.Metrics[sample.Throughput] < 100e6 {
				t.Errorf("throughput %.0f bit/s", s.Metrics[sample.Throughput])
			}
			if cpu := s.Metrics[sample.SenderCPU]; cpu <= 0 || cpu > 100 {
				t.Errorf("sender CPU %v %%", cpu)
			}
			if len(s.Series) < 5 || len(s.Outputs) != 2 || len(s.Commands) != 2 {
				t.Errorf("%d points, %d outputs, %d commands", len(s.Series), len(s.Outputs), len(s.Commands))
			}
			if c.placement == suite.Colocated {
				return
			}
			if cpu := s.Metrics[sample.ReceiverCPU]; cpu <= 0 || cpu > 100 {
				t.Errorf("receiver CPU %v %%", cpu)
			}
		})
	}
}

// A system takes away all that it made: the nodes are as before.
func TestDetachLeavesTheNodesAsTheyWere(t *testing.T) {
	for _, system := range []string{"raw", "bridge", "vxlan", "macvlan"} {
		e := lab(t, &notebook{}, scenario(system, nil))
		ctx := context.Background()
		b, err := NewBench(ctx, e.Executor, e.ID, &e.Plan.Scenarios[0], 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.detach(ctx); err != nil {
			t.Errorf("%s: %v", system, err)
		}
		for _, n := range b.Testbed.Nodes() {
			s, err := space.Open(n.Place().SpaceBase)
			if err != nil {
				t.Fatal(err)
			}
			links, err := s.Links.LinkList()
			if err != nil {
				t.Error(err)
			}
			var names []string
			for _, l := range links {
				names = append(names, l.Attrs().Name)
			}
			slices.Sort(names)
			if want := []string{n.Place().Fabric[0], "lo"}; !slices.Equal(names, want) {
				t.Errorf("%s: node %s is left with %v, want %v", system, n.Name(), names, want)
			}
			s.Close()
		}
		if left, err := netns.Named(netns.SpacePrefix(e.ID)); err != nil || len(left) != 3 {
			t.Errorf("%s: %v stand (%v); two nodes and the wire shall", system, left, err)
		}
		if err := b.Testbed.Down(ctx); err != nil {
			t.Error(err)
		}
	}
}

// The fourth sign of a faithful wire: the systems stand in the same order of
// receiver and sender cost, paced and unlimited.
func TestTheOrderOfSystemsIsTheSamePacedAndUnlimited(t *testing.T) {
	atRest(t)
	for name, rate := range map[string]int64{"paced": 1e9, "unlimited": 0} {
		cost := func(system string, wants ...func(*sample.Sample) error) float64 {
			s := runOK(t, scenario(system, func(sc *suite.Scenario) {
				sc.Workload.Rate = rate
				sc.Timing.Duration = time.Second
			}), wants...)
			return costPerByte(&s)
		}
		raw := cost("raw")
		vxlan := cost("vxlan", func(s *sample.Sample) error {
			if c := costPerByte(s); c <= raw {
				return fmt.Errorf("%s: VXLAN costs %.3f ns/byte and raw %.3f", name, c, raw)
			}
			return nil
		})
		t.Logf("%s: raw %.3f ns/byte, vxlan %.3f ns/byte", name, raw, vxlan)
	}
}

func costPerByte(s *sample.Sample) float64 {
	return s.Metrics[sample.SenderCPUPerByte] + s.Metrics[sample.ReceiverCPUPerByte]
}

func TestSeveralPairsRunAtOnce(t *testing.T) {
	s := runOK(t, scenario("bridge", func(sc *suite.Scenario) { sc.Pairs = 3 }), fabricStandsFor(0.1))
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
		"rr":       {func(w *suite.Workload) { w.Kind, w.Request, w.Response = suite.TCPRR, 1, 1 }, []sample.Metric{sample.Transactions, sample.LatencyP50, sample.LatencyP99}},
		"crr":      {func(w *suite.Workload) { w.Kind, w.Request, w.Response = suite.TCPCRR, 1, 1 }, []sample.Metric{sample.Transactions}},
		"udp":      {func(w *suite.Workload) { w.Kind, w.Buffer, w.Rate = suite.UDPStream, 1400, 500e6 }, []sample.Metric{sample.Throughput, sample.LossRatio, sample.OfferedRate}},
		"udp rr":   {func(w *suite.Workload) { w.Kind, w.Request, w.Response = suite.UDPRR, 1, 1 }, []sample.Metric{sample.Transactions, sample.LatencyP99}},
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

// A paced sender is not above its rate, unless it makes up for a moment in which
// the machine ran others.
func TestAPacedStreamKeepsItsRate(t *testing.T) {
	runOK(t, scenario("bridge", func(sc *suite.Scenario) { sc.Workload.Rate = 1e9 }), func(s *sample.Sample) error {
		if bps := s.Metrics[sample.Throughput]; bps > 1.02e9 {
			return fmt.Errorf("paced to 1 Gbit/s, measured %.0f", bps)
		}
		return nil
	})
}

// On a machine at rest it is on its rate, and nothing is sent twice.
func TestAPacedStreamIsOnItsRate(t *testing.T) {
	atRest(t)
	runOK(t, scenario("bridge", func(sc *suite.Scenario) {
		sc.Workload.Rate = 1e9
		sc.Timing.Duration = time.Second
	}), func(s *sample.Sample) error {
		bps, again := s.Metrics[sample.Throughput], s.Metrics[sample.Retransmits]
		if bps < 0.95e9 || bps > 1.02e9 || again != 0 {
			return fmt.Errorf("paced to 1 Gbit/s, measured %.0f; %v segments were sent again", bps, again)
		}
		return nil
	})
}

// The person's interrupt ends the run at once, leaves nothing behind, and
// keeps what was measured.
func TestAnInterruptKeepsWhatWasMeasured(t *testing.T) {
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
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestWhatIsDoneOrSkippedIsNotRunAgain(t *testing.T) {
	n := &notebook{}
	e := lab(t, n, scenario("raw", nil), scenario("bridge", nil), scenario("macvlan", nil))
	e.History = []sample.Sample{
		{Scenario: "raw"},
		{Scenario: "bridge", Failure: &sample.Failure{Kind: sample.ToolHung}},
		{Scenario: "bridge", Attempt: 1, Gates: []sample.Gate{{Name: sample.Steal}}},
	}
	e.Skipped = map[string]string{"macvlan": "no macvlan here"}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(n.samples) != 1 || n.samples[0].Scenario != "bridge" || n.samples[0].Attempt != 2 {
		t.Errorf("samples: %+v", n.samples)
	}
}

func TestAProcessOnTheToolsPortIsAFailureWithItsReason(t *testing.T) {
	n := &notebook{}
	e := lab(t, n, scenario("raw", nil))
	n.up = func(b *Bench) {
		go b.Pairs[0].Receiver.Node.Agent().AnswerProof(context.Background(), agent.ReachArgs{Port: basePort, Wait: 5 * time.Second})
		time.Sleep(100 * time.Millisecond)
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := n.samples[0]
	if s.OK() || s.Failure.Kind != sample.ToolFailed || !strings.Contains(s.Failure.Message, "in use") {
		t.Errorf("failure: %v", s.Failure)
	}
}

// An agent that dies takes the trial with it and not the run.
func TestAKilledAgentFailsItsTrialOnly(t *testing.T) {
	n := &notebook{}
	e := lab(t, n, scenario("raw", nil))
	e.Attempts = 4
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
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(n.samples) < 2 || n.samples[0].OK() || !n.samples[len(n.samples)-1].OK() {
		t.Fatalf("samples: %+v", n.samples)
	}
	if !strings.Contains(n.samples[0].Failure.Message, "agent") {
		t.Errorf("failure: %v", n.samples[0].Failure)
	}
}
