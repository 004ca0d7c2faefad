package meter

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

func meterOf(t testing.TB, j joined) *Meter {
	t.Helper()
	m := must.Get(New(Config{
		Node: "n", CPUs: testprogram.CPUs(t),
		Namespaces: []Namespace{{Name: "left", NS: j.left}, {Name: "right", NS: j.right}},
		Devices:    []Device{{"left", "left", RoleEndpoint, true, 0}, {"right", "right", RoleEndpoint, true, 1}},
	}))(t)
	t.Cleanup(m.Close)
	return m
}

func read(t testing.TB, m *Meter) Reading {
	t.Helper()
	r := must.Get(m.Read())(t)
	// Readings travel as text.
	text := must.Get(json.Marshal(r))(t)
	var back Reading
	must.Succeed(t, json.Unmarshal(text, &back))
	return back
}

func window(t testing.TB, a, b Reading) Delta {
	t.Helper()
	return must.Get(Window(a, b))(t)
}

// segmentInSoftware makes the left device cut superframes, as a NIC does before
// the wire.
func (j joined) segmentInSoftware(t testing.TB) {
	features(t, j.left, "left", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation", "tx-generic-segmentation")
}

// features switches offloads off, or on where the name starts with "+".
func features(t testing.TB, ns netns.NsHandle, device string, names ...string) {
	t.Helper()
	change := map[string]bool{}
	for _, n := range names {
		if n[0] == '+' {
			change[n[1:]] = true
		} else {
			change[n] = false
		}
	}
	err := insideOf(ns, func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		return e.Change(device, change)
	})
	if err != nil {
		t.Skipf("cannot switch offloads of %s: %v", device, err)
	}
}

const transferred = 40 << 20

// The four ways in which a veth delivers: whole superframes, and frames cut by
// the sender, each with and without polling; in both IP versions. In all of
// them the counters must give the payload.
func TestCountersMatchKnownTraffic(t *testing.T) {
	for _, x := range []struct {
		name, to  string
		ip        int
		cut, poll bool
	}{
		{"superframes", "10.99.0.2:0", 4, false, false},
		{"superframes over IPv6", "[fd99::2]:0", 6, false, false},
		{"frames", "10.99.0.2:0", 4, true, false},
		{"frames, polled", "10.99.0.2:0", 4, true, true},
		{"frames over IPv6, polled", "[fd99::2]:0", 6, true, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			j := join(t)
			if x.cut {
				j.segmentInSoftware(t)
			}
			if x.poll {
				features(t, j.right, "right", "+rx-gro")
			}
			m := meterOf(t, j)
			sender, receiver := j.connect(t, x.to)
			a := read(t, m)
			transfer(t, sender, receiver, transferred)
			d := window(t, a, read(t, m))

			left, right := d.Namespaces[0], d.Namespaces[1]
			dev := right.Devices[0]
			payload := goodputFromCounters(dev.ReceivedBytes(), dev.RxPackets, TCPHeaders(x.ip))
			// A neighbour or router solicitation can pass too. It is shorter than TCP's headers, so it counts as
			// less than no payload.
			const strays = 5
			least := float64(transferred) - strays*float64(TCPHeaders(x.ip))
			// Retransmitted segments pass the device too.
			again := left.Counters[TCPRetransSegs] * 1448
			if float64(payload) < least || payload > transferred+transferred/1000+again {
				t.Errorf("%d bytes of payload by the device's counters (%+v), want %d", payload, dev.Traffic, transferred)
			}
			// The two devices are read one after the other, and neighbour solicitations can pass in between.
			if dev.ReceivedBytes() <= transferred || !near(float64(left.Devices[0].TxPackets), float64(dev.RxPackets), strays) {
				t.Errorf("sent %+v, received %+v", left.Devices[0].Traffic, dev.Traffic)
			}
			if polled := dev.RxBare > 0; polled != x.poll {
				t.Errorf("%d packets were polled", dev.RxBare)
			}
			if segment := float64(dev.RxBytes) / float64(dev.RxPackets); x.cut != (segment <= 1514) {
				t.Errorf("%.0f bytes in a packet", segment)
			}
			wantSockets(t, left, right)
			if s := left.Counters[TCPOutSegs]; s < transferred/1448 || s > transferred/1000 {
				t.Errorf("%d segments sent", s)
			}
			if x.poll {
				buffers := right.Counters[IPInReceives] + right.Counters[IP6InReceives]
				if merged := float64(dev.RxPackets) / float64(buffers); merged < 2 {
					t.Errorf("%.1f frames in a buffer: GRO did not merge, or the counters miss it", merged)
				}
			}
		})
	}
}

func wantSockets(t *testing.T, left, right NamespaceDelta) {
	t.Helper()
	if len(left.Sockets) != 1 || len(right.Sockets) != 1 {
		t.Fatalf("%d and %d sockets, want one each", len(left.Sockets), len(right.Sockets))
	}
	s, r := left.Sockets[0], right.Sockets[0]
	if s.New || r.New || r.BytesReceived != transferred || s.BytesAcked > transferred || s.BytesAcked < transferred/2 {
		t.Errorf("sent %+v, received %+v", s, r)
	}
	if s.Local != r.Remote || s.RTT <= 0 || s.MSS < 1000 || s.Cwnd == 0 {
		t.Errorf("sender's socket: %+v", s)
	}
	if s.TotalRetrans != uint32(left.Counters[TCPRetransSegs]) {
		t.Errorf("the socket sent %d segments again, the namespace %d", s.TotalRetrans, left.Counters[TCPRetransSegs])
	}
}

// A third namespace without traffic must not show that of the others.
func TestCountersOfOtherNamespacesDoNotChange(t *testing.T) {
	j := join(t)
	quiet := newSpace(t, "q")
	m := must.Get(New(Config{Node: "n", CPUs: testprogram.CPUs(t), Namespaces: []Namespace{{Name: "quiet", NS: quiet}, {Name: "left", NS: j.left}}}))(t)
	defer m.Close()
	sender, receiver := j.connect(t, "10.99.0.2:0")
	a := read(t, m)
	transfer(t, sender, receiver, 1<<20)
	d := window(t, a, read(t, m))
	for name, n := range d.Namespaces[0].Counters {
		if n != 0 {
			t.Errorf("%s counted %d in a namespace without traffic", name, n)
		}
	}
	if len(d.Namespaces[0].Sockets) != 0 {
		t.Errorf("sockets of another namespace: %+v", d.Namespaces[0].Sockets)
	}
	if d.Namespaces[1].Counters[TCPOutSegs] < 1<<20/1448 {
		t.Errorf("%d segments", d.Namespaces[1].Counters[TCPOutSegs])
	}
}

// The gate machine-stall rejects a trial if a light reading of its series is more than 50 ms late. On a busy CPU, a full reading of a
// thousand connections takes longer than 50 ms, so light readings must not wait for it. In this test a full reading waits for a FIFO, into
// which the test writes only after the light reading.
func TestLightReadingsDoNotWaitForAFullReading(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "cpu.stat")
	must.Succeed(t, unix.Mkfifo(slow, 0o600))
	m := must.Get(New(Config{Node: "n", CPUs: testprogram.CPUs(t), Groups: []Group{{Name: "slow", Files: []string{slow}}}}))(t)
	defer m.Close()
	full := make(chan error, 1)
	go func() {
		_, err := m.Read()
		full <- err
	}()
	writer := must.Get(os.OpenFile(slow, os.O_WRONLY, 0))(t) // returns when the full reading has opened the file
	light := make(chan error, 1)
	go func() { light <- m.ReadLight(&Light{}) }()
	select {
	case err := <-light:
		must.Succeed(t, err)
	case <-time.After(10 * time.Second):
		t.Error("a light reading did not end within 10 s, while a full reading was in progress")
	}
	must.Get(writer.WriteString("usage_usec 1\n"))(t)
	must.Succeed(t, writer.Close())
	must.Succeed(t, <-full)
}

func TestSocketsAreChosenByPort(t *testing.T) {
	j := join(t)
	m := meterOf(t, j)
	_, receiver := j.connect(t, "10.99.0.2:7801")
	j.connect(t, "10.99.0.2:7901")
	m.SetPorts(PortRange{7800, 7815})
	r := read(t, m)
	if got := r.Namespaces[1].Sockets; len(got) != 1 || got[0].Local.String() != receiver.LocalAddr().String() {
		t.Errorf("the receiver's sockets are %+v, want the accepted one", got)
	}
	if got := r.Namespaces[0].Sockets; len(got) != 1 || got[0].Remote.Port() != 7801 {
		t.Errorf("the sender's sockets are %+v, want the one to port 7801", got)
	}
}

func TestAClosedMeterReleasesTheNamespace(t *testing.T) {
	j := join(t)
	before := openFiles(t)
	m := meterOf(t, j)
	read(t, m)
	m.Close()
	must.Equal(t, before, openFiles(t))
}

func openFiles(t testing.TB) int {
	t.Helper()
	runtime.GC()
	entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
	return len(entries)
}

func TestMissingDeviceIsNamed(t *testing.T) {
	j := join(t)
	m, err := New(Config{Node: "n", CPUs: testprogram.CPUs(t), Namespaces: []Namespace{{Name: "left", NS: j.left}}, Devices: []Device{{Namespace: "left", Name: "nothere", Role: RoleVif}}})
	must.Succeed(t, err)
	defer m.Close()
	_, err = m.Read()
	must.Fail(t, err, "nothere", "left")
	if _, err := New(Config{Node: "n", CPUs: []int{0}, Devices: []Device{{Namespace: "c9", Name: "eth0", Role: RoleVif}}}); err == nil {
		t.Error("a device of an unknown namespace was accepted")
	}
	if _, err := New(Config{Node: "n"}); err == nil {
		t.Error("a node without CPUs was accepted")
	}
}

// A tool that works in a grandchild is metered with it, also when the process
// between them has ended.
func TestToolTimeIncludesDescendants(t *testing.T) {
	// The shell's child counts in a grandchild, which outlives it.
	cmd := exec.Command("sh", "-c", `sh -c 'timeout --foreground 30 sh -c "while :; do :; done" & sleep 0.5'; sleep 30`)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Skipf("no shell: %v", err)
	}
	defer func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // the group that this test made
		_ = cmd.Wait()
	}()
	m := must.Get(New(Config{Node: "n", CPUs: testprogram.CPUs(t), FineIdle: FineIdle()}))(t)
	defer m.Close()
	m.Track("tool", cmd.Process.Pid)
	// Other programs use the CPUs too: the tool's processes have as long as they need.
	deadline := time.Now().Add(20 * time.Second)
	a := read(t, m)
	for len(a.Processes) < 3 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
		a = read(t, m)
	}
	if len(a.Processes) < 3 {
		t.Fatalf("%d processes, want the shell, its child and what that started: %+v", len(a.Processes), a.Processes)
	}
	time.Sleep(800 * time.Millisecond) // the process between them ends meanwhile
	d := window(t, a, read(t, m))
	for d.Tools["tool"] < 0.2 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
		d = window(t, a, read(t, m))
	}
	if s := d.Tools["tool"]; s < 0.2 || s > 1.05*d.Seconds {
		t.Errorf("%.3f CPU seconds in a window of %.3f s (%q)", s, d.Seconds, d.Warnings)
	}
}

func TestEverySourceOfCPUTimeAgrees(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Skipf("no shell: %v", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pid := cmd.Process.Pid
	time.Sleep(300 * time.Millisecond)
	must.Succeed(t, unix.Kill(pid, unix.SIGSTOP)) // so that both readings have the same CPU time
	time.Sleep(20 * time.Millisecond)
	exact := must.Get(processClock(pid))(t)
	stat := must.Get(readProcess(pid))(t)
	ticks := int64(stat.UTime+stat.STime) * tickNanoseconds
	if exact == 0 || !near(float64(ticks), float64(exact), 2*tickNanoseconds) {
		t.Errorf("CPU time %d ns by the clock and %d ns by the ticks, want nearly equal values", exact, ticks)
	}
}

func TestSelfCPUIsTheTimeOfThisProcess(t *testing.T) {
	before := must.Get(selfCPU())(t)
	spin(t, 20*time.Millisecond)
	after := must.Get(selfCPU())(t)
	if used := after - before; used < 20e6 {
		t.Errorf("%d ns after 20 ms of work", used)
	}
}

func TestAProcessNameCanContainParentheses(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "a) (b\n) c")
	must.Succeed(t, os.Symlink(sleep, path))
	cmd := exec.Command(path, "5")
	must.Succeed(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	got, err := readProcess(cmd.Process.Pid)
	if err != nil || got.Comm != filepath.Base(path) || got.PPID != os.Getpid() || got.Starttime == 0 {
		t.Errorf("the process is %+v (%v), want the started program", got, err)
	}
}

// The list and the scan of /proc must name the same children.
func TestChildrenAreFoundInBothWays(t *testing.T) {
	cmd := exec.Command("sleep", "5")
	if err := cmd.Start(); err != nil {
		t.Skipf("no sleep: %v", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for name, of := range map[string]func(int) ([]int, error){"list": childrenOf, "scan": childrenByScan} {
		got, err := of(os.Getpid())
		if err != nil || !slices.Contains(got, cmd.Process.Pid) {
			t.Errorf("by %s: %v, %v; want %d among them", name, got, err, cmd.Process.Pid)
		}
	}
}

func TestASeriesFollowsTheTraffic(t *testing.T) {
	j := join(t)
	m := meterOf(t, j)
	sender, receiver := j.connect(t, "10.99.0.2:0")
	stop, done := make(chan struct{}), make(chan []Light)
	go func() {
		lights, err := m.Record(20*time.Millisecond, 1000, stop)
		if err != nil {
			t.Error(err)
		}
		done <- lights
	}()
	start := must.Get(Now())(t)
	time.Sleep(50 * time.Millisecond)
	transfer(t, sender, receiver, 8<<20)
	time.Sleep(50 * time.Millisecond)
	close(stop)
	lights := <-done
	if len(lights) < 4 {
		t.Fatalf("%d readings", len(lights))
	}
	first, last := lights[0], lights[len(lights)-1]
	if got := last.Traffic[1].RxBytes - first.Traffic[1].RxBytes; got < 8<<20 || got > 9<<20 {
		t.Errorf("%d bytes at the right device", got)
	}
	if got := last.Traffic[0].RxBytes - first.Traffic[0].RxBytes; got == 0 || got > 1<<20 {
		t.Errorf("%d bytes at the left device, want acknowledgements only", got)
	}
	points := Points(SeriesSide{Lights: lights, CPUs: m.config.CPUs}, nil, nil, start, Facts{Colocated: true})
	for _, p := range points {
		if p.SenderCPU < 0 || p.SenderCPU > 100 || p.Bits < 0 {
			t.Errorf("the slice %+v has CPU outside 0 to 100 %%, or a negative rate", p)
		}
	}
}

func TestASeriesEndsAtItsLimitAndRefusesInvalidArguments(t *testing.T) {
	m := must.Get(New(Config{Node: "n", CPUs: testprogram.CPUs(t), FineIdle: FineIdle()}))(t)
	defer m.Close()
	stop := make(chan struct{})
	time.AfterFunc(5*time.Second, func() { close(stop) })
	lights, err := m.Record(time.Millisecond, 5, stop)
	if err != nil || len(lights) != 5 {
		t.Errorf("%d readings, %v", len(lights), err)
	}
	if _, err := m.Record(0, 5, stop); err == nil {
		t.Error("an interval of nothing was accepted")
	}
}

func TestTheSeriesIncludesTheReadingAtItsStop(t *testing.T) {
	m := must.Get(New(Config{Node: "n", CPUs: testprogram.CPUs(t), FineIdle: FineIdle()}))(t)
	defer m.Close()
	stop := make(chan struct{})
	close(stop)
	lights, err := m.Record(time.Hour, 5, stop)
	if err != nil || len(lights) != 2 || lights[1].Mono <= lights[0].Mono {
		t.Errorf("readings %+v, %v; want one at the start and one at the stop", lights, err)
	}
}

// Ten readings a second of at most 150 µs take 0.15 % of a CPU.
func BenchmarkReadLight(b *testing.B) {
	m := meterOf(b, join(b))
	var l Light
	b.ReportAllocs()
	for b.Loop() {
		must.Succeed(b, m.ReadLight(&l))
	}
}

func BenchmarkRead(b *testing.B) {
	m := meterOf(b, join(b))
	for b.Loop() {
		if _, err := m.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// spin keeps the calling thread busy for so much CPU time.
func spin(t testing.TB, d time.Duration) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := must.Get(readClock(unix.CLOCK_THREAD_CPUTIME_ID, "thread"))(t)
	for end := time.Now().Add(20 * d); ; {
		now := must.Get(readClock(unix.CLOCK_THREAD_CPUTIME_ID, "thread"))(t)
		if time.Duration(now-start) >= d || time.Now().After(end) {
			return
		}
	}
}
