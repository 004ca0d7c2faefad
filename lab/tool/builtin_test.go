package tool

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/traffic"
)

var builtinTiming = suite.Timing{Warmup: 100 * time.Millisecond, Duration: 700 * time.Millisecond, Cooldown: 50 * time.Millisecond}

// builtinCaptures are real outputs of the client over loopback. The figures
// were summed from the JSON by another program.
var builtinCaptures = map[string]struct {
	w    suite.Workload
	want sample.Metrics
}{
	"builtin_stream.json": {
		liveStream(func(w *suite.Workload) { w.NoDelay = true }),
		sample.Metrics{
			sample.Throughput: 17084630649.951946, sample.ReceiverThroughput: 17084630649.951946,
			sample.SenderThroughput: 17072767604.140886, sample.ToolRetransmits: 4, sample.Errors: 0,
		},
	},
	"builtin_both.json": {
		liveStream(func(w *suite.Workload) { w.Direction, w.Streams = suite.Both, 2 }),
		sample.Metrics{
			sample.Throughput: 14131046577.402908 + 12037608358.863768, sample.ReceiverThroughput: 14131046577.402908 + 12037608358.863768,
			sample.ForwardThroughput: 14131046577.402908, sample.ReverseThroughput: 12037608358.863768,
			sample.SenderThroughput: 14008028949.692944 + 12109753476.02972, sample.ToolRetransmits: 76 + 53, sample.Errors: 0,
		},
	},
	"builtin_udp.json": {
		liveDatagrams(2e9, nil),
		sample.Metrics{
			sample.Throughput: 1737464704.354037, sample.ReceiverThroughput: 1737464704.354037,
			sample.SenderThroughput: 1999735772.879705, sample.OfferedRate: 2e9,
			sample.DatagramsSent: 124872 / 0.699375597, sample.DatagramsReceived: 108485 / 0.699375597,
			// Of the datagrams sent within the sender's window, by their numbers.
			sample.LossRatio: (124872 - 108485) / 124872.0, sample.LostDatagrams: 124872 - 108485, sample.Reordered: 0, sample.Errors: 0,
		},
	},
	"builtin_udp_overflow.json": {
		liveDatagrams(2e9, func(w *suite.Workload) { w.ReceiveBuffer = 2048 }),
		sample.Metrics{
			sample.Throughput: 1196099871.5200162, sample.ReceiverThroughput: 1196099871.5200162,
			sample.SenderThroughput: 1998828108.4337244, sample.OfferedRate: 2e9,
			sample.DatagramsSent: 53612 / 0.30040322, sample.DatagramsReceived: 32063 / 0.30040322,
			sample.LossRatio: (53612 - 32063) / 53612.0, sample.LostDatagrams: 53612 - 32063, sample.Reordered: 0, sample.Errors: 0,
			// Nothing was lost on the way.
			sample.SocketLoss: (53612 - 32063) / 53612.0, sample.PathLoss: 0, sample.Interruption: 4667828,
		},
	},
	"builtin_udp_tiny.json": {
		liveDatagrams(3.2e6, func(w *suite.Workload) { w.Direction, w.Buffer = suite.Reverse, 8 }),
		sample.Metrics{
			sample.Throughput: 3199476.5029164613, sample.ReceiverThroughput: 3199476.5029164613,
			sample.SenderThroughput: 3199591.5252728183, sample.OfferedRate: 3.2e6,
			sample.DatagramsSent: 35014 / 0.700369401, sample.DatagramsReceived: 34990 / 0.699914501,
			// Too small for a number: loss is the whole run's, reordering unknown.
			sample.LossRatio: 0, sample.Errors: 0,
		},
	},
	"builtin_rr.json": {
		liveRR(suite.TCPRR, 1, 4),
		sample.Metrics{
			sample.Transactions: 13734.845251533343, sample.ToolRetransmits: 0, sample.Errors: 0,
			sample.LatencyMin: 21088, sample.LatencyMean: 72807.16687473987, sample.LatencyP50: 69567, sample.LatencyP90: 86463,
			sample.LatencyP99: 196479, sample.LatencyP999: 339967, sample.LatencyMax: 942591,
		},
	},
	"builtin_rr_load.json": {
		loadedBothWays(),
		sample.Metrics{
			sample.Transactions: 5875.393048907589, sample.LoadThroughput: 14557457935.806273, sample.ToolRetransmits: 14, sample.Errors: 0,
			sample.LatencyMin: 13664, sample.LatencyMean: 170206.12228149356, sample.LatencyP50: 16095, sample.LatencyP90: 63839,
			sample.LatencyP99: 3119103, sample.LatencyP999: 19693567, sample.LatencyMax: 67960831,
		},
	},
	"builtin_crr.json": {
		liveRR(suite.TCPCRR, 1, 4),
		sample.Metrics{
			sample.Transactions: 9724.993765666004, sample.Errors: 0,
			sample.LatencyMin: 52928, sample.LatencyMean: 102828.3185424625, sample.LatencyP50: 75391, sample.LatencyP90: 170879,
			sample.LatencyP99: 486143, sample.LatencyP999: 821247, sample.LatencyMax: 1084415,
		},
	},
	"builtin_udp_rr.json": {
		func() suite.Workload { w := liveRR(suite.UDPRR, 64, 4); w.Streams = 2; return w }(),
		sample.Metrics{
			sample.Transactions: 31829.56406669768, sample.LossRatio: 0, sample.Errors: 0,
			sample.LatencyMin: 11536, sample.LatencyMean: 62593.80706558336, sample.LatencyP50: 56511, sample.LatencyP90: 86719,
			sample.LatencyP99: 155647, sample.LatencyP999: 340991, sample.LatencyMax: 2017279,
		},
	},
}

func capturedBuiltin(t testing.TB, file string) string {
	t.Helper()
	return string(must.Get(os.ReadFile("testdata/" + file))(t))
}

func parseBuiltin(w suite.Workload, stdout string) (Measurement, error) {
	return Builtin{}.Parse(Job{Workload: w, Timing: builtinTiming, MTU: 1500}, map[string]Output{"client": {Stdout: stdout}})
}

func TestBuiltinReadsItsOwnOutputs(t *testing.T) {
	for file, c := range builtinCaptures {
		m, err := parseBuiltin(c.w, capturedBuiltin(t, file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for name, want := range c.want {
			if got, ok := m.Metrics[name]; !ok || math.Abs(got-want) > 1e-9*want {
				t.Errorf("%s: %s is %v (there: %v), want %v", file, name, got, ok, want)
			}
		}
		for name := range m.Metrics {
			if _, ok := c.want[name]; !ok {
				t.Errorf("%s: %s is there and should be absent", file, name)
			}
		}
		if len(m.Warnings) > 0 {
			t.Errorf("%s: warnings %q", file, m.Warnings)
		}
		if c.w.Kind.Exchange() != (m.Latency != "") {
			t.Errorf("%s: a latency histogram of %d characters", file, len(m.Latency))
		}
	}
}

func TestBuiltinsHistogramHasItsPercentiles(t *testing.T) {
	m := must.Get(parseBuiltin(liveRR(suite.TCPRR, 1, 4), capturedBuiltin(t, "builtin_rr.json")))(t)
	h := must.Get(hdrhistogram.Decode([]byte(m.Latency)))(t)
	if h.TotalCount() != 9612 || float64(h.ValueAtPercentile(99)) != m.Metrics[sample.LatencyP99] {
		t.Errorf("%d values, 99th percentile %d: want 9612 and %v", h.TotalCount(), h.ValueAtPercentile(99), m.Metrics[sample.LatencyP99])
	}
}

// doctored changes one field of a capture.
func doctored(t *testing.T, file string, change func(map[string]any)) string {
	t.Helper()
	var doc map[string]any
	must.Succeed(t, json.Unmarshal([]byte(capturedBuiltin(t, file)), &doc))
	change(doc)
	return string(must.Get(json.Marshal(doc))(t))
}

func TestBuiltinOutputsWithoutAResultAreErrors(t *testing.T) {
	stream := liveStream(nil)
	whole := capturedBuiltin(t, "builtin_stream.json")
	for name, stdout := range map[string]string{
		"empty":               "",
		"cut":                 whole[:len(whole)/2],
		"other JSON":          `{"end":{"sum_received":{"bits_per_second":1}}}`,
		"two results":         whole + whole,
		"another version":     doctored(t, "builtin_stream.json", func(d map[string]any) { d["windtunnel_traffic"] = 2 }),
		"no server's figures": doctored(t, "builtin_stream.json", func(d map[string]any) { delete(d, "remote") }),
		"another workload":    capturedBuiltin(t, "builtin_rr.json"),
		"nothing received": doctored(t, "builtin_stream.json", func(d map[string]any) {
			d["remote"].(map[string]any)["flows"] = []any{}
		}),
		"no window": doctored(t, "builtin_stream.json", func(d map[string]any) { d["local"].(map[string]any)["seconds"] = 0 }),
	} {
		m, err := parseBuiltin(stream, stdout)
		var failure *sample.Failure
		if !errors.As(err, &failure) || failure.Kind != sample.NoResult || len(m.Metrics) > 0 {
			t.Errorf("%s: %v, %v: want no result and no figures", name, m.Metrics, err)
		}
	}
	if _, err := (Builtin{}).Parse(Job{Workload: stream}, nil); err == nil {
		t.Error("no output at all is read without an error")
	}
	_, err := Builtin{}.Parse(Job{Workload: stream}, map[string]Output{"client": {Exit: 1, Stderr: "connect: connection refused", Stdout: whole}})
	var failure *sample.Failure
	if !errors.As(err, &failure) || failure.Kind != sample.ToolFailed || !strings.Contains(failure.Message, "connection refused") {
		t.Errorf("a client that failed: %v", err)
	}
}

func TestBuiltinWarnsOfAWindowThatDiffersFromTheRequestedOne(t *testing.T) {
	for want, change := range map[string]func(map[string]any){
		"interrupted": func(d map[string]any) { d["interrupted"] = true },
		"too busy":    func(d map[string]any) { d["remote"].(map[string]any)["seconds"] = 0.9 },
	} {
		m, err := parseBuiltin(liveStream(nil), doctored(t, "builtin_stream.json", change))
		if err != nil || len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], want) {
			t.Errorf("%v, %q: want a warning with %q", err, m.Warnings, want)
		}
	}
}

func TestBuiltinPlansAServerForOneRunAndAClient(t *testing.T) {
	job := Job{
		Workload: suite.Workload{
			Kind: suite.TCPStream, Direction: suite.Both, Streams: 3, Buffer: 131072, SendBuffer: 1000, ReceiveBuffer: 2000,
			NoDelay: true, Sendfile: true, Rate: 4e9, IPVersion: 6,
		},
		Timing: builtinTiming, Sender: netip.MustParseAddr("fd00::1"), Receiver: netip.MustParseAddr("fd00::2"), Port: 5001, Self: "/bin/windtunnel",
	}
	plan, err := Builtin{}.Plan(job)
	if err != nil || len(plan) != 2 {
		t.Fatalf("the plan is %v (%v), want 2 commands", plan, err)
	}
	server, client := plan[0], plan[1]
	if got, want := strings.Join(server.Argv, " "), "/bin/windtunnel traffic server -listen [fd00::2]:5001 -once -wait 30s"; got != want || server.On != OnReceiver || server.Stays {
		t.Errorf("server %s on the %s, want %s", got, server.On, want)
	}
	want := "/bin/windtunnel traffic client -connect [fd00::2]:5001 -kind tcp_stream -streams 3 -direction both -buffer 131072" +
		" -sndbuf 1000 -rcvbuf 2000 -rate 4000000000 -nodelay -sendfile -warmup 100ms -duration 700ms -cooldown 50ms"
	if got := strings.Join(client.Argv, " "); got != want || client.On != OnSender {
		t.Errorf("client\n%s\nwant\n%s", got, want)
	}
	if !server.Ready("ready") || server.Ready("not ready yet") {
		t.Error("the server is ready when it says so and only then")
	}
	if !client.Ready("begun") || client.Ready("ready") {
		t.Error("the client's traffic has begun when it says so and only then")
	}
	job.Workload = liveRR(suite.TCPCRR, 100, 6)
	if plan, err = (Builtin{}).Plan(job); err != nil || !slices.Contains(plan[1].Argv, "-request") || slices.Contains(plan[1].Argv, "-buffer") {
		t.Errorf("%v, %v: want sizes of request and response, and no buffer", plan, err)
	}
	job.Workload = loadedRR()
	job.Workload.IPVersion = 6
	if plan, err = (Builtin{}).Plan(job); err != nil || !strings.Contains(strings.Join(plan[1].Argv, " "), "-load 8 -direction reverse") {
		t.Errorf("%v, %v: want the number of streams and their direction", plan, err)
	}
	job.Self = ""
	if _, err := (Builtin{}).Plan(job); err == nil {
		t.Error("a plan without the program's path is made")
	}
}

// loadedRR is request/response beside eight streams to the client.
func loadedRR() suite.Workload {
	w := liveRR(suite.TCPRR, 1, 4)
	w.Load, w.Direction = 8, suite.Reverse
	return w
}

// loadedBothWays is request/response beside two streams in each direction.
func loadedBothWays() suite.Workload {
	w := liveRR(suite.TCPRR, 1, 4)
	w.Load, w.Direction = 2, suite.Both
	return w
}

func TestRoundTripsOverTimeAreRead(t *testing.T) {
	m := must.Get(parseBuiltin(loadedBothWays(), capturedBuiltin(t, "builtin_rr_load.json")))(t)
	if want := (sample.RoundTrips{At: -0.091, Count: 343, Mean: 53415, Max: 1395011}); len(m.Course) != 25 || m.Course[0] != want {
		t.Errorf("%d slices, the first %+v, want 25 and %+v", len(m.Course), m.Course, want)
	}
}

func TestALoadThatMovedNothingIsAnError(t *testing.T) {
	stuck := doctored(t, "builtin_rr_load.json", func(d map[string]any) {
		for _, end := range []string{"local", "remote"} {
			e := d[end].(map[string]any)
			e["flows"] = e["flows"].([]any)[:1]
		}
	})
	if m, err := parseBuiltin(loadedBothWays(), stuck); err == nil || !strings.Contains(err.Error(), "beside the requests") {
		t.Errorf("%v, %v: want no result", m.Metrics, err)
	}
}

func TestBuiltinMakesEveryWorkload(t *testing.T) {
	for _, c := range builtinCaptures {
		if err := (Builtin{}).Supports(c.w); err != nil {
			t.Errorf("%+v: %v", c.w, err)
		}
	}
	must.Fail(t, (Builtin{}).Supports(liveDatagrams(0, func(w *suite.Workload) { w.Buffer = 70000 })), "65507")
}

func FuzzBuiltin(f *testing.F) {
	kinds := []suite.Workload{liveStream(nil), liveDatagrams(0, nil), liveRR(suite.TCPRR, 1, 4), liveRR(suite.TCPCRR, 1, 4), liveRR(suite.UDPRR, 64, 4)}
	for file := range builtinCaptures {
		for i := range kinds {
			f.Add(i, capturedBuiltin(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, i int, stdout string) {
		if i < 0 || i >= len(kinds) {
			t.Skip("no such workload")
		}
		m, err := parseBuiltin(kinds[i], stdout)
		honest(t, m, err)
	})
}

// A busy CPU moves the edges of a receiver's window. Received rates are of this window and
// not of the planned one.
func TestTheGeneratorsRatesAreOfTheWindowsOfItsReceivers(t *testing.T) {
	r := traffic.Result{Remote: &traffic.End{}}
	add := func(to *traffic.End, role string, began int64, seconds float64) {
		f := traffic.Flow{Began: began, Seconds: seconds}
		f.Role = role
		to.Flows = append(to.Flows, f)
	}
	add(&r.Local, "send", 1_000, 0.7)
	add(r.Remote, "receive", 1_500, 0.9)
	add(r.Remote, "receive", 2_500, 1.1)
	began, ended := received(&r)
	if began != 2_000 || ended != 1e9+2_000 {
		t.Errorf("rates are of %d to %d ns, want 2000 to 1000002000", began, ended)
	}
}

// The loss on the way is a difference: rounding must not make it negative.
func TestLossAtTheSocketAloneIsNotANegativeLossOnThePath(t *testing.T) {
	for sent := int64(1); sent < 60; sent++ {
		for lost := int64(1); lost <= sent; lost++ {
			from := traffic.Flow{Seconds: 1, Datagrams: sent}
			to := traffic.Flow{Seconds: 1, Numbered: &traffic.Numbered{Received: sent - lost, Missing: lost, Overflow: lost}}
			from.Role, to.Role = "send", "receive"
			r := &traffic.Result{Local: traffic.End{Seconds: 1, Flows: []traffic.Flow{from, to}}}
			ms := sample.Metrics{}
			builtinStream(r, liveDatagrams(2e9, nil), ms)
			if way := ms[sample.PathLoss]; way != 0 {
				t.Fatalf("of %d datagrams the socket lost %d, and %g was lost on the way", sent, lost, way)
			}
		}
	}
}
