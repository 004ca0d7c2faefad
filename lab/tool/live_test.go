package tool

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// liveCase is one workload that a real program runs between two namespaces.
type liveCase struct {
	name string
	w    suite.Workload
}

// liveStream, liveRR and liveDatagrams make the workloads that the cases vary.
func liveStream(change func(*suite.Workload)) suite.Workload {
	w := suite.Workload{Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 128 << 10, IPVersion: 4}
	if change != nil {
		change(&w)
	}
	return w
}

func liveRR(kind suite.Kind, size int64, version int) suite.Workload {
	return suite.Workload{Kind: kind, Direction: suite.Forward, Streams: 1, Request: size, Response: size, IPVersion: version}
}

func liveDatagrams(rate int64, change func(*suite.Workload)) suite.Workload {
	w := suite.Workload{Kind: suite.UDPStream, Direction: suite.Forward, Streams: 1, Buffer: 1400, Rate: rate, IPVersion: 4}
	if change != nil {
		change(&w)
	}
	return w
}

const pace = 200e6 // bits per second

var liveCases = map[string][]liveCase{
	"iperf3": {
		{"two streams with no-delay", liveStream(func(w *suite.Workload) { w.Streams, w.NoDelay = 2, true })},
		{"reverse over IPv6, socket buffers", liveStream(func(w *suite.Workload) {
			w.Direction, w.IPVersion, w.SendBuffer, w.ReceiveBuffer = suite.Reverse, 6, 200000, 200000
		})},
		{"both directions", liveStream(func(w *suite.Workload) { w.Direction = suite.Both })},
		{"paced sendfile", liveStream(func(w *suite.Workload) { w.Sendfile, w.Rate = true, pace })},
		{"UDP at a rate", liveDatagrams(pace, nil)},
		{"UDP reverse, two streams", liveDatagrams(pace, func(w *suite.Workload) { w.Direction, w.Streams = suite.Reverse, 2 })},
		{"UDP both directions", liveDatagrams(pace, func(w *suite.Workload) { w.Direction, w.IPVersion = suite.Both, 6 })},
		{"UDP unlimited", liveDatagrams(0, nil)},
	},
	"qperf": {
		{"stream, receive buffer", liveStream(func(w *suite.Workload) { w.ReceiveBuffer = 200000 })},
		{"UDP", liveDatagrams(0, nil)},
		{"TCP request/response over IPv6", liveRR(suite.TCPRR, 1, 6)},
		{"UDP request/response", liveRR(suite.UDPRR, 64, 4)},
	},
	"sockperf": {
		{"stream, no-delay, socket buffers", liveStream(func(w *suite.Workload) {
			w.Buffer, w.NoDelay, w.SendBuffer, w.ReceiveBuffer = 60000, true, 100000, 200000
		})},
		{"paced stream", liveStream(func(w *suite.Workload) { w.Buffer, w.Rate = 10000, pace })},
		{"UDP at a rate", liveDatagrams(pace, nil)},
		{"TCP request/response", liveRR(suite.TCPRR, 14, 4)},
		{"TCP request/response, no-delay", func() suite.Workload { w := liveRR(suite.TCPRR, 64, 4); w.NoDelay = true; return w }()},
		{"UDP request/response, socket buffers", func() suite.Workload {
			w := liveRR(suite.UDPRR, 64, 4)
			w.SendBuffer, w.ReceiveBuffer = 100000, 100000
			return w
		}()},
	},
	"netperf": {
		{"stream, no-delay, socket buffers", liveStream(func(w *suite.Workload) { w.NoDelay, w.SendBuffer, w.ReceiveBuffer = true, 100000, 200000 })},
		{"reverse over IPv6", liveStream(func(w *suite.Workload) { w.Direction, w.IPVersion = suite.Reverse, 6 })},
		{"both directions, two streams each", liveStream(func(w *suite.Workload) { w.Direction, w.Streams = suite.Both, 2 })},
		{"sendfile", liveStream(func(w *suite.Workload) { w.Sendfile = true })},
		{"UDP", liveDatagrams(0, nil)},
		{"TCP request/response", liveRR(suite.TCPRR, 1, 4)},
		{"TCP request/response, two at once", func() suite.Workload {
			w := liveRR(suite.TCPRR, 1, 4)
			w.Streams, w.NoDelay, w.Response = 2, true, 1000
			return w
		}()},
		{"UDP request/response over IPv6", liveRR(suite.UDPRR, 64, 6)},
		{"connect/request/response", liveRR(suite.TCPCRR, 1, 4)},
	},
	"ntttcp": {
		{"two streams", liveStream(func(w *suite.Workload) { w.Streams = 2 })},
		{"paced, no-delay, IPv6", liveStream(func(w *suite.Workload) { w.Rate, w.NoDelay, w.IPVersion = pace, true, 6 })},
		{"UDP", liveDatagrams(0, nil)},
	},
	"builtin-ntttcp": {
		{"two streams, socket buffers", liveStream(func(w *suite.Workload) { w.Streams, w.SendBuffer, w.ReceiveBuffer = 2, 200000, 2<<20 })},
		{"one segment at a time, paced", liveStream(func(w *suite.Workload) { w.Buffer, w.NoDelay, w.Rate = 1390, true, pace })},
		{"UDP at a rate over IPv6", liveDatagrams(pace, func(w *suite.Workload) { w.IPVersion = 6 })},
	},
	"fio": {
		{"two streams, socket buffers", liveStream(func(w *suite.Workload) { w.Streams, w.SendBuffer, w.ReceiveBuffer = 2, 200000, 400000 })},
		{"reverse over IPv6, no-delay", liveStream(func(w *suite.Workload) { w.Direction, w.IPVersion, w.NoDelay = suite.Reverse, 6, true })},
		{"both directions", liveStream(func(w *suite.Workload) { w.Direction = suite.Both })},
		{"UDP unlimited over IPv6", liveDatagrams(0, func(w *suite.Workload) { w.IPVersion = 6 })},
		{"TCP request/response, two at once", func() suite.Workload {
			w := liveRR(suite.TCPRR, 64, 4)
			w.Streams, w.NoDelay = 2, true
			return w
		}()},
		{"paced both directions", liveStream(func(w *suite.Workload) { w.Direction, w.Rate, w.Streams = suite.Both, pace, 2 })},
		{"UDP at a rate", liveDatagrams(pace, func(w *suite.Workload) { w.Streams = 2 })},
		{"UDP request/response", liveRR(suite.UDPRR, 64, 4)},
	},
}

// TestEveryPlannedWorkloadRunsWithTheRealProgram runs the tools side by side:
// figures under load are only asked to be plausible, and the whole stays
// short.
func TestEveryPlannedWorkloadRunsWithTheRealProgram(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	port := uint16(7000)
	for name, cases := range liveCases {
		base := port
		port += 1000
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			driver, ok := ByName(name)
			if !ok {
				t.Fatalf("no tool %s in the registry", name)
			}
			for _, p := range driver.Programs() {
				if _, err := exec.LookPath(p.Name); err != nil {
					t.Skipf("%s is not installed; get it with: %s", p.Name, p.Remedy())
				}
			}
			pair := newNamespacePair(t)
			// sockperf sleeps two seconds before each run, and NTttcp's form
			// takes three whole ones: their cases wait together.
			together := 2
			if name == "sockperf" || name == "builtin-ntttcp" {
				together = len(cases)
			}
			runs := make([]*liveRun, len(cases))
			var running crowd
			running.limit(together)
			for i, c := range cases {
				runs[i] = newLiveRun(t, driver, pair, c.w, base+uint16(i*portsPerJob))
				running.run(runs[i].do)
			}
			running.wait()
			for i, c := range cases {
				t.Run(c.name, runs[i].judge)
			}
		})
	}
}

// crowd bounds how many functions run at once.
type crowd struct {
	slots chan struct{}
	wg    sync.WaitGroup
}

func (g *crowd) limit(n int) { g.slots = make(chan struct{}, n) }

func (g *crowd) run(do func()) {
	g.slots <- struct{}{}
	g.wg.Go(func() {
		defer func() { <-g.slots }()
		do()
	})
}

func (g *crowd) wait() { g.wg.Wait() }

// liveRun is one workload planned, and once done, what its processes printed.
type liveRun struct {
	driver  Tool
	pair    *namespacePair
	job     Job
	plan    []Process
	outputs map[string]Output
	err     error
}

func newLiveRun(t *testing.T, driver Tool, pair *namespacePair, w suite.Workload, port uint16) *liveRun {
	t.Helper()
	if err := driver.Supports(w); err != nil {
		t.Fatalf("a case is not supported: %v", err)
	}
	r := &liveRun{driver: driver, pair: pair, job: Job{
		Workload: w,
		Timing:   suite.Timing{Warmup: 200 * time.Millisecond, Duration: 700 * time.Millisecond, Cooldown: 100 * time.Millisecond},
		Sender:   pair.address(OnSender, w.IPVersion),
		Receiver: pair.address(OnReceiver, w.IPVersion),
		Port:     port,
		MTU:      1500,
	}}
	var err error
	if r.job.Self, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	if r.plan, err = driver.Plan(r.job); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *liveRun) do() { r.outputs, r.err = r.pair.run(r.plan) }

// judge parses and asserts the figures.
func (r *liveRun) judge(t *testing.T) {
	if r.err != nil {
		t.Fatal(r.err)
	}
	m, err := r.driver.Parse(r.job, r.outputs)
	if err != nil {
		for _, p := range r.plan {
			t.Logf("%s: %q\nstdout: %s\nstderr: %s", p.Role, p.Argv, r.outputs[p.Role].Stdout, r.outputs[p.Role].Stderr)
		}
		t.Fatal(err)
	}
	plausible(t, r.job.Workload, m)
}

// plausible asserts what has to hold on any machine, busy or not.
func plausible(t *testing.T, w suite.Workload, m Measurement) {
	t.Helper()
	between := func(metric sample.Metric, low, high float64) {
		t.Helper()
		if v, ok := m.Metrics[metric]; !ok || v < low || v > high {
			t.Errorf("%s is %v (present: %v), want between %v and %v; all: %v", metric, v, ok, low, high, m.Metrics)
		}
	}
	if w.Kind.Exchange() {
		between(sample.Transactions, 20, 2e6)
		if _, merged := m.Metrics[sample.LatencyMean]; merged {
			// The connections work at once, so that mean latency times rate
			// is their number. A crowded machine blurs that; units are a
			// thousandfold apart.
			product := m.Metrics[sample.LatencyMean] / 1e9 * m.Metrics[sample.Transactions]
			if n := float64(w.Streams); product < 0.05*n || product > 20*n {
				t.Errorf("mean latency × transactions/s is %.2f with %d connections: one of the units is wrong; all: %v", product, w.Streams, m.Metrics)
			}
		} else {
			t.Error("no mean latency")
		}
		return
	}
	low, high := 5e6, 1e12
	if w.Rate > 0 {
		sides := 1.0
		if w.Direction == suite.Both {
			sides = 2
		}
		low, high = 0.1*pace*sides, 2*pace*sides // a crowded one falls behind, and makes up for it
	}
	if w.Kind == suite.UDPStream { // a crowded receiver loses datagrams
		between(sample.SenderThroughput, low, high)
		low = 1e6
	}
	between(sample.Throughput, low, high)
	if w.Direction == suite.Both {
		sum := m.Metrics[sample.ForwardThroughput] + m.Metrics[sample.ReverseThroughput]
		between(sample.Throughput, sum*0.999, sum*1.001)
		between(sample.ForwardThroughput, 1e6, 1e12)
		between(sample.ReverseThroughput, 1e6, 1e12)
	}
	if w.Kind == suite.UDPStream {
		between(sample.LossRatio, 0, 1)
		between(sample.DatagramsReceived, 0.9*m.Metrics[sample.Throughput]/8/float64(w.Buffer), 1.1*m.Metrics[sample.Throughput]/8/float64(w.Buffer))
		between(sample.SenderThroughput, 0.5*m.Metrics[sample.Throughput], 1e12)
	}
}

// namespacePair is two anonymous network namespaces joined by a veth. They
// have no name, so they vanish with the last process in them.
type namespacePair struct {
	spaces map[Side]netns.NsHandle
}

// address gives the documentation addresses of RFC 5737 and RFC 3849.
func (p *namespacePair) address(s Side, version int) netip.Addr {
	last := map[Side]int{OnSender: 1, OnReceiver: 2}[s]
	if version == 6 {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", last))
	}
	return netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", last))
}

func newNamespacePair(t *testing.T) *namespacePair {
	t.Helper()
	p := &namespacePair{spaces: map[Side]netns.NsHandle{}}
	for _, s := range []Side{OnSender, OnReceiver} {
		if err := inNamespace(netns.None(), func() error {
			ns, err := netns.New()
			p.spaces[s] = ns
			return err
		}); err != nil {
			t.Skipf("a network namespace cannot be made here: %v", err)
		}
		t.Cleanup(func() {
			ns := p.spaces[s]
			if err := ns.Close(); err != nil {
				t.Errorf("close namespace: %v", err)
			}
		})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("join two namespaces by veth: %v", err)
		}
	}
	must(inNamespace(p.spaces[OnSender], func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs:     netlink.LinkAttrs{Name: "wt-a", MTU: 1500},
			PeerName:      "wt-b",
			PeerNamespace: netlink.NsFd(p.spaces[OnReceiver]),
		})
	}))
	for s, device := range map[Side]string{OnSender: "wt-a", OnReceiver: "wt-b"} {
		must(inNamespace(p.spaces[s], func() error { return p.configure(s, device) }))
	}
	return p
}

// configure brings the devices of the calling thread's namespace up.
func (p *namespacePair) configure(s Side, device string) error {
	for _, name := range []string{"lo", device} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if name == device {
			for version, bits := range map[int]int{4: 24, 6: 64} {
				address, err := netlink.ParseAddr(netip.PrefixFrom(p.address(s, version), bits).String())
				if err != nil {
					return err
				}
				if version == 6 {
					address.Flags = syscall.IFA_F_NODAD
				}
				if err := netlink.AddrAdd(link, address); err != nil {
					return err
				}
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	return nil
}

// inNamespace runs do on a thread in ns. netns.None leaves the thread where it
// is, for do to move.
func inNamespace(ns netns.NsHandle, do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			result <- err
			return // the thread ends with its goroutine, still locked
		}
		defer func() { _ = home.Close() }()
		if ns.IsOpen() {
			if err := netns.Set(ns); err != nil {
				result <- err
				return
			}
		}
		err = do()
		if back := netns.Set(home); back != nil {
			result <- fmt.Errorf("return to the first namespace: %w", back)
			return
		}
		runtime.UnlockOSThread()
		result <- err
	}()
	return <-result
}

// liveProcess is one running process and what it has printed so far.
type liveProcess struct {
	cmd    *exec.Cmd
	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
	done   chan struct{}
}

// lockedWriter lets readiness read while the process writes.
type lockedWriter struct {
	p   *liveProcess
	buf *bytes.Buffer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.buf.Write(b)
}

func (p *liveProcess) output() Output {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Output{Stdout: p.stdout.String(), Stderr: p.stderr.String(), Exit: p.cmd.ProcessState.ExitCode()}
}

// run starts the processes in order, each once the one before is ready, and
// ends them as Process.Stays says.
func (p *namespacePair) run(plan []Process) (map[string]Output, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	running := make([]*liveProcess, 0, len(plan))
	defer func() {
		for _, r := range running {
			_ = r.signal(syscall.SIGKILL)
			<-r.done
		}
	}()
	for _, process := range plan {
		r, err := p.start(process)
		if err != nil {
			return nil, fmt.Errorf("start %q: %w", process.Argv, err)
		}
		running = append(running, r)
		if err := r.awaitReady(ctx, process); err != nil {
			return nil, fmt.Errorf("%q: %w; it printed %s", process.Argv, err, r.said())
		}
	}
	outputs := map[string]Output{}
	for i := len(plan) - 1; i >= 0; i-- {
		if plan[i].Stays { // gently, then by force, as the engine does it
			_ = running[i].signal(syscall.SIGINT)
			select {
			case <-running[i].done:
			case <-time.After(2 * time.Second):
				_ = running[i].signal(syscall.SIGKILL)
			}
		}
		select {
		case <-running[i].done:
			outputs[plan[i].Role] = running[i].output()
		case <-ctx.Done():
			return nil, fmt.Errorf("%q did not end; it printed %s", plan[i].Argv, running[i].said())
		}
	}
	return outputs, nil
}

func (p *namespacePair) start(process Process) (*liveProcess, error) {
	r := &liveProcess{cmd: exec.Command(process.Argv[0], process.Argv[1:]...), done: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = lockedWriter{r, &r.stdout}, lockedWriter{r, &r.stderr}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.WaitDelay = time.Second // a server's children may hold its pipes
	if err := inNamespace(p.spaces[process.On], r.cmd.Start); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.done)
	}()
	return r, nil
}

// signal reaches the process and its children.
func (r *liveProcess) signal(s syscall.Signal) error { return syscall.Kill(-r.cmd.Process.Pid, s) }

// awaitReady waits for the line or the port that says so.
func (r *liveProcess) awaitReady(ctx context.Context, process Process) error {
	if process.Ready == nil && process.Port == 0 {
		return nil
	}
	for {
		if process.Ready != nil && slices.ContainsFunc(strings.Split(r.said(), "\n"), process.Ready) || process.Ready == nil && r.listens(process.Port, process.UDP) {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("was not ready in time")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// said is everything printed so far.
func (r *liveProcess) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stdout.String() + "\n" + r.stderr.String()
}

// listens reads the process's namespace's socket tables.
func (r *liveProcess) listens(port uint16, udp bool) bool {
	tables, state := []string{"tcp", "tcp6"}, "0A" // TCP_LISTEN
	if udp {
		tables, state = []string{"udp", "udp6"}, "07" // TCP_CLOSE: an unconnected UDP socket
	}
	for _, table := range tables {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/net/" + table)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			fields := strings.Fields(line)
			if len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[3] == state {
				return true
			}
		}
	}
	return false
}
