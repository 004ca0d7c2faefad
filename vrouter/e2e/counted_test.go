package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// counted is traffic between two workloads. Each datagram has a number, so a test knows which
// datagrams did not arrive.
type counted struct {
	ctx      context.Context // done: the traffic ends
	stop     context.CancelFunc
	began    time.Time
	flows    []*countedFlow
	streamed *atomic.Int64 // bytes of the TCP stream; nil: there is none
	longest  time.Duration // time of the longest write to the TCP stream
	resent   int           // segments of the TCP stream that were sent again; -1: unknown
	running  int           // functions that run has started
	ended    chan error    // their results
}

// countedFlow is one direction of the traffic: its sender, its receiver, and which datagrams arrived.
type countedFlow struct {
	from, to *workload
	each     int // datagrams in each countedInterval
	receiver net.PacketConn
	sent     []time.Duration // when each datagram was sent, since counted.began
	received atomic.Int64    // datagrams
	arrived  []bool          // by number; it ends with the highest number that arrived
}

// A delayed sender sends at most countedBurst datagrams at once: a longer burst would exceed the
// queues of the devices. It sends the datagrams of countedLeast intervals, even if the rest of the
// test ends earlier.
const (
	countedInterval = time.Millisecond
	countedBurst    = 100
	countedLeast    = 1000
)

// count starts about 1,000 datagrams per second in both directions between two workloads. The
// test must call lost.
func count(t *testing.T, x, y *workload) *counted {
	t.Helper()
	return startCounted(t, 1, [2]*workload{x, y}, [2]*workload{y, x})
}

// load starts about 10,000 datagrams per second and a TCP stream from x to y. The test must call
// lost or end.
func load(t *testing.T, x, y *workload) *counted {
	t.Helper()
	c := startCounted(t, 10, [2]*workload{x, y})
	c.stream(x, y)
	return c
}

func startCounted(t *testing.T, each int, directions ...[2]*workload) *counted {
	t.Helper()
	c := &counted{began: time.Now(), ended: make(chan error, 8)}
	c.ctx, c.stop = context.WithCancel(t.Context())
	for _, ends := range directions {
		f := &countedFlow{from: ends[0], to: ends[1], each: each}
		must.Succeed(t, f.listen(c.ctx))
		t.Cleanup(func() { f.receiver.Close() })
		c.flows = append(c.flows, f)
		c.run(f.receive)
		c.run(func() error { return f.send(c.ctx, c.began) })
	}
	return c
}

// run calls f at the same time as the rest of the test.
func (c *counted) run(f func() error) {
	c.running++
	go func() { c.ended <- f() }()
}

// stream adds a TCP stream.
func (c *counted) stream(from, to *workload) {
	c.streamed = new(atomic.Int64)
	c.run(func() error { return c.endless(from, to) })
}

// listen opens the receiver. Its buffer is large, because the machine may be busy.
func (f *countedFlow) listen(ctx context.Context) error {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		controlled := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20) })
		return errors.Join(controlled, err)
	}}
	return in(f.to.ns, func() (err error) {
		f.receiver, err = config.ListenPacket(ctx, "udp", netip.AddrPortFrom(f.to.ip(4), 0).String())
		return err
	})
}

func (f *countedFlow) send(ctx context.Context, began time.Time) error {
	to := f.receiver.LocalAddr()
	defer func() { // once the datagrams on their way have arrived, or are lost
		for end := time.Now().Add(patience * 20 * time.Second); f.received.Load() < int64(len(f.sent)) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		f.receiver.SetReadDeadline(time.Now())
	}()
	c, err := f.from.dial("udp", to.String())
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, 64)
	for last := began; ctx.Err() == nil || len(f.sent) < countedLeast*f.each; time.Sleep(countedInterval) {
		due := min(f.each*int(time.Since(last)/countedInterval), countedBurst)
		last = time.Now()
		for range max(due, 1) {
			binary.BigEndian.PutUint64(buf, uint64(len(f.sent)))
			f.sent = append(f.sent, time.Since(began))
			if _, err := c.Write(buf); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *countedFlow) receive() error {
	buf := make([]byte, 2000)
	for {
		n, _, err := f.receiver.ReadFrom(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 64 {
			number := int(binary.BigEndian.Uint64(buf))
			f.arrived = append(f.arrived, make([]bool, max(0, number+1-len(f.arrived)))...)
			if !f.arrived[number] {
				f.arrived[number] = true
				f.received.Add(1)
			}
		}
	}
}

// end ends the traffic, and reports an error of the senders and receivers.
func (c *counted) end(t *testing.T) {
	t.Helper()
	c.stop()
	for ; c.running > 0; c.running-- {
		if err := <-c.ended; err != nil {
			t.Errorf("traffic between the workloads: %v", err)
		}
	}
}

// lost ends the traffic, and reports an error if a datagram did not arrive.
func (c *counted) lost(t *testing.T) {
	t.Helper()
	c.end(t)
	if c.streamed != nil {
		t.Logf("%d bytes of TCP; the longest write took %v; %d segments were sent again", c.streamed.Load(), c.longest, c.resent)
		if c.streamed.Load() < 1<<20 {
			t.Errorf("the TCP stream carried %d bytes, want at least 1 MB", c.streamed.Load())
		}
	}
	for _, f := range c.flows {
		missing, first, last := 0, time.Duration(0), time.Duration(0)
		for number, at := range f.sent {
			if number < len(f.arrived) && f.arrived[number] {
				continue
			}
			if missing++; missing == 1 {
				first = at
			}
			last = at
		}
		if missing > 0 {
			t.Errorf("%d of the %d datagrams of workload %s did not arrive; the first was sent %v after the start, the last %v", missing, len(f.sent), f.from.port.Name, first, last)
			continue
		}
		t.Logf("all %d datagrams of workload %s arrived", len(f.sent), f.from.port.Name)
	}
	if t.Failed() {
		for _, n := range c.flows[0].from.bed.nodes {
			t.Logf("node %s dropped packets by reason: %v", n.name, n.drops())
		}
	}
}

// endless sends a TCP stream until c.ctx is done. It is an error if a write takes longer than a second; in a guest, patience seconds.
func (c *counted) endless(from, to *workload) error {
	l, err := to.listen(4, 0)
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	conn, err := from.dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer func() { c.resent = retransmitted(conn) }()
	buf := make([]byte, 16<<10)
	for c.ctx.Err() == nil {
		began := time.Now()
		conn.SetWriteDeadline(began.Add(patience * time.Second))
		n, err := conn.Write(buf)
		c.streamed.Add(int64(n))
		c.longest = max(c.longest, time.Since(began))
		if err != nil {
			return fmt.Errorf("the stream stalled after %d bytes: %w", c.streamed.Load(), err)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// retransmitted returns how many segments of a TCP connection were sent again; -1: unknown.
func retransmitted(c net.Conn) (segments int) {
	segments = -1
	if raw, err := c.(*net.TCPConn).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
				segments = int(info.Total_retrans)
			}
		})
	}
	return segments
}
