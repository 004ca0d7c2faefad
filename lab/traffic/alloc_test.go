package traffic

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// pairOf makes the two ends of one flow over loopback, in this process.
func pairOf(t testing.TB, s Spec) (client, server *crew) {
	t.Helper()
	s.Workload.Streams, s.Workload.IPVersion = 1, 4
	at := netip.MustParseAddrPort("127.0.0.1:0")
	client, server = newCrew(), newCrew()
	var local, remote int
	var err error
	if s.Workload.Kind.UDP() {
		remote, err = listenUDP(at, s.socketOptions())
	} else {
		remote, err = listenTCP(at, s.socketOptions(), 128)
	}
	must.Succeed(t, err)
	port := must.Get(localPort(remote))(t)
	to := netip.AddrPortFrom(at.Addr(), port)
	switch {
	case s.Workload.Kind == suite.TCPCRR:
		local = -1
	case s.Workload.Kind.UDP():
		local = must.Get(newSocket(unix.SOCK_DGRAM, at.Addr(), s.socketOptions()))(t)
		must.Succeed(t, connectBy(local, to, time.Now().Add(time.Second)))
		sa := must.Get(unix.Getsockname(local))(t)
		must.Succeed(t, unix.Connect(remote, sa))
	default:
		listening := remote
		local = must.Get(dialTCP(to, netip.Addr{}, s.socketOptions(), time.Now().Add(time.Second)))(t)
		remote = must.Get(acceptBy(listening, time.Now().Add(time.Second)))(t)
		unix.Close(listening)
	}
	f := s.flows()[0]
	w := must.Get(client.enlist(s, f, true, local))(t)
	if s.Workload.Kind == suite.TCPCRR {
		must.Succeed(t, w.dials(s, to))
	}
	must.Get(server.enlist(s, f, false, remote))(t)
	return client, server
}

// both runs two crews for a time and ends them.
func both(t testing.TB, client, server *crew, during func()) {
	t.Helper()
	client.prepare()
	server.prepare()
	for _, c := range []*crew{server, client} {
		c.stage.phase.Store(measuring)
		must.Succeed(t, c.start())
		c.release()
	}
	during()
	for _, c := range []*crew{client, server} {
		c.stage.phase.Store(cooling)
	}
	client.stage.phase.Store(stopping)
	within(graceTimeout, client.drove, nil)
	must.Succeed(t, client.close())
	must.Succeed(t, server.close())
	for _, c := range []*crew{client, server} {
		must.Succeed(t, c.fault())
	}
}

var everyLoop = map[string]Spec{
	"tcp_stream": {Workload: suite.Workload{Kind: suite.TCPStream, Direction: suite.Forward, Buffer: 16 << 10}},
	"tcp_small":  {Workload: suite.Workload{Kind: suite.TCPStream, Direction: suite.Forward, Buffer: 64}},
	"sendfile":   {Workload: suite.Workload{Kind: suite.TCPStream, Direction: suite.Forward, Buffer: 16 << 10, Sendfile: true}},
	"tcp_rr":     {Workload: suite.Workload{Kind: suite.TCPRR, Request: 1, Response: 1}},
	"tcp_crr":    {Workload: suite.Workload{Kind: suite.TCPCRR, Request: 1, Response: 1, NoDelay: true, SendBuffer: 1 << 16}},
	"udp_stream": {Workload: suite.Workload{Kind: suite.UDPStream, Direction: suite.Forward, Buffer: 1000}},
	"udp_paced":  {Workload: suite.Workload{Kind: suite.UDPStream, Direction: suite.Forward, Buffer: 1000, Rate: 8e7}},
	"udp_rr":     {Workload: suite.Workload{Kind: suite.UDPRR, Request: 1, Response: 1}},
}

func TestNoLoopAllocates(t *testing.T) {
	for name, spec := range everyLoop {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			var calls int64
			// On a busy machine the threads may get little of a CPU in 0.1 s.
			for wait := 100 * time.Millisecond; calls < 100; wait *= 4 {
				if wait > 10*time.Second {
					t.Fatalf("only %d calls were made in %v", calls, wait/4)
				}
				client, server := pairOf(t, spec)
				both(t, client, server, func() {
					time.Sleep(50 * time.Millisecond)
					runtime.ReadMemStats(&before)
					time.Sleep(wait)
					runtime.ReadMemStats(&after)
				})
				calls = client.workers[0].tally.read().calls + server.workers[0].tally.read().calls + client.workers[0].tally.read().datagrams
			}
			// The test itself and the runtime's timers make a few; a loop that
			// allocates does so in every few calls.
			if n := after.Mallocs - before.Mallocs; n > 20+uint64(calls)/20 {
				t.Errorf("%d allocations during about %d calls, want none but the test's own", n, calls)
			}
		})
	}
}

func TestALatencyIsRecordedWithoutAllocating(t *testing.T) {
	w := &worker{latency: newHistogram(), course: newCourse(suite.Timing{Duration: time.Second}), stage: &stage{}}
	w.stage.phase.Store(measuring)
	must.Equal(t, 0, testing.AllocsPerRun(1000, func() { w.record(1000, 13345) }))
	w.record(0, 0)
	w.record(0, 2*longestLatency)
	if w.latency.TotalCount() != 1003 || w.latency.Max() < longestLatency {
		t.Errorf("%d values up to %d: want those out of range at its ends", w.latency.TotalCount(), w.latency.Max())
	}
}

func TestClockIsReadWithoutAllocating(t *testing.T) {
	must.Equal(t, 0, testing.AllocsPerRun(1000, func() { now() }))
}

// BenchmarkLoopback moves traffic between two threads of this process. It
// reports payload Gbit/s or transactions/s; `taskset -c 0,1` for two CPUs.
func BenchmarkLoopback(b *testing.B) {
	for _, name := range []string{"tcp_stream", "tcp_small", "sendfile", "tcp_rr", "tcp_crr", "udp_stream", "udp_rr"} {
		b.Run(name, func(b *testing.B) {
			spec := everyLoop[name]
			spec.Workload.Buffer = max(spec.Workload.Buffer, 0)
			if spec.Workload.Buffer == 16<<10 {
				spec.Workload.Buffer = 128 << 10
			}
			for b.Loop() {
				client, server := pairOf(b, spec)
				began := now()
				both(b, client, server, func() { time.Sleep(300 * time.Millisecond) })
				seconds := float64(now()-began) / 1e9
				w := server.workers[0]
				b.ReportMetric(float64(w.tally.read().bytes)*8/seconds/1e9, "Gbit/s")
				b.ReportMetric(float64(w.tally.read().calls+w.tally.read().datagrams)/seconds, "calls/s")
			}
		})
	}
}

func BenchmarkClock(b *testing.B) {
	for b.Loop() {
		now()
	}
}

func BenchmarkRecord(b *testing.B) {
	w := &worker{latency: newHistogram(), course: newCourse(suite.Timing{Duration: time.Second}), stage: &stage{}}
	w.stage.phase.Store(measuring)
	for b.Loop() {
		w.record(0, 50_000)
	}
}
