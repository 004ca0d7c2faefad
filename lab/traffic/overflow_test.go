package traffic

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// The socket has room for one or two datagrams, so it drops most datagrams of each burst. The
// window begins and ends inside bursts. Numbers that are not sent stand for datagrams that are
// lost on the way. Both losses must be known exactly.
func TestDropsOfTheSocketAreSeparateFromLossOnThePath(t *testing.T) {
	const buffer, burst, behind = 1000, 200, 5
	receiving := must.Get(listenUDP(netip.MustParseAddrPort("127.0.0.1:0"), socketOptions{receive: 2048}))(t)
	port := must.Get(localPort(receiving))(t)
	fd := must.Get(newSocket(unix.SOCK_DGRAM, netip.MustParseAddr("127.0.0.1"), socketOptions{}))(t)
	defer unix.Close(fd)
	must.Succeed(t, connectBy(fd, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), time.Now().Add(time.Second)))
	number := uint64(0)
	send := func(phase int32, n int) {
		for p := make([]byte, buffer); n > 0; n-- {
			putHeader(p, phase, number, now())
			must.Get(unix.Write(fd, p))(t)
			number++
		}
	}

	c := newCrew()
	s := Spec{Workload: suite.Workload{Kind: suite.UDPStream, Direction: suite.Forward, Buffer: buffer, Streams: 1}}
	w := must.Get(c.enlist(s, flow{Direction: string(suite.Forward)}, false, receiving))(t)
	send(warming, burst)
	send(measuring, burst) // the socket is full
	must.Succeed(t, c.start())
	c.stage.phase.Store(measuring)
	c.release()
	drained := func() {
		must.EventuallyTrue(t, "the socket is empty", func() bool {
			queued, err := unix.IoctlGetInt(receiving, unix.SIOCINQ)
			return err == nil && queued == 0
		})
	}
	for range 10 {
		drained()
		send(measuring, burst)
	}
	drained()
	lost := 7
	number += uint64(lost) // on the way
	send(measuring, burst)
	send(cooling, burst)
	for range behind {
		drained()
		send(cooling, 1)
	}
	drained()
	time.Sleep(2 * time.Millisecond)
	must.Succeed(t, c.close())
	dropped, missing, ok := w.overflow.result(w.sequence.inWindow)
	if !ok || dropped == 0 || missing != dropped+int64(lost) {
		t.Errorf("%d datagrams are missing, of which the socket dropped %d (both edges passed: %t); want %d more than it dropped", missing, dropped, ok, lost)
	}
}

// Half of what was sent is missing. Rates and loss of a row must agree, though the window of
// the receiver had other datagrams.
func TestRatesOfDatagramsAreOfTheSendersWindow(t *testing.T) {
	sender := Flow{flow: flow{Role: roleSend}, Datagrams: 1000, Seconds: 2}
	receiver := Flow{flow: flow{Role: roleReceive}, Datagrams: 800, Seconds: 2, Numbered: &Numbered{Received: 500}}
	d := Result{Local: End{Flows: []Flow{sender}}, Remote: &End{Flows: []Flow{receiver}}}.Datagrams()
	if d.SentPerS != 500 || d.ReceivedPerS != 250 || d.Lost != 500 || d.Received != 500 {
		t.Errorf("%+v; want 500 and 250 datagrams a second, 500 of 1000 lost", d)
	}
}
