package traffic

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

func TestAHeaderIsReadAsItWasWritten(t *testing.T) {
	p := make([]byte, headerSize)
	for _, c := range []struct {
		phase  int32
		number uint64
		sent   int64
	}{{warming, 0, 0}, {measuring, 1, 1 << 40}, {cooling, numberMask, -5}} {
		putHeader(p, c.phase, c.number, c.sent)
		if phase, number, sent := readHeader(p); phase != c.phase || number != c.number || sent != c.sent {
			t.Errorf("put %+v, read %d %d %d", c, phase, number, sent)
		}
	}
	g := greeting{1, 2}.encode()
	if phase, _, _ := readHeader(g[:]); phase != notTraffic {
		t.Errorf("a greeting reads as phase %d: it would count as traffic", phase)
	}
}

// arrivals feeds numbers to a sequence, all of the sender's window.
func arrivals(numbers ...uint64) *sequence {
	s := &sequence{}
	for _, n := range numbers {
		s.take(measuring, n, 0)
	}
	return s
}

func TestASequenceCountsReorderedAndDuplicateDatagrams(t *testing.T) {
	far := uint64(recentCount)
	for name, c := range map[string]struct {
		arrived                         []uint64
		received, reordered, duplicates int64
	}{
		"in order":               {[]uint64{0, 1, 2, 3}, 4, 0, 0},
		"one lost":               {[]uint64{0, 1, 3}, 3, 0, 0},
		"one late":               {[]uint64{0, 2, 1, 3}, 4, 1, 0},
		"one doubled":            {[]uint64{0, 1, 1, 2}, 3, 0, 1},
		"late and doubled":       {[]uint64{0, 2, 1, 1, 2}, 3, 1, 2},
		"a jump over the memory": {[]uint64{0, 3 * far, 3*far - 1, 3*far - 1}, 3, 1, 1},
		"place used again":       {[]uint64{5, 5 + far, 5 + far}, 2, 0, 1},
		"too old to know":        {[]uint64{7, far + 100, 7}, 3, 1, 0},
	} {
		s := arrivals(c.arrived...)
		if s.inWindow != c.received || s.reordered != c.reordered || s.duplicates != c.duplicates {
			t.Errorf("%s: received %d, reordered %d, doubled %d; want %d, %d, %d", name, s.inWindow, s.reordered, s.duplicates, c.received, c.reordered, c.duplicates)
		}
		if s.total != int64(len(c.arrived)) {
			t.Errorf("%s: %d in all, want %d", name, s.total, len(c.arrived))
		}
	}
}

func TestSequenceCountsOnlyTheSendersWindow(t *testing.T) {
	s := &sequence{}
	for n, phase := range []int32{warming, warming, measuring, measuring, measuring, cooling} {
		s.take(phase, uint64(n), 0)
	}
	if s.inWindow != 3 || s.total != 6 {
		t.Errorf("%d of the window and %d in all, want 3 and 6", s.inWindow, s.total)
	}
}

func TestJitterIsThatOfRFC3550(t *testing.T) {
	s := &sequence{}
	for n, transit := range []int64{1000, 1160, 1000} {
		s.take(measuring, uint64(n), transit)
	}
	want := 160.0 / 16
	want += (160 - want) / 16
	must.Equal(t, want, s.jitter)
}

// A peer that drops, doubles and swaps known datagrams stands for the sender;
// the server is the real one, over its real protocol.
func TestServerReportsTheLossOfAPeerThatDropsDatagrams(t *testing.T) {
	at := netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	server := start(t, "traffic", "server", "-listen", at.String(), "-once")
	conn := must.Get(net.Dial("tcp", at.String()))(t)
	control := newControl(conn, "server")
	defer control.close()
	spec := Spec{
		Workload: suite.Workload{Kind: suite.UDPStream, Direction: suite.Forward, Streams: 1, Buffer: 100, ReceiveBuffer: 4 << 20, IPVersion: 4},
		Timing:   suite.Timing{Duration: 300 * time.Millisecond},
	}
	must.Succeed(t, control.send(message{Type: typeHello, Version: protocolVersion, Token: 7, Spec: &spec}))
	ready := must.Get(control.expect(typeReady, 3*time.Second))(t)
	fd := must.Get(newSocket(unix.SOCK_DGRAM, at.Addr(), socketOptions{}))(t)
	defer unix.Close(fd)
	deadline := time.Now().Add(3 * time.Second)
	must.Succeed(t, connectBy(fd, netip.AddrPortFrom(at.Addr(), ready.Ports[0]), deadline))
	must.Succeed(t, (greeting{7, 0}).greetDatagrams(fd, deadline))
	must.Get(control.expect(typeJoined, 3*time.Second))(t)
	must.Succeed(t, control.send(message{Type: typeStart}))
	// 1000 datagrams of the window: every tenth is dropped, 5 and 15 come twice,
	// 1 and 2, 101 and 102, … are swapped: ten late ones.
	send := func(phase int32, number int) {
		p := make([]byte, spec.Workload.Buffer)
		putHeader(p, phase, uint64(number), now())
		must.Get(unix.Write(fd, p))(t)
	}
	for n := range 1000 {
		switch {
		case n%10 == 0:
			continue
		case n%100 == 1:
			send(measuring, n+1)
			send(measuring, n)
		case n%100 == 2:
		default:
			send(measuring, n)
		}
		if n == 5 || n == 15 {
			send(measuring, n)
		}
	}
	send(cooling, 1000)
	time.Sleep(400 * time.Millisecond)
	must.Succeed(t, control.send(message{Type: typeDone}))
	m := must.Get(control.expect(typeResult, 3*time.Second))(t)
	sender := Flow{Datagrams: 1000, AllDatagrams: 1001, Seconds: 0.3}
	sender.Role = roleSend
	d := Result{Local: End{Flows: []Flow{sender}}, Remote: m.End}.Datagrams()
	if d.Lost != 100 || d.Counted != 1000 || d.Reordered != 10 || d.Duplicates != 2 {
		t.Errorf("%+v: want 100 of 1000 lost, 10 reordered, 2 doubled", d)
	}
	must.Equal(t, 903, m.End.Flows[0].AllDatagrams)
	if code, _, stderr := server.wait(5 * time.Second); code != 0 {
		t.Errorf("the server exited with %d: %s", code, stderr)
	}
}
