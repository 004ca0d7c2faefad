package tool

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"windtunnel/lab/traffic"
)

// windowsRun is what one end of NTttcp.exe counted, in its own terms.
type windowsRun struct {
	version                           string
	sender, udp, hidden, latency      bool
	bytes, seconds, cpu               float64
	threads                           []float64 // bytes of each
	length                            int
	sent, received, retrans, failures int64
	interrupts, dpcs                  float64 // in all
	processors                        int
}

const windowsMHz = 2400

func (r windowsRun) frames() float64 {
	if r.sender {
		return float64(r.sent)
	}
	return float64(r.received)
}

// console prints the run as NTttcp's console does: the headers, widths and
// digits are those of version 5.40.
func (r windowsRun) console() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("Copyright Version %s\nNetwork activity progressing...\n", r.version)
	switch {
	case r.hidden:
	case r.latency:
		p("\n                                               Latency(ns)\nThread  Time(s) Throughput(KB/s) Avg B / Compl        Avg        Min        Max\n")
		p("======  ======= ================ ============= ========== ========== ==========\n")
	default:
		p("\n\nThread  Time(s) Throughput(KB/s) Avg B / Compl\n======  ======= ================ =============\n")
	}
	for i, n := range r.threads {
		if r.hidden {
			break
		}
		p("%6d %8.3f %16.3f %13.3f", i, r.seconds, n/r.seconds/1024, float64(r.length))
		if r.latency {
			p(" %10.0f %10.0f %10.0f", 1200.0, 900.0, 15000.0)
		}
		p("\n")
	}
	p("\n\n#####  Totals:  #####\n\n\n   Bytes(MEG)    realtime(s) Avg Frame Size Throughput(MB/s)\n")
	p("================ =========== ============== ================\n%16.6f %11.3f %14.3f %16.3f\n",
		r.bytes/1048576, r.seconds, r.bytes/r.frames(), r.bytes/r.seconds/1048576)
	if r.latency {
		p("\nLatency(ns)\n       Avg        Min        Max\n========== ========== ==========\n%10.0f %10.0f %10.0f\n", 1200.0, 900.0, 15000.0)
	}
	buffers := r.bytes / float64(r.length)
	p("\n\nThroughput(Buffers/s) Cycles/Byte       Buffers\n===================== =========== =============\n%21.3f %11.3f %13.3f\n",
		buffers/r.seconds, r.cycles(), buffers)
	p("\n\nDPCs(count/s) Pkts(num/DPC)   Intr(count/s) Pkts(num/intr)\n============= ============= =============== ==============\n%13.3f %13.3f   %13.3f  %13.3f\n",
		r.dpcs/r.seconds, float64(r.received)/r.dpcs, r.interrupts/r.seconds, float64(r.received)/r.interrupts)
	p("\n\nPackets Sent Packets Received Retransmits Errors Avg. CPU %%\n============ ================ =========== ====== ==========\n%12d %16d %11d %6d %10.3f\n",
		r.sent, r.received, r.retrans, r.failures, r.cpu)
	if r.cpu <= 0 {
		p("\n\nNOTE::Avg CPU%% drops below 0%% if test duration is too short\n\n")
	}
	return b.String()
}

func (r windowsRun) cycles() float64 {
	return r.cpu / 100 * float64(r.processors) * windowsMHz * 1e6 / (r.bytes / r.seconds)
}

// file writes the run as -xml does; version 5.33 tells no Bps.
func (r windowsRun) file() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	root := "ntttcpr"
	if r.sender {
		root = "ntttcps"
	}
	rates := func(indent string, perSecond float64, inner bool) {
		if inner {
			p("%s<throughput metric=\"KB/s\">%.3f</throughput>\n", indent, perSecond/1024)
		}
		p("%s<throughput metric=\"MB/s\">%.3f</throughput>\n%s<throughput metric=\"mbps\">%.3f</throughput>\n", indent, perSecond/1048576, indent, perSecond*8/1e6)
		if r.version != "5.33" {
			p("%s<throughput metric=\"Bps\">%.1f</throughput>\n", indent, perSecond)
		}
	}
	udp := map[bool]string{true: "True", false: "False"}[r.udp]
	p("<%s computername=\"NODE-A\" version=\"%s\">\n\t<parameters>\n\t\t<send_socket_buff>65536</send_socket_buff>\n\t\t<port>5001</port>\n\t\t<udp>%s</udp>\n\t\t<run_time>15000</run_time>\n\t</parameters>\n", root, r.version, udp)
	for i, n := range r.threads {
		if r.hidden {
			break
		}
		p("\t<thread index=\"%d\">\n\t\t<realtime metric=\"s\">%.3f</realtime>\n", i, r.seconds)
		rates("\t\t", n/r.seconds, true)
		p("\t\t<avg_bytes_per_compl metric=\"B\">%.3f</avg_bytes_per_compl>\n\t</thread>\n", float64(r.length))
	}
	p("\t<total_bytes metric=\"MB\">%.6f</total_bytes>\n\t<realtime metric=\"s\">%.6f</realtime>\n\t<avg_bytes_per_compl metric=\"B\">%.3f</avg_bytes_per_compl>\n", r.bytes/1048576, r.seconds, float64(r.length))
	p("\t<threads_avg_bytes_per_compl metric=\"B\">%.3f</threads_avg_bytes_per_compl>\n\t<avg_frame_size metric=\"B\">%.3f</avg_frame_size>\n", float64(r.length), r.bytes/r.frames())
	rates("\t", r.bytes/r.seconds, false)
	p("\t<total_buffers>%.3f</total_buffers>\n\t<throughput metric=\"buffers/s\">%.3f</throughput>\n", r.bytes/float64(r.length), r.bytes/r.seconds/float64(r.length))
	p("\t<avg_packets_per_interrupt metric=\"packets/interrupt\">%.3f</avg_packets_per_interrupt>\n\t<interrupts metric=\"count/sec\">%.3f</interrupts>\n", float64(r.received)/r.interrupts, r.interrupts/r.seconds)
	p("\t<dpcs metric=\"count/sec\">%.3f</dpcs>\n\t<avg_packets_per_dpc metric=\"packets/dpc\">%.3f</avg_packets_per_dpc>\n\t<cycles metric=\"cycles/byte\">%.3f</cycles>\n", r.dpcs/r.seconds, float64(r.received)/r.dpcs, r.cycles())
	p("\t<packets_sent>%d</packets_sent>\n\t<packets_received>%d</packets_received>\n\t<packets_retransmitted>%d</packets_retransmitted>\n\t<errors>%d</errors>\n", r.sent, r.received, r.retrans, r.failures)
	p("\t<cpu metric=\"%%\">%.3f</cpu>\n\t<num_processors>%d</num_processors>\n\t<bufferCount>9223372036854775807</bufferCount>\n\t<bufferLen>%d</bufferLen>\n\t<io>2</io>\n</%s>\n", r.cpu, r.processors, r.length, root)
	return b.String()
}

// rawSender is a run with the figures that the published raw scenario has:
// 921.895 MB/s, 14.799 % CPU.
var rawSender = windowsRun{
	version: "5.40", sender: true, bytes: 921.895 * 1048576 * 15, seconds: 15, cpu: 14.799, threads: []float64{921.895 * 1048576 * 15},
	length: 131072, sent: 9932100, received: 512345, retrans: 32, failures: 0, interrupts: 190000, dpcs: 150000, processors: 2,
}

func rawReport(t *testing.T, text string) NTttcpReport {
	t.Helper()
	r, err := ParseNTttcpReport(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

func TestNTttcpsMegabytesAreBinaryAndItsMegabitsDecimal(t *testing.T) {
	const want = 921.895 * 1048576 * 8 // 7733.4 Mbit/s, and not 7375.16
	for what, text := range map[string]string{"console": rawSender.console(), "file": rawSender.file()} {
		r := rawReport(t, text)
		if math.Abs(r.Throughput-want) > 5e3 || math.Abs(r.Throughput-7733.4e6) > 0.1e6 {
			t.Errorf("%s: %.0f bit/s, want %.0f", what, r.Throughput, want)
		}
		if math.Abs(r.Bytes-rawSender.bytes) > 1 {
			t.Errorf("%s: %.1f bytes, want %.1f", what, r.Bytes, rawSender.bytes)
		}
	}
}

func TestNTttcpsConsoleIsReadColumnByColumn(t *testing.T) {
	cpu := 14.799
	want := NTttcpReport{
		Version: "5.40", Bytes: 921.895 * 1048576 * 15, Seconds: 15, Throughput: 921.895 * 1048576 * 8, FrameSize: 1459.928, Buffers: 110627.4,
		CyclesPerByte: 0.735, InterruptsPerSecond: 12666.667, DPCsPerSecond: 10000, PacketsSent: 9932100, PacketsReceived: 512345, Retransmits: 32,
		CPU: &cpu, Threads: []NTttcpThread{{Index: 0, Seconds: 15, Throughput: 944020.48 * 1024 * 8, PerCompletion: 131072}},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b))+1e-9 })
	if diff := cmp.Diff(want, rawReport(t, rawSender.console()), near); diff != "" {
		t.Errorf("console (-want +got):\n%s", diff)
	}
	want.Side, want.Processors = OnSender, 2
	if diff := cmp.Diff(want, rawReport(t, rawSender.file()), near); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

// TestWhatNTttcpPrintsIsReadBack draws runs and reads both forms of them in
// both versions.
func TestWhatNTttcpPrintsIsReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 33))
	for range 300 {
		r := windowsRun{
			version: []string{"5.33", "5.40"}[rng.IntN(2)], sender: rng.IntN(2) == 0, udp: rng.IntN(3) == 0, hidden: rng.IntN(4) == 0, latency: rng.IntN(4) == 0,
			seconds: 1 + 20*rng.Float64(), cpu: 100 * rng.Float64(), length: 1 + rng.IntN(1<<18), sent: 1 + rng.Int64N(1e9), received: 1 + rng.Int64N(1e9),
			retrans: rng.Int64N(1e5), failures: rng.Int64N(100), interrupts: 1 + 1e6*rng.Float64(), dpcs: 1 + 1e6*rng.Float64(), processors: 1 + rng.IntN(64),
		}
		for range 1 + rng.IntN(8) {
			n := math.Floor(1e6 + 1e11*rng.Float64())
			r.threads, r.bytes = append(r.threads, n), r.bytes+n
		}
		for what, text := range map[string]string{"console": r.console(), "file": r.file()} {
			got := rawReport(t, text)
			rate := r.bytes / r.seconds * 8
			if math.Abs(got.Bytes-r.bytes) > 1 || math.Abs(got.Throughput-rate) > 5e-4*8*1048576+1e-6*rate || math.Abs(got.Seconds-r.seconds) > 6e-4 {
				t.Fatalf("%s of %s: %.0f bytes in %.6f s, %.0f bit/s; want %.0f in %.6f, %.0f", what, r.version, got.Bytes, got.Seconds, got.Throughput, r.bytes, r.seconds, rate)
			}
			if got.PacketsSent != r.sent || got.PacketsReceived != r.received || got.Retransmits != r.retrans || got.Errors != r.failures || math.Abs(*got.CPU-r.cpu) > 6e-4 || got.Version != r.version {
				t.Fatalf("%s: %+v of %+v", what, got, r)
			}
			checkRows := len(r.threads)
			if r.hidden {
				checkRows = 0
			}
			if len(got.Threads) != checkRows {
				t.Fatalf("%s: %d threads, want %d", what, len(got.Threads), checkRows)
			}
			for i, thread := range got.Threads {
				if want := r.threads[i] / r.seconds * 8; thread.Index != i || math.Abs(thread.Throughput-want) > 501+1e-6*want {
					t.Fatalf("%s: thread %+v, want %.0f bit/s", what, thread, want)
				}
			}
			if what == "file" && (got.UDP != r.udp || got.Processors != r.processors || (got.Side == OnSender) != r.sender) {
				t.Fatalf("file: %+v of %+v", got, r)
			}
		}
	}
}

func TestNTttcps528TotalsInOneTableAreRead(t *testing.T) {
	text := `Copyright Version 5.28
Network activity progressing...
Thread  Time(s) Throughput(KB/s) Avg B / Compl
======  ======= ================ =============
     0   10.000       102400.000     65536.000
     1   10.000       204800.000     65536.000
#####  Totals:  #####
   Bytes(MEG)    realtime(s) Avg Frame Size Throughput(MB/s) Throughput(Buffers/s) Cycles/Byte       Buffers DPCs(count/s) Pkts(num/DPC)   Intr(count/s) Pkts(num/intr) Packets Sent Packets Received Retransmits Errors Avg. CPU %
================ =========== ============== ================ ===================== =========== ============= ============= ============= =============== ============== ============ ================ =========== ====== ==========
     3000.000000      10.000       1456.000          300.000              4800.000       2.453     48000.000     40284.215         1.228       51434.235          0.962      2160000           148540           7      1      4.559
`
	r := rawReport(t, text)
	if r.Throughput != 300*1048576*8 || len(r.Threads) != 2 || r.Threads[1].Throughput != 204800*1024*8 || r.Retransmits != 7 || r.Errors != 1 || *r.CPU != 4.559 || r.Version != "5.28" {
		t.Errorf("5.28 is read as %+v", r)
	}
}

func TestAThreadsRowOfZerosDoesNotSpoilTheTotals(t *testing.T) {
	run := rawSender
	text := strings.Replace(run.console(), "     0   15.000       944020.480", "     0    0.000            0.000", 1)
	if text == run.console() {
		t.Fatal("the test changed nothing")
	}
	if r := rawReport(t, text); math.Abs(r.Throughput-7733.4e6) > 0.1e6 || r.Threads[0].Throughput != 0 {
		t.Errorf("read as %+v", r)
	}
}

func TestNTttcpsTextFromPowerShellIsRead(t *testing.T) {
	text := strings.ReplaceAll(rawSender.console(), "\n", "\r\n")
	units := utf16.Encode([]rune(text))
	little, big := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
	for _, u := range units {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for what, saved := range map[string]string{"CRLF": text, "UTF-8 with a mark": "\ufeff" + text, "UTF-16LE": string(little), "UTF-16BE": string(big)} {
		if r := rawReport(t, saved); r.PacketsSent != 9932100 {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

func TestOfSeveralRunsTheLastIsReadAndThatIsSaid(t *testing.T) {
	first := rawSender
	first.retrans = 999
	for what, text := range map[string]string{"console": first.console() + rawSender.console(), "file": first.file() + rawSender.file()} {
		r := rawReport(t, text)
		if r.Retransmits != 32 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "2 runs") || !strings.Contains(r.Warnings[0], "the last is read") {
			t.Errorf("%s: %d retransmits, warnings %q", what, r.Retransmits, r.Warnings)
		}
	}
}

func TestTooShortARunForNTttcpsClockHasNoCPU(t *testing.T) {
	run := rawSender
	run.cpu = -0.125
	for what, text := range map[string]string{"console": run.console(), "file": run.file()} {
		if r := rawReport(t, text); r.CPU != nil || r.CyclesPerByte != 0 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "-0.125") {
			t.Errorf("%s: CPU %v, %v cycles, warnings %q", what, r.CPU, r.CyclesPerByte, r.Warnings)
		}
	}
}

func TestWhatIsNoResultOfNTttcpIsAnError(t *testing.T) {
	console, file := rawSender.console(), rawSender.file()
	swap := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	linux := captured{outputs: client("nt_s.xml")}.read(t)["client"].Stdout
	for _, c := range []struct{ what, text, reason string }{
		{"nothing", "", "no totals"},
		{"a failed run", "Copyright Version 5.40\nERROR: connect failed: 10060\n", "exit code does not say so"},
		{"a run that failed after a good one", console + "Copyright Version 5.40\nNetwork activity progressing...\n", "no totals"},
		{"a console cut short", console[:strings.Index(console, "DPCs(")], "cut short"},
		{"a last line cut short", console[:strings.Index(console, "9932100")], "no count"},
		{"nothing carried", swap(console, "13828.425000", "0.000000"), "carried nothing"},
		{"no time", swap(file, ">15.000000<", ">0.000000<"), "no time"},
		{"a figure that is none", swap(console, "110627.400\n", "1.#QNAN\n"), "Buffers"},
		{"a negative count", swap(file, ">32<", ">-32<"), "packets_retransmitted"},
		{"an infinite rate", swap(file, "Bps\">", "Bps\">1e999"), "throughput"},
		{"a file cut short", file[:len(file)/2], "cut short or damaged"},
		{"an empty file", "<!-- -->", "no run"},
		{"another root", "<html></html>", "html"},
		{"samples", "<samples>" + file + "</samples>", "-sam"},
		{"ntttcp-for-linux", linux, "ntttcp-for-linux"},
	} {
		r, err := ParseNTttcpReport(c.text)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want an error with %q", c.what, err, c.reason)
		}
		if diff := cmp.Diff(NTttcpReport{}, r); diff != "" {
			t.Errorf("%s: an error comes with figures: %s", c.what, diff)
		}
	}
}

// TestTheGeneratorsOwnFormIsReadBack runs both ends of the generator over
// loopback and reads what it printed and wrote.
func TestTheGeneratorsOwnFormIsReadBack(t *testing.T) {
	port := freePorts(t)
	const buffers, length, threads = 20_000, 4096, 2 // fewer buffers take less than 1 ms, the resolution of the printed time
	run := func(args ...string) []string {
		return append(args, "-m", fmt.Sprintf("%d,*,127.0.0.1", threads), "-p", fmt.Sprint(port), "-n", fmt.Sprint(buffers), "-l", fmt.Sprint(length), "-to", "5000")
	}
	xml := filepath.Join(t.TempDir(), "s.xml")
	var wg sync.WaitGroup
	var out, errs [2]bytes.Buffer
	var codes [2]int
	for i, args := range [][]string{run("-r"), run("-s", "-xml", xml)} {
		wg.Go(func() { codes[i] = traffic.NTttcp(args, &out[i], &errs[i]) })
	}
	wg.Wait()
	if codes != [2]int{} {
		t.Fatalf("exit codes %v: %s%s", codes, errs[0].String(), errs[1].String())
	}
	text, err := os.ReadFile(xml)
	if err != nil {
		t.Fatal(err)
	}
	received, sent := rawReport(t, out[0].String()), rawReport(t, string(text))
	for what, r := range map[string]NTttcpReport{"receiver's console": received, "sender's file": sent} {
		if math.Abs(r.Bytes-buffers*length*threads) > 1 || len(r.Threads) != threads || math.Abs(r.Buffers-buffers*threads) > 0.001 && r.Side == OnSender {
			t.Errorf("%s: %.1f bytes in %.1f buffers by %d threads, want %d bytes", what, r.Bytes, r.Buffers, len(r.Threads), buffers*length*threads)
		}
	}
	if sent.Side != OnSender || sent.Version != "5.40" {
		t.Errorf("the sender's file is read as of %q, version %q", sent.Side, sent.Version)
	}
}

// freePorts returns a port that nobody listens on, nor, but by bad luck, on its
// neighbours.
func freePorts(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func FuzzParseNTttcpReport(f *testing.F) {
	f.Add(rawSender.console())
	f.Add(rawSender.file())
	f.Add(rawSender.file() + rawSender.file())
	f.Add("\xff\xfeC\x00")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseNTttcpReport(text)
		if err != nil {
			if diff := cmp.Diff(NTttcpReport{}, r); diff != "" {
				t.Errorf("an error comes with figures: %s", diff)
			}
			return
		}
		for _, v := range []float64{r.Bytes, r.Seconds, r.Throughput} {
			if !(v > 0) || math.IsInf(v, 0) {
				t.Errorf("a result of %+v", r)
			}
		}
		if r.Retransmits < 0 || r.Errors < 0 || r.CPU != nil && !(*r.CPU >= 0) {
			t.Errorf("figures that cannot be: %+v", r)
		}
	})
}
