package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// counted has datagrams in both directions between two workloads, about 1,000 a second each.
// Each datagram has a number, so a test knows which datagrams did not arrive.
type counted struct {
	began time.Time
	stop  context.CancelFunc
	group errgroup.Group
	flows [2]countedFlow
}

// countedFlow is one direction.
type countedFlow struct {
	from, to *workload
	receiver net.PacketConn
	sent     []time.Duration // when each datagram was sent, since counted.began
	arrived  map[uint64]bool
}

// A flow has a datagram each countedInterval. A delayed sender sends at most countedBurst at
// once: a longer burst would exceed the queues of the devices. It sends at least countedLeast datagrams, even if
// the rest of the test ends earlier.
const (
	countedInterval = time.Millisecond
	countedBurst    = 100
	countedLeast    = 1000
)

// count starts the datagrams. The test must call lost.
func count(t *testing.T, x, y *workload) *counted {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &counted{began: time.Now(), stop: stop}
	for i, ends := range [][2]*workload{{x, y}, {y, x}} {
		f := &c.flows[i]
		f.from, f.to, f.arrived = ends[0], ends[1], map[uint64]bool{}
		if err := f.listen(ctx); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.receiver.Close() })
		c.group.Go(f.receive)
		c.group.Go(func() error { return f.send(ctx, c.began) })
	}
	return c
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
	defer func() { f.receiver.SetReadDeadline(time.Now().Add(time.Second)) }() // for the datagrams on their way
	c, err := f.from.dial("udp", to.String())
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, 64)
	for last := began; ctx.Err() == nil || len(f.sent) < countedLeast; time.Sleep(countedInterval) {
		due := min(int(time.Since(last)/countedInterval), countedBurst)
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
			f.arrived[binary.BigEndian.Uint64(buf)] = true
		}
	}
}

// lost ends the datagrams, and reports an error if one did not arrive.
func (c *counted) lost(t *testing.T) {
	t.Helper()
	c.stop()
	if err := c.group.Wait(); err != nil {
		t.Errorf("datagrams between the workloads: %v", err)
	}
	for i := range c.flows {
		f := &c.flows[i]
		missing, first, last := 0, time.Duration(0), time.Duration(0)
		for number, at := range f.sent {
			if f.arrived[uint64(number)] {
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
