package tool

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// captured is one real output and what has to be read from it.
type captured struct {
	name    string
	tool    Tool
	w       suite.Workload
	timing  suite.Timing
	outputs map[string]string // role → file in testdata
	want    sample.Metrics
	warns   string // part of a warning, where there has to be one
}

// short is the timing that most fixtures were captured with.
var short = suite.Timing{Warmup: 200 * time.Millisecond, Duration: 700 * time.Millisecond, Cooldown: 100 * time.Millisecond}

func seconds(n int) suite.Timing { return suite.Timing{Duration: time.Duration(n) * time.Second} }

func client(file string) map[string]string { return map[string]string{"client": file} }

func change(w suite.Workload, how func(*suite.Workload)) suite.Workload {
	how(&w)
	return w
}

var capturedOutputs = []captured{
	{
		name: "iperf3 without intervals of the server", tool: Iperf3{}, w: liveStream(nil), timing: seconds(3),
		outputs: client("iperf3_tcp.json"),
		want: sample.Metrics{
			sample.Throughput:         18050323967.312214, // end.sum_received
			sample.ReceiverThroughput: 18050323967.312214,
			sample.SenderThroughput:   18049066819.166908, // end.sum_sent
			sample.ToolRetransmits:    23134,
		},
	},
	{
		name: "iperf3 UDP without intervals of the server", tool: Iperf3{}, w: liveDatagrams(0, nil), timing: seconds(2),
		outputs: client("iperf3_udp.json"),
		want: sample.Metrics{
			sample.Throughput:         1561730681.651737, // end.sum_received, not end.sum
			sample.ReceiverThroughput: 1561730681.651737,
			sample.SenderThroughput:   4836179998.07017,
			sample.LossRatio:          584745. / 863680,
			sample.Reordered:          0,
			sample.DatagramsSent:      863680 / 2.000177,
			sample.DatagramsReceived:  (863680 - 584745) / 2.000391,
		},
	},
	{
		name: "iperf3 with both ends' intervals", tool: Iperf3{}, w: liveStream(nil), timing: short,
		outputs: client("iperf3_both_ends.json"),
		want: sample.Metrics{
			sample.Throughput:         11276010702.557467,
			sample.ReceiverThroughput: 11276010702.557467,
			sample.SenderThroughput:   11290414306.779202,
			sample.ToolRetransmits:    0,
		},
	},
	{
		name: "iperf3 reverse", tool: Iperf3{}, timing: short,
		w:       liveStream(func(w *suite.Workload) { w.Direction = suite.Reverse }),
		outputs: client("iperf3_reverse.json"),
		want: sample.Metrics{
			sample.Throughput:         7794195058.656301, // the client's
			sample.ReceiverThroughput: 7794195058.656301,
			sample.SenderThroughput:   7749554451.530445, // the server's
			sample.ToolRetransmits:    0,
		},
	},
	{
		name: "iperf3 both directions", tool: Iperf3{}, timing: short,
		w:       liveStream(func(w *suite.Workload) { w.Direction = suite.Both }),
		outputs: client("iperf3_bidir.json"),
		want: sample.Metrics{
			sample.ForwardThroughput:  6912147228.953135,
			sample.ReverseThroughput:  6075707377.692975,
			sample.Throughput:         6912147228.953135 + 6075707377.692975,
			sample.ReceiverThroughput: 6912147228.953135 + 6075707377.692975,
			sample.SenderThroughput:   6892365050.020188 + 6069686279.010333,
			sample.ToolRetransmits:    1,
		},
	},
	{
		name: "iperf3 UDP with both ends' intervals", tool: Iperf3{}, w: liveDatagrams(0, nil), timing: short,
		outputs: client("iperf3_udp_both_ends.json"),
		want: sample.Metrics{
			sample.Throughput:         1286255033.8067906,
			sample.ReceiverThroughput: 1286255033.8067906,
			sample.SenderThroughput:   3874908563.7482886,
			sample.LossRatio:          161784.7808192543 / 242175.7204321787,
			sample.Reordered:          0,
			sample.DatagramsSent:      345973.9789060972,
			sample.DatagramsReceived:  345965.3149031125 - 231121.11545607756,
		},
	},
	{
		name: "iperf3 UDP both directions at a rate", tool: Iperf3{}, timing: short,
		w:       liveDatagrams(pace, func(w *suite.Workload) { w.Direction = suite.Both }),
		outputs: client("iperf3_udp_bidir.json"),
		want: sample.Metrics{
			sample.ForwardThroughput:  199995715.98569444,
			sample.ReverseThroughput:  200006267.43677652,
			sample.Throughput:         199995715.98569444 + 200006267.43677652,
			sample.ReceiverThroughput: 199995715.98569444 + 200006267.43677652,
			sample.SenderThroughput:   199990292.5520046 + 200011703.1863344,
			sample.OfferedRate:        2 * pace,
			sample.LossRatio:          0,
			sample.Reordered:          0,
			sample.DatagramsSent:      17856.276120714694 + 17858.18778449414,
			sample.DatagramsReceived:  17857.702449712186 + 17856.760355865572,
		},
	},
	{
		name: "iperf3 whole run in place of the window", tool: Iperf3{}, w: liveStream(nil),
		timing:  suite.Timing{Warmup: time.Second, Duration: 2 * time.Second},
		outputs: client("iperf3_tcp.json"),
		want: sample.Metrics{
			sample.Throughput:         18050323967.312214,
			sample.ReceiverThroughput: 18050323967.312214,
			sample.SenderThroughput:   18049066819.166908,
			sample.ToolRetransmits:    23134,
		},
		warns: "warm-up included",
	},
	{
		name: "netperf stream", tool: Netperf{}, w: liveStream(nil), timing: short,
		outputs: client("netperf_stream.txt"),
		want: sample.Metrics{
			sample.Throughput:       9482817874.9174,
			sample.SenderThroughput: 9482817874.9174,
			sample.ToolRetransmits:  2398,
		},
	},
	{
		name: "netperf reverse", tool: Netperf{}, timing: short,
		w:       liveStream(func(w *suite.Workload) { w.Direction = suite.Reverse }),
		outputs: client("netperf_maerts.txt"),
		want: sample.Metrics{
			sample.Throughput:         11625623797.67373,
			sample.ReceiverThroughput: 11625623797.67373,
			sample.ToolRetransmits:    911,
		},
	},
	{
		name: "netperf both directions", tool: Netperf{}, timing: short,
		w:       liveStream(func(w *suite.Workload) { w.Direction = suite.Both }),
		outputs: map[string]string{"client1": "netperf_both_client1.txt", "client2": "netperf_both_client2.txt"},
		want: sample.Metrics{
			sample.Throughput:        15879864763.5707 + 14485657199.746843,
			sample.ForwardThroughput: 15879864763.5707,
			sample.ReverseThroughput: 14485657199.746843,
			sample.ToolRetransmits:   1,
		},
	},
	{
		name: "netperf sendfile, classic output", tool: Netperf{}, timing: short,
		w:       liveStream(func(w *suite.Workload) { w.Sendfile = true }),
		outputs: client("netperf_sendfile.txt"),
		want: sample.Metrics{
			sample.Throughput:       17809715361.297432,
			sample.SenderThroughput: 17809715361.297432,
		},
	},
	{
		name: "netperf classic with CPU columns", tool: Netperf{}, timing: seconds(3),
		w:       liveStream(func(w *suite.Workload) { w.Sendfile = true }),
		outputs: client("np_classic.txt"),
		want: sample.Metrics{
			sample.Throughput: 9084e6, sample.SenderThroughput: 9084e6,
			sample.ToolSenderCPU: 84.17, sample.ToolReceiverCPU: 84.17, // of both ends together
			sample.ToolSenderCPUPerByte: 1.518 * 1000 / 1024, sample.ToolReceiverCPUPerByte: 1.518 * 1000 / 1024,
		},
	},
	{
		name: "netperf without interim results", tool: Netperf{}, w: liveStream(nil),
		timing:  suite.Timing{Warmup: time.Second, Duration: 2 * time.Second},
		outputs: client("np_keyval.txt"),
		want: sample.Metrics{
			sample.Throughput:       4102.80e6,
			sample.SenderThroughput: 4102.80e6,
			sample.ToolRetransmits:  9093,
			sample.ToolSenderCPU:    70.47, sample.ToolReceiverCPU: 70.47,
			sample.ToolSenderCPUPerByte: 2.814 * 1000 / 1024, sample.ToolReceiverCPUPerByte: 2.814 * 1000 / 1024,
		},
		warns: "did not print interim results",
	},
	{
		name: "netperf stream with its CPU", tool: Netperf{}, w: liveStream(nil), timing: short,
		outputs: client("netperf_cpu_stream.txt"),
		want: sample.Metrics{
			sample.Throughput:       3006536572.147474,
			sample.SenderThroughput: 3006536572.147474,
			sample.ToolRetransmits:  11,
			sample.ToolSenderCPU:    100, sample.ToolReceiverCPU: 100,
			sample.ToolSenderCPUPerByte: 5.245 * 1000 / 1024, sample.ToolReceiverCPUPerByte: 5.245 * 1000 / 1024,
		},
	},
	{
		name: "netperf CPU of two processes is their mean", tool: Netperf{}, timing: short,
		w:       liveStream(func(w *suite.Workload) { w.Direction = suite.Both }),
		outputs: map[string]string{"client1": "netperf_cpu_both1.txt", "client2": "netperf_cpu_both3.txt"},
		want: sample.Metrics{
			sample.Throughput:        727380950.4516656 + 423010032.77249473,
			sample.ForwardThroughput: 727380950.4516656,
			sample.ReverseThroughput: 423010032.77249473,
			sample.ToolRetransmits:   4,
			sample.ToolSenderCPU:     100, sample.ToolReceiverCPU: 100,
		},
	},
	{
		name: "netperf connect/request/response with more CPU than there is", tool: Netperf{}, w: liveRR(suite.TCPCRR, 1, 4), timing: short,
		outputs: client("netperf_cpu_crr.txt"),
		want: sample.Metrics{
			sample.Transactions:  14448.304753528086,
			sample.LatencyMin:    27e3,
			sample.LatencyMean:   66470,
			sample.LatencyP50:    30e3,
			sample.LatencyP90:    47e3,
			sample.LatencyP99:    307e3,
			sample.LatencyMax:    67524e3,
			sample.ToolSenderCPU: 100,
		},
		warns: "exceeds all CPUs",
	},
	{
		name: "netperf UDP stream", tool: Netperf{}, w: liveDatagrams(0, nil), timing: short,
		outputs: client("netperf_udp.txt"),
		want: sample.Metrics{
			sample.Throughput:         1519.92e6,
			sample.ReceiverThroughput: 1519.92e6,
			sample.SenderThroughput:   3681.55e6,
			sample.DatagramsSent:      328871,
			sample.DatagramsReceived:  135774,
			sample.LossRatio:          1 - 135774./328871,
		},
	},
	{
		name: "netperf request/response", tool: Netperf{}, w: liveRR(suite.TCPRR, 1, 4), timing: short,
		outputs: client("netperf_rr.txt"),
		want: sample.Metrics{
			sample.Transactions: 145322.11315229145,
			sample.LatencyMin:   5e3,
			sample.LatencyMean:  6800,
			sample.LatencyP50:   6e3,
			sample.LatencyP90:   7e3,
			sample.LatencyP99:   18e3,
			sample.LatencyMax:   1832e3,
		},
	},
	{
		name: "netperf request/response, two at once", tool: Netperf{}, timing: short,
		w:       change(liveRR(suite.TCPRR, 1, 4), func(w *suite.Workload) { w.Streams = 2 }),
		outputs: map[string]string{"client1": "netperf_rr2_client1.txt", "client2": "netperf_rr2_client2.txt"},
		want: sample.Metrics{
			sample.Transactions: 148308.50042970295 + 149209.62844309604,
			sample.LatencyMin:   5e3,
			sample.LatencyMean:  (7350*148308.50042970295 + 7390*149209.62844309604) / (148308.50042970295 + 149209.62844309604),
			sample.LatencyMax:   4522e3,
		},
		warns: "percentiles are omitted",
	},
	{
		name: "netperf connect/request/response", tool: Netperf{}, w: liveRR(suite.TCPCRR, 1, 4), timing: short,
		outputs: client("netperf_crr.txt"),
		want: sample.Metrics{
			sample.Transactions: 36033.95181726817,
			sample.LatencyMin:   23e3,
			sample.LatencyMean:  28290,
			sample.LatencyP50:   26e3,
			sample.LatencyP90:   31e3,
			sample.LatencyP99:   62e3,
			sample.LatencyMax:   2357e3,
		},
	},
	{
		name: "qperf stream", tool: Qperf{}, w: liveStream(nil), timing: seconds(2),
		outputs: client("qperf_v.txt"),
		want: sample.Metrics{
			sample.Throughput:         1469906944 * 8,
			sample.ReceiverThroughput: 1469906944 * 8,
			sample.SenderThroughput:   2944008192 / 2 * 8,
		},
	},
	{
		name: "qperf stream in units of its own choice", tool: Qperf{}, w: liveStream(nil), timing: seconds(2),
		outputs: client("qperf_seed.txt"),
		want:    sample.Metrics{sample.Throughput: 1.48e9 * 8, sample.ReceiverThroughput: 1.48e9 * 8},
	},
	{
		name: "qperf UDP after other tests", tool: Qperf{}, w: liveDatagrams(0, nil), timing: seconds(2),
		outputs: client("qperf_v.txt"),
		want: sample.Metrics{
			sample.Throughput:         1329790976 * 8,
			sample.ReceiverThroughput: 1329790976 * 8,
			sample.SenderThroughput:   1341374464 * 8,
			sample.DatagramsSent:      81871. / 2,
			sample.DatagramsReceived:  81164. / 2,
			sample.LossRatio:          1 - 81164./81871,
		},
	},
	{
		name: "qperf UDP", tool: Qperf{}, w: liveDatagrams(0, nil), timing: short,
		outputs: client("qperf_udp.txt"),
		want: sample.Metrics{
			sample.Throughput:         237480600 * 8,
			sample.ReceiverThroughput: 237480600 * 8,
			sample.SenderThroughput:   550216800 * 8,
			sample.DatagramsSent:      393012,
			sample.DatagramsReceived:  169629,
			sample.LossRatio:          1 - 169629./393012,
		},
		warns: "whole run of 1s",
	},
	{
		name: "qperf latency is doubled", tool: Qperf{}, w: liveRR(suite.TCPRR, 1, 6), timing: seconds(1),
		outputs: client("qperf_rr.txt"),
		want:    sample.Metrics{sample.LatencyMean: 2 * 3515, sample.Transactions: 142260},
	},
	{
		name: "qperf latency in microseconds", tool: Qperf{}, w: liveRR(suite.TCPRR, 1, 4), timing: seconds(2),
		outputs: client("qperf_seed.txt"),
		want:    sample.Metrics{sample.LatencyMean: 9400, sample.Transactions: 1e9 / 9400},
	},
	{
		name: "qperf stream with its CPU and conf", tool: Qperf{}, w: liveStream(nil), timing: seconds(1),
		outputs: client("qperf_conf.txt"),
		want: sample.Metrics{
			sample.Throughput:         453378048 * 8,
			sample.ReceiverThroughput: 453378048 * 8,
			sample.SenderThroughput:   457834496 * 8,
			sample.ToolSenderCPU:      100, // 200 % of two
			sample.ToolReceiverCPU:    100,
		},
	},
	{
		name: "sockperf round trips", tool: Sockperf{}, w: liveRR(suite.TCPRR, 14, 4), timing: short,
		outputs: client("sockperf_rtt.txt"),
		want: sample.Metrics{
			sample.Transactions: 82111 / 0.55,
			sample.LatencyMin:   5770,
			sample.LatencyMean:  6659,
			sample.LatencyP50:   6415,
			sample.LatencyP90:   6706,
			sample.LatencyP99:   12800,
			sample.LatencyP999:  30489,
			sample.LatencyMax:   243810,
		},
	},
	{
		name: "sockperf half round trips are doubled", tool: Sockperf{}, w: liveRR(suite.TCPRR, 14, 4), timing: seconds(2),
		outputs: client("sockperf_pp.txt"),
		want: sample.Metrics{
			sample.Transactions: 284812 / 1.55,
			sample.LatencyMin:   2 * 2474,
			sample.LatencyMean:  2 * 2706,
			sample.LatencyP50:   2 * 2595,
			sample.LatencyP90:   2 * 2752,
			sample.LatencyP99:   2 * 3963,
			sample.LatencyP999:  2 * 18452,
			sample.LatencyMax:   2 * 99438,
		},
	},
	{
		name: "sockperf UDP by what the server received", tool: Sockperf{}, w: liveDatagrams(0, nil), timing: seconds(1),
		outputs: map[string]string{"client": "sockperf_udp.txt", "server": "sockperf_udp_server.txt"},
		want: sample.Metrics{
			sample.Throughput:         144926 * 1400 * 8 / 1.002,
			sample.ReceiverThroughput: 144926 * 1400 * 8 / 1.002,
			sample.SenderThroughput:   298832 * 1400 * 8 / 1.002,
			sample.DatagramsSent:      298832 / 1.002,
			sample.DatagramsReceived:  144926 / 1.002,
			sample.LossRatio:          1 - 144926./298832,
		},
	},
	{
		name: "sockperf TCP stream", tool: Sockperf{}, timing: seconds(1),
		w:       liveStream(func(w *suite.Workload) { w.Buffer = 60000 }),
		outputs: map[string]string{"client": "sockperf_stream.txt", "server": "sockperf_stream_server.txt"},
		want: sample.Metrics{
			sample.Throughput:         23269 * 60000 * 8 / 1.001,
			sample.ReceiverThroughput: 23269 * 60000 * 8 / 1.001,
			sample.SenderThroughput:   23269 * 60000 * 8 / 1.001,
		},
	},
	{
		name: "sockperf TCP stream whose server was cut off", tool: Sockperf{}, timing: seconds(2),
		w:       liveStream(func(w *suite.Workload) { w.Buffer = 1400 }),
		outputs: map[string]string{"client": "sockperf_tp.txt", "server": "sp_srv.txt"},
		want: sample.Metrics{
			sample.Throughput:       175291 * 1400 * 8 / 2.018,
			sample.SenderThroughput: 175291 * 1400 * 8 / 2.018,
		},
		warns: "what the client sent",
	},
	{
		name: "ntttcp text", tool: NTttcp{}, w: liveStream(nil), timing: seconds(3),
		outputs: map[string]string{"client": "nt_s.txt", "server": "nt_r.txt"},
		want: sample.Metrics{
			sample.Throughput:         5138676256. * 8 / 3.11,
			sample.ReceiverThroughput: 5138676256. * 8 / 3.11,
			sample.SenderThroughput:   5172101120. * 8 / 3.25,
			sample.ToolRetransmits:    18088,
		},
	},
	{
		name: "NTttcp's form of the generator", tool: BuiltinNTttcp{}, timing: seconds(1),
		w:       liveStream(func(w *suite.Workload) { w.Streams = 2 }),
		outputs: map[string]string{"client": "builtin_ntttcp_client.txt", "server": "builtin_ntttcp_server.txt"},
		want: sample.Metrics{
			sample.Throughput:              3655185000 * 8 / 1.000193608,
			sample.ReceiverThroughput:      3655185000 * 8 / 1.000193608,
			sample.SenderThroughput:        3655644128 * 8 / 1.000738881,
			sample.ToolRetransmits:         2 * 1087, // both ends count the whole machine, and here it is the same machine
			sample.ToolSenderRetransmits:   1087,
			sample.ToolReceiverRetransmits: 1087,
			sample.ToolSenderCPU:           98.48484848499604,
			sample.ToolReceiverCPU:         98.48484848499604,
			sample.Errors:                  0,
		},
	},
	{
		name: "NTttcp's form of the generator, UDP", tool: BuiltinNTttcp{}, timing: seconds(1), w: liveDatagrams(pace, nil),
		outputs: map[string]string{"client": "builtin_ntttcp_udp_client.txt", "server": "builtin_ntttcp_udp_server.txt"},
		want: sample.Metrics{
			sample.Throughput:         20168400 * 8 / 1.011904709,
			sample.ReceiverThroughput: 20168400 * 8 / 1.011904709,
			sample.SenderThroughput:   24994200 * 8 / 0.999910039,
			sample.OfferedRate:        pace,
			sample.DatagramsSent:      24994200 / 0.999910039 / 1400,
			sample.DatagramsReceived:  20168400 / 1.011904709 / 1400,
			sample.LossRatio:          1 - (20168400/1.011904709)/(24994200/0.999910039),
			sample.ToolSenderCPU:      80.21390374310587,
			sample.ToolReceiverCPU:    80.21390374310587,
			sample.Errors:             3453 + 3454,
		},
	},
	{
		name: "fio streams", tool: Fio{}, timing: short, w: liveStream(func(w *suite.Workload) { w.Streams = 2 }),
		outputs: map[string]string{"client": "fio_stream_client.txt", "server": "fio_stream_server.txt"},
		want: sample.Metrics{
			sample.Throughput:         13135902662.808987,
			sample.ReceiverThroughput: 13135902662.808987,
			sample.SenderThroughput:   12202906691.933252,
		},
	},
	{
		name: "fio both directions whose server ended early", tool: Fio{}, timing: short,
		w:       liveStream(func(w *suite.Workload) { w.Direction = suite.Both }),
		outputs: map[string]string{"client": "fio_both_client.txt", "server": "fio_both_server.txt"},
		want: sample.Metrics{
			sample.ForwardThroughput: 6100679366.530612, // what the client sent
			sample.ReverseThroughput: 6083337485.517806,
			sample.Throughput:        6100679366.530612 + 6083337485.517806,
		},
		warns: "printed no figures for the window",
	},
	{
		name: "fio UDP streams at a rate", tool: Fio{}, timing: short,
		w:       liveDatagrams(pace, func(w *suite.Workload) { w.Streams = 2 }),
		outputs: map[string]string{"client": "fio_udp_client.txt", "server": "fio_udp_server.txt"},
		want: sample.Metrics{
			sample.Throughput:         199323290.31358883,
			sample.ReceiverThroughput: 199323290.31358883,
			sample.SenderThroughput:   200464000,
			sample.OfferedRate:        pace,
			sample.DatagramsSent:      17898.57142857143,
			sample.DatagramsReceived:  17796.722349427575,
			sample.LossRatio:          1 - 17796.722349427575/17898.57142857143,
		},
	},
	{
		name: "fio request/response, two at once", tool: Fio{}, timing: short,
		w:       change(liveRR(suite.TCPRR, 64, 4), func(w *suite.Workload) { w.Streams = 2 }),
		outputs: client("fio_rr_client.txt"),
		want: sample.Metrics{
			sample.Transactions: 23696.87675070028,
			sample.LatencyMin:   6554,
			sample.LatencyMean:  71420.404229,
			sample.LatencyP50:   51456,
			sample.LatencyP90:   104960,
			sample.LatencyP99:   448512,
			sample.LatencyP999:  3751936,
			sample.LatencyMax:   13155703,
		},
	},
}

func (c captured) job() Job { return Job{Workload: c.w, Timing: c.timing, MTU: 1500} }

func (c captured) read(t testing.TB) map[string]Output {
	t.Helper()
	outputs := map[string]Output{}
	for role, file := range c.outputs {
		text := must.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
		outputs[role] = Output{Stdout: string(text)}
	}
	return outputs
}

func TestParsersReadCapturedOutputsExactly(t *testing.T) {
	for _, c := range capturedOutputs {
		t.Run(c.name, func(t *testing.T) {
			m := must.Get(c.tool.Parse(c.job(), c.read(t)))(t)
			// The last bits depend on the order of additions.
			must.Equal(t, c.want, m.Metrics, cmpopts.EquateApprox(1e-12, 0))
			warned := strings.Join(m.Warnings, "\n")
			if c.warns == "" && warned != "" {
				t.Errorf("warns without need: %s", warned)
			}
			if !strings.Contains(warned, c.warns) {
				t.Errorf("warnings are %q, want one with %q", m.Warnings, c.warns)
			}
		})
	}
}

// honest asserts what holds of every answer of a parser: an error, or figures
// that can be.
func honest(t *testing.T, m Measurement, err error) {
	t.Helper()
	if err != nil {
		if len(m.Metrics) != 0 {
			t.Errorf("an error comes with figures: %v, %v", err, m.Metrics)
		}
		if err.Error() == "" {
			t.Error("the error says nothing")
		}
		return
	}
	if m.Metrics[sample.Throughput] <= 0 && m.Metrics[sample.Transactions] <= 0 {
		t.Errorf("neither an error nor a result: %v", m.Metrics)
	}
	for name, v := range m.Metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
}

// TestTruncatedOutputsAreErrorsOrPartsOfTheResult cuts every capture at its
// lines. What is still read must be what the whole says, or a figure of the
// whole run in place of the window's.
func TestTruncatedOutputsAreErrorsOrPartsOfTheResult(t *testing.T) {
	for _, c := range capturedOutputs {
		t.Run(c.name, func(t *testing.T) {
			whole := c.read(t)
			full := must.Get(c.tool.Parse(c.job(), whole))(t)
			for role, out := range whole {
				lines := strings.SplitAfter(strings.TrimRight(out.Stdout, "\n"), "\n")
				const cuts = 150 // of a long output; every line of a short one
				for n := 0; n < len(lines); n += 1 + len(lines)/cuts {
					cut := map[string]Output{}
					for r, o := range whole {
						cut[r] = o
					}
					cut[role] = Output{Stdout: strings.Join(lines[:n], "")}
					m, err := c.tool.Parse(c.job(), cut)
					honest(t, m, err)
					if n == 0 && role == "client" && err == nil {
						t.Errorf("an empty output of the %s is no error", role)
					}
					for name, v := range m.Metrics {
						want, known := full.Metrics[name]
						if !known || math.Abs(v-want) > 0.35*want {
							t.Errorf("%s cut to %d lines: %s is %v, the whole says %v", role, n, name, v, want)
						}
					}
				}
			}
		})
	}
}

func TestGarbageIsAnError(t *testing.T) {
	garbage := []string{"", "\n", "Killed\n", "{", "{}", "[]", "null", "<", "<a/>", "<ntttcps/>", `{"ntttcps":{}}`,
		"THROUGHPUT=", "THROUGHPUT=0", "THROUGHPUT=NaN", "THROUGHPUT=Inf", "THROUGHPUT=-3", "=\n==\n[=]",
		"NETPERF_ENDING[0]=1", "tcp_bw:", "tcp_bw:\n bw = -1 bytes/sec", "tcp_bw:\n bw = nan bytes/sec", "tcp_lat:\n latency = 0 ns",
		"\x1b[", "sockperf: Total of 0 messages sent in 0 sec", "sockperf: Total of 5 messages sent in 0 sec",
		`{"end":{"sum_received":{"bits_per_second":-5}}}`, `{"end":{"sum_received":{"bits_per_second":0}}}`,
		`{"end":{"sum_received":{"bits_per_second":1e999}}}`, strings.Repeat("x", 1<<16), "\xff\xfe\x00"}
	for _, c := range capturedOutputs {
		for _, text := range garbage {
			outputs := map[string]Output{}
			for role := range c.outputs {
				outputs[role] = Output{Stdout: text}
			}
			m, err := c.tool.Parse(c.job(), outputs)
			if err == nil {
				t.Errorf("%s reads %v from %q", c.tool.Name(), m.Metrics, text)
			}
			honest(t, m, err)
		}
	}
}

func TestAbsentOutputsAreErrors(t *testing.T) {
	for _, c := range capturedOutputs {
		for _, outputs := range []map[string]Output{nil, {}, {"server": {Stdout: "well"}}} {
			if m, err := c.tool.Parse(c.job(), outputs); err == nil {
				t.Errorf("%s reads %v from nothing", c.name, m.Metrics)
			}
		}
	}
}

func TestAClientThatFailedIsAFailedTool(t *testing.T) {
	for _, c := range capturedOutputs {
		for _, exit := range []int{1, 24, 255, -1} {
			outputs := c.read(t)
			for role, out := range outputs {
				if role == "server" {
					continue
				}
				out.Exit, out.Stderr = exit, "no route to host\n"
				outputs[role] = out
			}
			m, err := c.tool.Parse(c.job(), outputs)
			var failure *sample.Failure
			if !errors.As(err, &failure) || failure.Kind != sample.ToolFailed || !strings.Contains(failure.Message, "no route to host") {
				t.Errorf("%s that exited with %d gives %v, %v", c.name, exit, m.Metrics, err)
			}
		}
	}
}

func TestAServersExitCodeIsIgnored(t *testing.T) {
	for _, c := range capturedOutputs {
		outputs := c.read(t)
		out, ran := outputs["server"]
		if !ran {
			continue
		}
		out.Exit = -1
		outputs["server"] = out
		if _, err := c.tool.Parse(c.job(), outputs); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestIperf3ErrorWithExitZeroIsAFailedTool(t *testing.T) {
	c := captured{outputs: client("iperf3_refused.json")}
	_, err := Iperf3{}.Parse(Job{Workload: liveStream(nil), Timing: short}, c.read(t))
	var failure *sample.Failure
	if !errors.As(err, &failure) || failure.Kind != sample.ToolFailed || !strings.Contains(failure.Message, "Connection refused") {
		t.Errorf("a refused connection gives %v", err)
	}
}

func TestSockperfUDPWithoutTheServersCountIsAnError(t *testing.T) {
	c := captured{outputs: map[string]string{"client": "sockperf_udp.txt", "server": "sp_srv.txt"}}
	m, err := Sockperf{}.Parse(Job{Workload: liveDatagrams(0, nil), Timing: short}, c.read(t))
	if err == nil {
		t.Errorf("what the sender sent is taken for what arrived: %v", m.Metrics)
	}
}

func TestImpossibleFiguresAreErrors(t *testing.T) {
	replace := func(file, old, new string) map[string]Output {
		text := captured{outputs: client(file)}.read(t)["client"].Stdout
		if !strings.Contains(text, old) {
			t.Fatalf("%s does not contain %q", file, old)
		}
		return map[string]Output{"client": {Stdout: strings.Replace(text, old, new, 1)}}
	}
	cases := []struct {
		tool    Tool
		w       suite.Workload
		outputs map[string]Output
	}{
		{Iperf3{}, liveStream(nil), replace("iperf3_tcp.json", "18050323967.312214", "-1")},
		{Iperf3{}, liveStream(nil), replace("iperf3_tcp.json", "18050323967.312214", "null")},
		{Iperf3{}, liveStream(nil), replace("iperf3_tcp.json", "18049066819.166908", "-7")},
		{Iperf3{}, liveDatagrams(0, nil), replace("iperf3_udp.json", `"bytes":	390509000,
			"bits_per_second":	1561730681.651737`, `"bytes":	0, "bits_per_second":	0`)},
		{Netperf{}, liveStream(nil), replace("np_keyval.txt", "THROUGHPUT=4102.80", "THROUGHPUT=nan")},
		{Netperf{}, liveStream(nil), replace("np_keyval.txt", "10^6bits/s", "furlongs/s")},
		{Netperf{}, liveStream(nil), replace("netperf_stream.txt", "NETPERF_INTERVAL[0]=", "NETPERF_INTERVAL[0]=-")},
		{Netperf{}, liveRR(suite.TCPRR, 1, 4), replace("netperf_rr.txt", "P99_LATENCY=18", "P99_LATENCY=-18")},
		{Qperf{}, liveStream(nil), replace("qperf_v.txt", "1469906944", "inf")},
		{Qperf{}, liveStream(nil), replace("qperf_v.txt", "1469906944", "0")},
		{Sockperf{}, liveRR(suite.TCPRR, 14, 4), replace("sockperf_rtt.txt", "avg-rtt=6.659", "avg-rtt=-nan")},
		{Sockperf{}, liveRR(suite.TCPRR, 14, 4), replace("sockperf_rtt.txt", "SentMessages=82111; ReceivedMessages=82111", "SentMessages=0; ReceivedMessages=0")},
	}
	for i, c := range cases {
		m, err := c.tool.Parse(Job{Workload: c.w, Timing: seconds(3)}, c.outputs)
		if err == nil {
			t.Errorf("case %d: %s reads %v", i, c.tool.Name(), m.Metrics)
		}
	}
}

func TestIperf3UnderstandsSumsOfVersionsWithoutTheSenderFlag(t *testing.T) {
	outputs := captured{outputs: client("iperf3_both_ends.json")}.read(t)
	text := outputs["client"].Stdout
	for _, flag := range []string{"true", "false"} {
		text = strings.ReplaceAll(text, ",\n\t\t\t\t\"sender\":\t"+flag, "")
		text = strings.ReplaceAll(text, ",\n\t\t\t\t\t\"sender\":\t"+flag, "")
	}
	if strings.Count(text, `"sender":	`) >= strings.Count(outputs["client"].Stdout, `"sender":	`) {
		t.Fatal("the test removed no flag")
	}
	m, err := Iperf3{}.Parse(Job{Workload: liveStream(nil), Timing: short}, map[string]Output{"client": {Stdout: text}})
	must.Succeed(t, err)
	if got, want := m.Metrics[sample.Throughput], 11276010702.557467; math.Abs(got-want) > 1 {
		t.Errorf("throughput is %v, want %v", got, want)
	}
}

func TestFragmentedDatagramsAreWarnedOf(t *testing.T) {
	for _, c := range []struct {
		w    suite.Workload
		mtu  int
		warn bool
	}{
		{liveDatagrams(0, func(w *suite.Workload) { w.Buffer = 1472 }), 1500, false},
		{liveDatagrams(0, func(w *suite.Workload) { w.Buffer = 1473 }), 1500, true},
		{liveDatagrams(0, func(w *suite.Workload) { w.Buffer, w.IPVersion = 1453, 6 }), 1500, true},
		{liveDatagrams(0, func(w *suite.Workload) { w.Buffer, w.IPVersion = 1452, 6 }), 1500, false},
		{liveDatagrams(0, func(w *suite.Workload) { w.Buffer = 9000 }), 0, false}, // MTU not known
		{liveRR(suite.UDPRR, 2000, 4), 1500, true},
		{liveStream(nil), 1500, false},
	} {
		warnings := fragments(Job{Workload: c.w, MTU: c.mtu})
		if got := len(warnings) > 0; got != c.warn {
			t.Errorf("%s of %d/%d bytes over IPv%d at MTU %d: warnings %q", c.w.Kind, c.w.Buffer, c.w.Request, c.w.IPVersion, c.mtu, warnings)
		}
	}
}
