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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// program is the test binary running as the program, in a process of its own.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	mu     sync.Mutex
	stdout strings.Builder
	stderr bytes.Buffer
	done   chan struct{}
	code   int
}

// start runs the program as "traffic" or "ntttcp"; the test's end ends it.
func start(t *testing.T, as string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(os.Args[0], args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asProgram+"="+as)
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
		case <-time.After(5 * time.Second):
			t.Fatal("the server was not ready within 5 s")
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

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// freePort finds a port with fifteen free ones after it, on TCP and UDP.
func freePort(t *testing.T) int {
	t.Helper()
	for port := 21000 + os.Getpid()%2000*16; port < 60000; port += 16 {
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

// eventually makes a check again where it fails: the machine may be busy with
// other things just then, and what is checked here hangs on time.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var err error
	for range 4 {
		if err = check(); err == nil {
			return
		}
		t.Log("again, for the machine may have been busy:", err)
	}
	t.Error(err)
}

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

func TestTCPStreamCountsTheSameBytesAtBothEnds(t *testing.T) {
	for ip, host := range hosts(t) {
		for _, direction := range []string{"forward", "reverse", "both"} {
			t.Run(ip+"/"+direction, func(t *testing.T) {
				eventually(t, func() error {
					r := run(t, host, "-kind", "tcp_stream", "-direction", direction, "-streams", "2", "-warmup", "50ms", "-duration", brief, "-cooldown", "50ms")
					return checkStream(r, map[string]int{"forward": 2, "reverse": 2, "both": 4}[direction])
				})
			})
		}
	}
}

// checkStream checks that what one end sent the other received. The windows of
// the ends are a message apart, and a stalled machine stretches one of them, so
// rates are compared and not bytes.
func checkStream(r Result, flows int) error {
	if len(r.Local.Flows) != flows || len(r.Remote.Flows) != flows {
		return fmt.Errorf("%d and %d flows, want %d at each end", len(r.Local.Flows), len(r.Remote.Flows), flows)
	}
	if sent, received := r.Local.SentBits+r.Remote.SentBits, r.Local.ReceivedBits+r.Remote.ReceivedBits; sent == 0 || !near(sent, received, 0.2) {
		return fmt.Errorf("sent %.0f bit/s, received %.0f bit/s: want the same within 20 %%", sent, received)
	}
	for _, e := range r.ends() {
		var bytes int64
		for _, f := range e.Flows {
			if f.Bytes <= 0 || f.Calls <= 0 || !near(f.Bits, float64(f.Bytes)*8/f.Seconds, 1e-9) {
				return fmt.Errorf("%s flow %+v: want bytes, calls, and the rate they make", e.Role, f)
			}
			if f.Seconds < 0.15 || f.Seconds > 1 {
				return fmt.Errorf("%s flow %d measured %.3f s, want about 0.25 s", e.Role, f.Index, f.Seconds)
			}
			bytes += f.Bytes
		}
		if bytes != e.SentBytes+e.ReceivedBytes {
			return fmt.Errorf("%s: flows hold %d bytes and the sum is %d", e.Role, bytes, e.SentBytes+e.ReceivedBytes)
		}
		if e.CPU.User+e.CPU.System <= 0 {
			return fmt.Errorf("%s: no CPU time", e.Role)
		}
	}
	return nil
}

func TestSendfileSendsAStream(t *testing.T) {
	eventually(t, func() error {
		r := run(t, "127.0.0.1", "-kind", "tcp_stream", "-sendfile", "-buffer", "64k", "-duration", brief)
		if per := float64(r.Local.Flows[0].Bytes) / float64(r.Local.Flows[0].Calls); per > 64<<10 {
			t.Errorf("%.0f bytes a call, want at most the buffer's 65536", per)
		}
		return checkStream(r, 1)
	})
}

func TestTCPPacingKeepsTheRateOfAllStreams(t *testing.T) {
	eventually(t, func() error {
		r := run(t, "127.0.0.1", "-kind", "tcp_stream", "-streams", "2", "-rate", "400Mbit", "-warmup", "100ms", "-duration", "500ms")
		if got := r.Rate("forward", roleReceive); !near(got, 4e8, 0.05) {
			return fmt.Errorf("received %.0f bit/s, want 400 Mbit/s within 5 %%", got)
		}
		return nil
	})
}

// The receiver spends what it is told to: 2 ns on each of 0.6 × 62.5 million
// bytes are 75 ms.
func TestTheReceiversWorkIsCPUTime(t *testing.T) {
	spent := func(work string) time.Duration {
		at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
		p := start(t, "traffic", "server", "-listen", at, "-once", "-wait", "5s")
		c := start(t, "traffic", "client", "-connect", at, "-rate", "500Mbit", "-duration", "600ms", "-work", work)
		if code, _, stderr := c.wait(5 * time.Second); code != 0 {
			t.Fatal(stderr)
		}
		p.wait(5 * time.Second)
		return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	idle, busy := spent("0"), spent("2")
	if more := busy - idle; more < 50*time.Millisecond || more > 200*time.Millisecond {
		t.Errorf("the receiver spent %v more with the work than without, want about 75 ms", more)
	}
}

func TestTransactionsHaveLatenciesThatAgreeWithTheirRate(t *testing.T) {
	for ip, host := range hosts(t) {
		for _, kind := range []string{"tcp_rr", "tcp_crr", "udp_rr"} {
			t.Run(ip+"/"+kind, func(t *testing.T) {
				r := run(t, host, "-kind", kind, "-request", "64", "-response", "1000", "-warmup", "50ms", "-duration", brief)
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
				// One transaction after the other: the mean is the inverse of the rate.
				if busy := l.Mean * r.Local.Transactions; busy > 1.05e9 || busy < 0.7e9 {
					t.Errorf("%.0f transactions/s of %.0f ns take %.2f s a second, want about 1", r.Local.Transactions, l.Mean, busy/1e9)
				}
				h, err := hdrhistogram.Decode([]byte(l.Histogram))
				if err != nil || h.TotalCount() != l.Count || h.ValueAtPercentile(99) != l.P99 {
					t.Errorf("the histogram does not decode to what was told: %v", err)
				}
				if !near(r.Local.Transactions, r.Remote.Transactions, 0.2) {
					t.Errorf("%.0f transactions/s at the client, %.0f at the server", r.Local.Transactions, r.Remote.Transactions)
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

func TestUDPStreamAccountsForEveryDatagram(t *testing.T) {
	for ip, host := range hosts(t) {
		for _, direction := range []string{"forward", "reverse", "both"} {
			t.Run(ip+"/"+direction, func(t *testing.T) {
				eventually(t, func() error {
					r := run(t, host, "-kind", "udp_stream", "-direction", direction, "-buffer", "1000", "-rate", "40Mbit", "-rcvbuf", "4M", "-warmup", "50ms", "-duration", "300ms", "-cooldown", "50ms")
					d := r.Datagrams()
					if d.Counted != d.Sent || d.Lost != 0 || d.Reordered != 0 || d.Duplicates != 0 || !d.Numbered {
						t.Errorf("%+v: want every datagram counted and none lost, reordered or doubled on loopback", d)
					}
					// 40 Mbit/s of 1000 bytes are 5000 datagrams a second.
					directions := map[string]float64{"forward": 1, "reverse": 1, "both": 2}[direction]
					if !near(d.SentPerS, 5000*directions, 0.05) {
						return fmt.Errorf("%.0f datagrams/s sent, want %.0f", d.SentPerS, 5000*directions)
					}
					return nil
				})
			})
		}
	}
}

func TestDatagramsTooSmallForANumberAreCounted(t *testing.T) {
	eventually(t, func() error {
		r := run(t, "127.0.0.1", "-kind", "udp_stream", "-buffer", "8", "-rate", "320kbit", "-duration", "300ms")
		d := r.Datagrams()
		if d.Numbered || d.Counted == 0 || d.Lost != 0 {
			t.Errorf("%+v: want datagrams without numbers, all counted, none lost", d)
		}
		if !near(d.SentPerS, 5000, 0.05) {
			return fmt.Errorf("%.0f datagrams/s, want 5000", d.SentPerS)
		}
		return nil
	})
}

func TestSIGINTEndsARunWithItsFiguresSoFar(t *testing.T) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
			server := start(t, "traffic", "server", "-listen", at, "-once")
			client := start(t, "traffic", "client", "-connect", at, "-duration", "60s")
			time.Sleep(500 * time.Millisecond)
			map[string]*program{"client": client, "server": server}[side].signal(syscall.SIGINT)
			code, out, stderr := client.wait(5 * time.Second)
			if code != 0 {
				t.Fatalf("the client exited with %d: %s", code, stderr)
			}
			r := decodeResult(t, out)
			if !r.Interrupted || r.Local.SentBytes == 0 || r.Remote.ReceivedBytes == 0 || r.Local.Seconds > 5 {
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
				at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
				server := start(t, "traffic", "server", "-listen", at, "-once")
				client := start(t, "traffic", "client", "-connect", at, "-kind", kind, "-buffer", "1000", "-duration", "60s")
				time.Sleep(400 * time.Millisecond)
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
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+offset))
		if err != nil {
			t.Fatal(err)
		}
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

func TestAServerThatIsNotThereIsAClearError(t *testing.T) {
	client := start(t, "traffic", "client", "-connect", fmt.Sprintf("127.0.0.1:%d", freePort(t)), "-duration", brief)
	code, _, stderr := client.wait(5 * time.Second)
	if code != 1 || !strings.Contains(stderr, "connection refused") || !strings.Contains(stderr, "start the receiving end first") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestAServerWithoutAClientEndsAfterItsWait(t *testing.T) {
	server := start(t, "traffic", "server", "-listen", fmt.Sprintf("127.0.0.1:%d", freePort(t)), "-once", "-wait", "100ms")
	if code, _, stderr := server.wait(3 * time.Second); code != 1 || !strings.Contains(stderr, "no client came") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestAServerServesOneClientAfterAnotherAndSurvivesStrangers(t *testing.T) {
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	server := start(t, "traffic", "server", "-listen", at)
	stranger, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
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

func TestWrongFlagsAreSaidWithUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "usage:"},
		{"sing", "neither server nor client"},
		{"server", "-listen ADDRESS:PORT is missing"},
		{"server -listen 127.0.0.1:65530", "choose a port up to 65520"},
		{"client -connect 10.0.0.1", "no address and port"},
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
