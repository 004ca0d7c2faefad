package netns

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/delayline"
	"windtunnel/lab/meter"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

func delayed(delay time.Duration) suite.Fabric {
	return fabric(func(f *suite.Fabric) { f.Delay, f.NoCoalescing = delay, true })
}

// A delay of 200 µs makes a round trip 400 µs longer, on a link with a rate too.
func TestADelayMakesARoundTripTwiceAsMuchLonger(t *testing.T) {
	x := executor(t)
	for _, rate := range []int64{0, 100e6} {
		tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.Rate, f.NoCoalescing = rate, true }))
		near := roundTrip(t, tb)
		must.Succeed(t, tb.Down(context.Background()))
		for _, delay := range []time.Duration{50 * time.Microsecond, 200 * time.Microsecond, 5 * time.Millisecond} {
			t.Run(fmt.Sprintf("%v at %d bit/s", delay, rate), func(t *testing.T) {
				if rate > 0 || delay != 200*time.Microsecond {
					must.Long(t)
				}
				f := delayed(delay)
				f.Rate = rate
				tb := up(t, x, 2, f)
				before := tb.Delays()
				longer := roundTrip(t, tb) - near
				r := tb.Delays().Since(before)
				t.Logf("a round trip of %v is %v longer with a delay of %v; %d frames were late by %v, at most 1 %% by more than %v", near, longer, delay, r.Late.Sum(), r.Late.Quantile(0.5), r.Late.Quantile(0.99))
				if longer < 2*delay-near {
					t.Errorf("a round trip is %v longer with a delay of %v, want at least %v", longer, delay, 2*delay-near)
				}
				if off := longer - 2*delay; off > 100*time.Microsecond+2*delay/50 && os.Getenv("WINDTUNNEL_TIMING_TESTS") != "" {
					t.Errorf("a round trip is %v longer with a delay of %v, want %v", longer, delay, 2*delay)
				}
			})
		}
	}
}

// roundTrip is the median time of a request and response of 1 byte between the nodes.
func roundTrip(t *testing.T, tb *Testbed) time.Duration {
	t.Helper()
	server := connIn(t, tb.nodes[1], address(tb, "", 1, 4), netip.AddrPort{})
	client := connIn(t, tb.nodes[0], address(tb, "", 0, 4), netip.AddrPortFrom(address(tb, "", 1, 4), testPort))
	go func() {
		buf := make([]byte, 1)
		for {
			_, from, err := server.(*net.UDPConn).ReadFromUDPAddrPort(buf)
			if err == nil {
				_, err = server.(*net.UDPConn).WriteToUDPAddrPort(buf, from)
			}
			if err != nil {
				return // closed at the end of the test
			}
		}
	}()
	var times []time.Duration
	buf := make([]byte, 1)
	for range 200 {
		began := time.Now()
		must.Get(client.Write(buf))(t)
		must.Get(client.Read(buf))(t)
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)/2]
}

const testPort = 7001

// connIn makes a UDP socket in a node's namespace, with the port testPort. It is connected if to is valid.
func connIn(t *testing.T, n *node, at netip.Addr, to netip.AddrPort) net.Conn {
	t.Helper()
	var c net.Conn
	must.Succeed(t, n.space.Do(func() error {
		var err error
		local := net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, testPort))
		if to.IsValid() {
			c, err = net.DialUDP("udp", local, net.UDPAddrFromAddrPort(to))
		} else {
			c, err = net.ListenUDP("udp", local)
		}
		return err
	}))
	t.Cleanup(func() { c.Close() })
	must.Succeed(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return c
}

// Frames of a link with a delay arrive whole, all of them and in order, with every offload profile,
// over several links, and where the link has a rate or loses frames itself.
func TestADelayKeepsFramesAndTheirOrder(t *testing.T) {
	x := executor(t)
	for name, f := range map[string]suite.Fabric{
		"none":   fabric(func(f *suite.Fabric) { f.Offload = suite.OffloadNone }),
		"tcp":    fabric(nil),
		"tunnel": fabric(func(f *suite.Fabric) { f.Offload = suite.OffloadTunnel }),
		"rate":   fabric(func(f *suite.Fabric) { f.Rate = 500e6 }),
		"links":  fabric(func(f *suite.Fabric) { f.Links = 2 }),
		"queues": fabric(func(f *suite.Fabric) { f.Queues = 2 }),
		"verify": fabric(func(f *suite.Fabric) { f.RxChecksum = suite.RxChecksumOuter }),
		"loss":   fabric(func(f *suite.Fabric) { f.Loss = 0.001 }),
	} {
		for _, system := range []string{"raw", "vxlan"} {
			t.Run(name+" "+system, func(t *testing.T) {
				if name != "tcp" || system != "raw" {
					must.Long(t)
				}
				f.Delay = time.Millisecond
				tb := up(t, x, 2, f)
				endpoint := attach(t, tb, system)
				mtu := 1500
				if endpoint != "" {
					mtu = 1450
				}
				largest, before := watchFrames(t, tb), countersOf(t, tb)
				flow{network: "tcp", pace: 500e6, duration: 200 * time.Millisecond}.run(t, tb, endpoint)
				c, r := countersOf(t, tb).since(before), tb.Delays()
				if n := largest(); n > 1500+meter.EthernetHeader {
					t.Errorf("a frame of %d bytes arrived; the MTU allows 1514", n)
				}
				if whole := f.Offload != suite.OffloadNone && system == "raw"; whole && r.Late.Sum() > c.frames {
					t.Errorf("the line carried %d frames for %d frames on the link: superframes did not pass it whole", r.Late.Sum(), c.frames)
				}
				prove(t, tb, endpoint, 0, 1, 4, mtu) // 10 MiB each way
				prove(t, tb, endpoint, 0, 1, 6, mtu)
				if r := tb.Delays(); r.Lost > 0 {
					t.Errorf("the delay lost %d frames", r.Lost)
				}
				if endpoint == "" && f.Loss == 0 {
					checkOrder(t, tb)
				}
			})
		}
	}
}

// checkOrder sends numbered datagrams and expects them all, in order.
func checkOrder(t *testing.T, tb *Testbed) {
	t.Helper()
	server := connIn(t, tb.nodes[1], address(tb, "", 1, 4), netip.AddrPort{})
	client := connIn(t, tb.nodes[0], address(tb, "", 0, 4), netip.AddrPortFrom(address(tb, "", 1, 4), testPort))
	for i := range uint64(100) {
		must.Get(client.Write(binary.BigEndian.AppendUint64(nil, i)))(t)
	}
	buf := make([]byte, 8)
	for i := range uint64(100) {
		must.Get(io.ReadFull(server, buf))(t)
		must.Equal(t, i, binary.BigEndian.Uint64(buf))
	}
}

// More frames than a delay line has room for are dropped and counted.
func TestADelayLineHasABoundAndCountsWhatItDrops(t *testing.T) {
	must.Long(t)
	tb := up(t, executor(t), 2, delayed(time.Second))
	server := connIn(t, tb.nodes[1], address(tb, "", 1, 4), netip.AddrPort{})
	client := connIn(t, tb.nodes[0], address(tb, "", 0, 4), netip.AddrPortFrom(address(tb, "", 1, 4), testPort))
	datagram := make([]byte, 1400)
	send := func() { must.Get(client.Write(datagram))(t) }
	send()
	must.Get(server.Read(datagram))(t) // the neighbour's address is known
	sent := uint64(0)
	for began := time.Now(); time.Since(began) < 700*time.Millisecond; sent++ {
		send()
	}
	must.EventuallyTrue(t, "the datagrams", func() bool {
		send() // the count of drops comes with a later frame
		time.Sleep(10 * time.Millisecond)
		r := tb.Delays()
		return r.Late.Sum()+r.Lost >= sent
	})
	r := tb.Delays()
	t.Logf("%d datagrams sent, %d lost", sent, r.Lost)
	if held := r.Late.Sum() * uint64(len(datagram)); r.Lost == 0 || held > delayline.Room {
		t.Errorf("of %d datagrams the line carried %d and lost %d; it has room for %d bytes", sent, r.Late.Sum(), r.Lost, delayline.Room)
	}
}

// The CPU time of a delay line is part of the fabric's.
func TestTheFabricsClockIncludesTheDelayLines(t *testing.T) {
	tb := up(t, executor(t), 2, delayed(100*time.Microsecond))
	if tb.wire.unmetred != "" {
		t.Skip(tb.wire.unmetred)
	}
	before := must.Get(tb.Clock())(t)
	used := map[int]float64{}
	for _, p := range tb.wire.lines {
		cpu, seconds, err := p.Clock()
		must.Succeed(t, err)
		used[cpu] = -seconds
	}
	roundTrip(t, tb)
	for _, p := range tb.wire.lines {
		cpu, seconds, err := p.Clock()
		must.Succeed(t, err)
		used[cpu] += seconds
	}
	after := must.Get(tb.Clock())(t)
	must.Equal(t, 2, len(used))
	for cpu, s := range used {
		if s <= 0 || after[cpu]-before[cpu] < s {
			t.Errorf("CPU %d: the delay line used %g s, the fabric %g s", cpu, s, after[cpu]-before[cpu])
		}
	}
}

// The delay lines of a testbed that was brought up by hand carry frames until it is removed.
func TestAReleasedTestbedKeepsItsDelayLines(t *testing.T) {
	id := testID(t)
	tb := must.Get(executor(t).up(context.Background(), testbed.Spec{ID: id, Nodes: 2, Fabric: delayed(time.Millisecond)}))(t)
	t.Cleanup(func() { space.Clean(space.TestbedPrefix(id)) })
	lines := slices.Clone(tb.wire.lines)
	must.Succeed(t, tb.Release(context.Background()))
	for _, p := range lines {
		if p.HasEnded() {
			t.Fatal("a delay line has ended")
		}
		must.EventuallyTrue(t, "the end of the use of the lab's standard error", func() bool {
			to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", p.PID()))
			return err == nil && to == os.DevNull
		})
	}
	nodes := []*space.Space{must.Get(space.Open(nodeSpace(tb.id, 0)))(t), must.Get(space.Open(nodeSpace(tb.id, 1)))(t)}
	again := &Testbed{nodes: []*node{{index: 0, space: nodes[0], fabric: tb.spec.Fabric}, {index: 1, space: nodes[1], fabric: tb.spec.Fabric}}}
	if trip := roundTrip(t, again); trip < 2*time.Millisecond {
		t.Errorf("a round trip takes %v", trip)
	}
	c := must.Get(space.Clean(space.TestbedPrefix(tb.id)))(t)
	must.Equal(t, len(lines), len(c.Processes))
	for _, p := range lines {
		<-p.Ended
	}
}
