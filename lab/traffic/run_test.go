package traffic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// program is the test binary running as the program, in a process of its own.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	mu     sync.Mutex
	stdout strings.Builder
	stderr safeBuffer
	done   chan struct{}
	code   int
}

// safeBuffer is written by a process's copier and read by the test.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs the program as "traffic" or "ntttcp"; the test's end ends it.
func start(t *testing.T, as string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(os.Args[0], args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asProgram+"="+as)
	p.cmd.Stderr = &p.stderr
	out := must.Get(p.cmd.StdoutPipe())(t)
	must.Succeed(t, p.cmd.Start())
	p.lines = bufio.NewScanner(out)
	p.lines.Buffer(nil, maxMessage)
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
	ready := make(chan struct{})
	go func() {
		defer close(p.done)
		for p.lines.Scan() {
			p.mu.Lock()
			p.stdout.WriteString(p.lines.Text() + "\n")
			p.mu.Unlock()
			if p.lines.Text() == "ready" {
				close(ready)
			}
		}
		p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
	}()
	if as == "traffic" && args[0] == "server" {
		select {
		case <-ready:
		case <-p.done:
		case <-time.After(time.Minute):
			t.Fatal("the server was not ready within a minute")
		}
	}
	return p
}

// wait returns the exit code and output; it fails the test where the program
// does not end in time.
func (p *program) wait(most time.Duration) (code int, stdout, stderr string) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(most):
		p.t.Fatalf("the program did not end within %v", most)
	}
	return p.code, p.stdout.String(), p.stderr.String()
}

// flows waits until a client's traffic has begun, and a moment longer.
func (p *program) flows(moment time.Duration) {
	p.t.Helper()
	must.EventuallyTrue(p.t, "the traffic has begun", func() bool { return strings.Contains(p.stderr.String(), "begun\n") })
	time.Sleep(moment)
}

// progresses waits until a sender or receiver of ntttcp measures, and a moment longer.
func (p *program) progresses(moment time.Duration) {
	p.t.Helper()
	must.EventuallyTrue(p.t, "the network activity", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.Contains(p.stdout.String(), "progressing")
	})
	time.Sleep(moment)
}

// States of sockets in /proc/net/tcp and /proc/net/udp.
const (
	connected = "01"
	receives  = "07"
	listens   = "0A"
)

// awaitSocket waits until a socket has a port of tcp or udp, and a state.
func awaitSocket(t *testing.T, network string, port int, state string) {
	t.Helper()
	socket := regexp.MustCompile(fmt.Sprintf(`:%04X [0-9A-F]+:[0-9A-F]+ %s`, port, state))
	must.EventuallyTrue(t, fmt.Sprintf("%s port %d has the state %s", network, port, state), func() bool {
		v4 := must.Get(os.ReadFile("/proc/net/" + network))(t)
		v6, _ := os.ReadFile("/proc/net/" + network + "6") // there is none without IPv6
		return socket.Match(v4) || socket.Match(v6)
	})
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	must.Succeed(p.t, p.cmd.Process.Signal(s))
}

// freePort finds a port with fifteen free ones after it, on TCP and UDP. The kernel gives none of them to a connection
// (net.ipv4.ip_local_port_range).
func freePort(t *testing.T) int {
	t.Helper()
	for port := 10000 + os.Getpid()%1000*16; port < 32752; port += 16 {
		if portsFree(port) {
			return port
		}
	}
	t.Fatal("no 16 free ports in a row")
	return 0
}

var handedOut sync.Map

func portsFree(port int) bool {
	if _, taken := handedOut.LoadOrStore(port, true); taken {
		return false
	}
	for p := port; p < port+16; p++ {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", p))
		if err != nil {
			return false
		}
		l.Close()
		u, err := net.ListenPacket("udp", fmt.Sprintf(":%d", p))
		if err != nil {
			return false
		}
		u.Close()
	}
	return true
}

// run makes one run of server and client over loopback.
func run(t *testing.T, host string, args ...string) Result {
	t.Helper()
	at := net.JoinHostPort(host, fmt.Sprint(freePort(t)))
	server := start(t, "traffic", "server", "-listen", at, "-once", "-wait", "10s")
	client := start(t, "traffic", append([]string{"client", "-connect", at}, args...)...)
	code, stdout, stderr := client.wait(20 * time.Second)
	if code != 0 {
		t.Fatalf("the client exited with %d: %s", code, stderr)
	}
	code, serverOut, serverErr := server.wait(10 * time.Second)
	if code != 0 {
		t.Fatalf("the server exited with %d: %s", code, serverErr)
	}
	result := decodeResult(t, stdout)
	own := decodeResult(t, strings.TrimPrefix(serverOut, "ready\n"))
	if own.Local.ReceivedBytes != result.Remote.ReceivedBytes || own.Local.SentBytes != result.Remote.SentBytes {
		t.Errorf("the server printed %d/%d bytes and told the client %d/%d", own.Local.SentBytes, own.Local.ReceivedBytes, result.Remote.SentBytes, result.Remote.ReceivedBytes)
	}
	return result
}

func decodeResult(t *testing.T, text string) (r Result) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("the output is no result: %v\n%.500s", err, text)
	}
	return r
}

const brief = "250ms"

func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Max(math.Abs(a), math.Abs(b)) }

// hosts are the loopback addresses of both IP versions; IPv6 may be off.
func hosts(t *testing.T) map[string]string {
	h := map[string]string{"ipv4": "127.0.0.1"}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
		h["ipv6"] = "::1"
	} else {
		t.Log("IPv6 is not there; only IPv4 is tested:", err)
	}
	return h
}

func TestTCPStreamIsCountedAtBothEnds(t *testing.T) {
	for ip, host := range hosts(t) {
		for _, direction := range []string{"forward", "reverse", "both"} {
			t.Run(ip+"/"+direction, func(t *testing.T) {
				r := run(t, host, "-kind", "tcp_stream", "-direction", direction, "-streams", "2", "-duration", brief)
				checkStream(t, r, map[string]int{"forward": 2, "reverse": 2, "both": 4}[direction])
				// Without warm-up and cool-down the client's window holds all that it
				// sends, except for the call that it ends. The server's may end before the
				// last of it arrives.
				if received := r.Remote.ReceivedBytes; received > r.Local.SentBytes+2*r.Spec.Workload.Buffer {
					t.Errorf("the client sent %d bytes and the server received %d", r.Local.SentBytes, received)
				}
			})
		}
	}
}

// checkStream checks that each flow passed payload and that the sums are those
// of the flows.
func checkStream(t *testing.T, r Result, flows int) {
	t.Helper()
	if len(r.Local.Flows) != flows || len(r.Remote.Flows) != flows {
		t.Fatalf("%d and %d flows, want %d at each end", len(r.Local.Flows), len(r.Remote.Flows), flows)
	}
	for _, e := range r.ends() {
		var bytes int64
		for _, f := range e.Flows {
			if f.Bytes <= 0 || f.Calls <= 0 || !near(f.Bits, float64(f.Bytes)*8/f.Seconds, 1e-9) {
				t.Errorf("%s flow %+v: want bytes, calls, and the rate they make", e.Role, f)
			}
			var now unix.Timespec
			must.Succeed(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
			if ended := f.Began + int64(f.Seconds*1e9); f.Began <= 0 || ended > now.Nano() || ended < now.Nano()-10e9 {
				t.Errorf("%s: the window of flow %d ended at %d, and now it is %d: want a time shortly before", e.Role, f.Index, ended, now.Nano())
			}
			bytes += f.Bytes
		}
		if bytes != e.SentBytes+e.ReceivedBytes {
			t.Errorf("%s: flows hold %d bytes and the sum is %d", e.Role, bytes, e.SentBytes+e.ReceivedBytes)
		}
		if e.CPU.User+e.CPU.System <= 0 {
			t.Errorf("%s: no CPU time", e.Role)
		}
	}
	// After a warm-up the window's first edge may be late.
	if timing := r.Spec.Timing; timing.Warmup == 0 && r.Local.Seconds < timing.Duration.Seconds() {
		t.Errorf("a window of %.3f s, want %v or more", r.Local.Seconds, timing.Duration)
	}
}

func TestSendfileSendsAStream(t *testing.T) {
	r := run(t, "127.0.0.1", "-kind", "tcp_stream", "-sendfile", "-buffer", "64k", "-warmup", "50ms", "-duration", brief, "-cooldown", "50ms")
	// The window may begin or end between the counters of a call.
	if f := r.Local.Flows[0]; f.Bytes > (f.Calls+1)*64<<10 {
		t.Errorf("%d bytes by %d calls, want at most the buffer's 65536 a call", f.Bytes, f.Calls)
	}
	checkStream(t, r, 1)
}

// A paced stream never exceeds its rate by more than the first buffer. How far
// it falls behind depends on what else the machine runs.
func TestTCPPacingKeepsTheRateOfAllStreams(t *testing.T) {
	r := run(t, "127.0.0.1", "-kind", "tcp_stream", "-streams", "2", "-rate", "400Mbit", "-buffer", "64k", "-duration", "500ms")
	for _, f := range r.Local.Flows {
		if due := 2e8/8*f.Seconds + 64<<10; float64(f.Bytes) > due || float64(f.Bytes) < due/10 {
			t.Errorf("stream %d sent %d bytes in %.3f s at 200 Mbit/s, want at most %.0f and a tenth of that or more", f.Index, f.Bytes, f.Seconds, due)
		}
	}
}

// The receiver spends what it is told to: 4 ns of CPU time for each byte.
func TestTheReceiversWorkIsCPUTime(t *testing.T) {
	r := run(t, "127.0.0.1", "-rate", "200Mbit", "-duration", "600ms", "-work", "4")
	work, spent := 4e-9*float64(r.Remote.ReceivedBytes), r.Remote.CPU.User+r.Remote.CPU.System
	if work == 0 || spent < 0.95*work || spent > 5*work {
		t.Errorf("the receiver's work is %.3f s and it spent %.3f s", work, spent)
	}
}

func TestTransactionsHaveLatenciesThatAgreeWithTheirRate(t *testing.T) {
	for ip, host := range hosts(t) {
		for _, kind := range []string{"tcp_rr", "tcp_crr", "udp_rr"} {
			t.Run(ip+"/"+kind, func(t *testing.T) {
				r := run(t, host, "-kind", kind, "-request", "64", "-response", "1000", "-duration", brief)
				l := r.Local.Latency
				if l == nil || l.Count == 0 || r.Local.Transactions <= 0 {
					t.Fatalf("no transactions: %+v", r.Local)
				}
				if !(0 < l.Min && l.Min <= l.P50 && l.P50 <= l.P90 && l.P90 <= l.P99 && l.P99 <= l.P999 && l.P999 <= l.Max) {
					t.Errorf("percentiles out of order: %+v", *l)
				}
				if l.Mean < float64(l.Min) || l.Mean > float64(l.Max) {
					t.Errorf("mean %.0f outside %d..%d", l.Mean, l.Min, l.Max)
				}
				// One transaction after the other: together they take the whole window,
				// but for the moments between two of them.
				mine, theirs := r.Local.Flows[0], r.Remote.Flows[0]
				if took := l.Mean * float64(l.Count) / 1e9; took > 1.01*mine.Seconds || took < 0.3*mine.Seconds {
					t.Errorf("%d transactions of %.0f ns take %.3f s of %.3f", l.Count, l.Mean, took, mine.Seconds)
				}
				if !near(r.Local.Transactions, float64(mine.Transactions)/mine.Seconds, 1e-9) {
					t.Errorf("%v transactions/s, with %d in %.3f s", r.Local.Transactions, mine.Transactions, mine.Seconds)
				}
				h, err := hdrhistogram.Decode([]byte(l.Histogram))
				if err != nil || h.TotalCount() != l.Count || h.ValueAtPercentile(99) != l.P99 {
					t.Errorf("the histogram does not decode to what was told: %v", err)
				}
				// Without warm-up and cool-down the server answers at most one request
				// that the client does not count, and its window may end earlier.
				if theirs.Transactions <= 0 || theirs.Transactions > mine.Transactions+mine.Lost+1 {
					t.Errorf("%d transactions at the client, %d at the server", mine.Transactions, theirs.Transactions)
				}
				if r.Local.Errors != 0 || r.Remote.Errors != 0 {
					t.Errorf("%d and %d errors", r.Local.Errors, r.Remote.Errors)
				}
			})
		}
	}
}

func TestTransactionsRunOnEveryStream(t *testing.T) {
	for _, kind := range []string{"tcp_rr", "tcp_crr", "udp_rr"} {
		t.Run(kind, func(t *testing.T) {
			r := run(t, "127.0.0.1", "-kind", kind, "-streams", "3", "-nodelay", "-sndbuf", "64k", "-rcvbuf", "64k", "-duration", brief)
			if len(r.Local.Flows) != 3 {
				t.Fatalf("%d flows, want 3", len(r.Local.Flows))
			}
			for _, f := range r.Local.Flows {
				if f.Transactions == 0 {
					t.Errorf("stream %d made no transaction", f.Index)
				}
			}
		})
	}
}

// Fewer datagrams are sent than the receiver's buffer holds, so that none is
// lost where the receiver does not get to run.
func TestUDPStreamAccountsForEveryDatagram(t *testing.T) {
	for ip, host := range hosts(t) {
		for _, direction := range []string{"forward", "reverse", "both"} {
			t.Run(ip+"/"+direction, func(t *testing.T) {
				t.Parallel()
				r := run(t, host, "-kind", "udp_stream", "-direction", direction, "-buffer", "1000", "-rate", "2Mbit", "-warmup", "50ms", "-duration", "300ms", "-cooldown", "50ms")
				d := r.Datagrams()
				if d.Counted != d.Sent || d.Lost != 0 || d.Reordered != 0 || d.Duplicates != 0 || !d.Numbered {
					t.Errorf("%+v: want every datagram counted and none lost, reordered or doubled on loopback", d)
				}
				checkPace(t, r, 250)
			})
		}
	}
}

func TestAnInternetMixSendsItsSizesInTheirRatioAtTheRate(t *testing.T) {
	for ip, host := range hosts(t) {
		t.Run(ip, func(t *testing.T) {
			t.Parallel()
			const mean = 3718.0 / 12
			r := run(t, host, "-kind", "udp_stream", "-imix", "-buffer", "1400", "-rate", fmt.Sprint(int(mean*8*600)), "-duration", "500ms")
			d := r.Datagrams()
			if d.Counted != d.Sent || d.Lost != 0 || !d.Numbered {
				t.Errorf("%+v: want every datagram numbered and counted, and none lost", d)
			}
			for _, e := range r.ends() {
				for _, f := range e.Flows {
					if short := mean*float64(f.Datagrams) - float64(f.Bytes); math.Abs(short) > 2*suite.LargestIMIX {
						t.Errorf("%d datagrams have %d bytes, want %.1f on average", f.Datagrams, f.Bytes, mean)
					}
				}
			}
			checkPace(t, r, 600)
		})
	}
}

func TestDatagramsTooSmallForANumberAreCounted(t *testing.T) {
	r := run(t, "127.0.0.1", "-kind", "udp_stream", "-buffer", "8", "-rate", "32kbit", "-duration", "300ms")
	if d := r.Datagrams(); d.Numbered || d.Counted == 0 || d.Lost != 0 {
		t.Errorf("%+v: want datagrams without numbers, all counted, none lost", d)
	}
	checkPace(t, r, 500)
}

// checkPace checks that every sender kept to its datagrams a second. It may
// make up for the backlog from before the window, and falls behind where the
// machine runs others.
func checkPace(t *testing.T, r Result, perSecond float64) {
	t.Helper()
	senders := 0
	for _, e := range r.ends() {
		for _, f := range e.Flows {
			if f.Role != roleSend {
				continue
			}
			senders++
			if due := perSecond*(f.Seconds+paceBacklog/1e9) + 1; float64(f.Datagrams) > due || float64(f.Datagrams) < due/10 {
				t.Errorf("%d datagrams in %.3f s at %.0f a second, want at most %.0f and a tenth of that or more", f.Datagrams, f.Seconds, perSecond, due)
			}
		}
	}
	if senders == 0 {
		t.Error("no flow has a sender")
	}
}

func TestSIGINTEndsARunWithItsFiguresSoFar(t *testing.T) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
			server := start(t, "traffic", "server", "-listen", at, "-once")
			client := start(t, "traffic", "client", "-connect", at, "-duration", "60s")
			client.flows(300 * time.Millisecond)
			map[string]*program{"client": client, "server": server}[side].signal(syscall.SIGINT)
			code, out, stderr := client.wait(5 * time.Second)
			if code != 0 {
				t.Fatalf("the client exited with %d: %s", code, stderr)
			}
			r := decodeResult(t, out)
			if !r.Interrupted || r.Local.SentBytes == 0 || r.Remote.ReceivedBytes == 0 || r.Local.Seconds > 30 {
				t.Errorf("interrupted %v, %d bytes sent, %d received in %.2f s: want figures of a short run", r.Interrupted, r.Local.SentBytes, r.Remote.ReceivedBytes, r.Local.Seconds)
			}
			if code, _, stderr := server.wait(5 * time.Second); code != 0 {
				t.Errorf("the server exited with %d: %s", code, stderr)
			}
		})
	}
}

func TestAVanishedPeerEndsTheOtherInTimeAndIsNamed(t *testing.T) {
	for _, kind := range []string{"tcp_stream", "tcp_rr", "tcp_crr", "udp_stream", "udp_rr"} {
		for _, victim := range []string{"client", "server"} {
			t.Run(kind+"/"+victim, func(t *testing.T) {
				t.Parallel()
				at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
				server := start(t, "traffic", "server", "-listen", at, "-once")
				client := start(t, "traffic", "client", "-connect", at, "-kind", kind, "-buffer", "1000", "-duration", "60s")
				client.flows(50 * time.Millisecond)
				killed, left := client, server
				if victim == "server" {
					killed, left = server, client
				}
				killed.signal(syscall.SIGKILL)
				code, out, stderr := left.wait(6 * time.Second)
				if code != 1 || !strings.Contains(stderr, victim+" 127.0.0.1:") {
					t.Errorf("exit %d, %q, want 1 and the %s's address named", code, stderr, victim)
				}
				if strings.Contains(out, "{") {
					t.Errorf("a result was printed: %.200s", out)
				}
			})
		}
	}
}

func TestAPortInUseIsAClearError(t *testing.T) {
	port := freePort(t)
	for offset, name := range []string{"control", "data"} {
		l := must.Get(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+offset)))(t)
		at := fmt.Sprintf("127.0.0.1:%d", port)
		server := start(t, "traffic", "server", "-listen", at, "-once")
		if name == "data" {
			client := start(t, "traffic", "client", "-connect", at, "-duration", brief)
			code, _, stderr := client.wait(5 * time.Second)
			if code != 1 || !strings.Contains(stderr, "address already in use") || !strings.Contains(stderr, fmt.Sprint(port+1)) {
				t.Errorf("client: exit %d, %q: want the server's reason", code, stderr)
			}
		}
		code, _, stderr := server.wait(5 * time.Second)
		if code != 1 || !strings.Contains(stderr, "address already in use") || !strings.Contains(stderr, "choose another port") {
			t.Errorf("%s port: exit %d, %q: want the reason and the remedy", name, code, stderr)
		}
		l.Close()
	}
}

func TestTheErrorOfAMissingServerIsClear(t *testing.T) {
	client := start(t, "traffic", "client", "-connect", fmt.Sprintf("127.0.0.1:%d", freePort(t)), "-duration", brief)
	code, _, stderr := client.wait(5 * time.Second)
	if code != 1 || !strings.Contains(stderr, "connection refused") || !strings.Contains(stderr, "start the receiving end first") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestAServerWithoutAClientEndsAfterItsWait(t *testing.T) {
	server := start(t, "traffic", "server", "-listen", fmt.Sprintf("127.0.0.1:%d", freePort(t)), "-once", "-wait", "100ms")
	if code, _, stderr := server.wait(3 * time.Second); code != 1 || !strings.Contains(stderr, "no client connected") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestAServerServesOneClientAfterAnotherAndIgnoresOtherPrograms(t *testing.T) {
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	server := start(t, "traffic", "server", "-listen", at)
	stranger := must.Get(net.Dial("tcp", at))(t)
	fmt.Fprint(stranger, "GET / HTTP/1.1\r\n\r\n")
	stranger.Close()
	for range 2 {
		client := start(t, "traffic", "client", "-connect", at, "-duration", "100ms")
		if code, _, stderr := client.wait(10 * time.Second); code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
	}
	server.signal(syscall.SIGINT)
	code, out, stderr := server.wait(3 * time.Second)
	if code != 0 || strings.Count(out, "\n") != 3 || !strings.Contains(stderr, "is the other end a windtunnel?") {
		t.Errorf("exit %d, %q, %q: want ready, two results, and a word about the stranger", code, out, stderr)
	}
}

func TestWrongFlagsAreErrorsWithTheUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "usage:"},
		{"sing", "neither server nor client"},
		{"server", "-listen ADDRESS:PORT is missing"},
		{"server -listen 127.0.0.1:65530", "choose a port up to 65520"},
		{"client -connect 10.0.0.1", "not an address and a port"},
		{"client -connect 127.0.0.1:1 -kind sctp", `-kind "sctp" is unknown`},
		{"client -connect 127.0.0.1:1 -streams 0", "-streams 0"},
		{"client -connect 127.0.0.1:1 -kind udp_stream -buffer 128k", "1 to 65507"},
		{"client -connect 127.0.0.1:1 -kind udp_stream -buffer 1k -sendfile", "-sendfile"},
		{"client -connect 127.0.0.1:1 -duration 0s", "-duration"},
		{"client -connect 127.0.0.1:1 -direction up", `"up"`},
		{"client -connect 127.0.0.1:1 -kind tcp_rr -request 0", "-request 0"},
		{"client -connect 127.0.0.1:1 -kind tcp_rr -rate 1G", "-rate"},
		{"client -connect 127.0.0.1:1 -rate 4bananas", "rate"},
		{"client -connect 127.0.0.1:1 extra", `"extra"`},
	} {
		var stdout, stderr bytes.Buffer
		code := Worker(strings.Fields(c.args), &stdout, &stderr)
		if code != 2 || !strings.Contains(stderr.String(), c.want) || !strings.Contains(stderr.String(), "usage:") {
			t.Errorf("%q: exit %d, %q: want 2, %q and the usage", c.args, code, stderr.String(), c.want)
		}
		if stdout.Len() > 0 {
			t.Errorf("%q printed %q on stdout", c.args, stdout.String())
		}
	}
}

func TestRequestsRunBesideStreamsInTheirDirections(t *testing.T) {
	for direction, flows := range map[string]int{"forward": 3, "reverse": 3, "both": 5} {
		t.Run(direction, func(t *testing.T) {
			r := run(t, "127.0.0.1", "-kind", "tcp_rr", "-load", "2", "-direction", direction, "-warmup", "100ms", "-duration", brief, "-cooldown", "50ms")
			if len(r.Local.Flows) != flows {
				t.Fatalf("%d flows, want one of requests and %d of the load", len(r.Local.Flows), flows-1)
			}
			if r.Local.Transactions <= 0 || r.Local.Latency == nil || r.Local.Latency.Count <= 0 {
				t.Fatalf("no transactions: %+v", r.Local)
			}
			forward, reverse := r.Rate("forward", roleReceive), r.Rate("reverse", roleReceive)
			if (forward > 0) != (direction != "reverse") || (reverse > 0) != (direction != "forward") {
				t.Errorf("the load moved %.0f bit/s forward and %.0f bit/s in reverse", forward, reverse)
			}
			checkCourse(t, r)
		})
	}
}

// checkCourse checks that the round trips over time cover the run from the warm-up on,
// and hold at least those of the window.
func checkCourse(t *testing.T, r Result) {
	t.Helper()
	course := r.Local.Latency.Course
	if len(course) == 0 || course[0].At > 0 || course[len(course)-1].At < 0.5*r.Local.Seconds {
		t.Fatalf("the round trips over time are %+v", course)
	}
	count, most := int64(0), int64(0)
	for _, s := range course {
		count += s.Count
		most = max(most, s.Max)
		if s.Mean > s.Max {
			t.Errorf("slice %+v has a mean above its longest round trip", s)
		}
	}
	if count < r.Local.Latency.Count {
		t.Errorf("the slices have %d round trips and the window alone has %d", count, r.Local.Latency.Count)
	}
	if most < r.Local.Latency.P50 {
		t.Errorf("the longest round trip of the slices is %d ns, the median of the window %d ns", most, r.Local.Latency.P50)
	}
}

// The server stands still at the end of its window, as on a busy CPU. The client must send
// until the server's late window is over, or the window would contain a time without traffic.
func TestTrafficLastsUntilTheWindowsOfBothEndsAreOver(t *testing.T) {
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	server := start(t, "traffic", "server", "-listen", at, "-once", "-wait", "10s")
	client := start(t, "traffic", "client", "-connect", at, "-kind", "udp_stream", "-buffer", "100", "-rate", "800k",
		"-warmup", "100ms", "-duration", "1s", "-cooldown", "50ms")
	client.flows(300 * time.Millisecond) // the window's end is 0.8 s away, so this test may be late too
	server.signal(syscall.SIGSTOP)
	time.Sleep(1100 * time.Millisecond) // the traffic is 1.4 s old
	server.signal(syscall.SIGCONT)
	code, stdout, stderr := client.wait(20 * time.Second)
	if code != 0 {
		t.Fatalf("the client exited with %d: %s", code, stderr)
	}
	r := decodeResult(t, stdout)
	// On a busy machine the client sends fewer, in its window and after it.
	if f := r.Local.Flows[0]; float64(f.AllDatagrams) < 1.25*float64(f.Datagrams) {
		t.Errorf("the client sent %d datagrams, %d of them in its window of 1 s; the server's window ended after 1.4 s, and its own after 1.1 s", f.AllDatagrams, f.Datagrams)
	}
}
