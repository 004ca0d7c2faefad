package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// A delay of 200 µs makes a round trip 400 µs longer, on a link with a rate too.
func TestADelayMakesARoundTripTwiceAsMuchLonger(t *testing.T) {
	x := executor(t)
	for _, rate := range []int64{0, 100e6} {
		tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.Rate, f.NoCoalescing = rate, true }))
		near := roundTrip(t, tb)
		must.Succeed(t, tb.Down(context.Background()))
		for _, delay := range []time.Duration{200 * time.Microsecond, 5 * time.Millisecond} {
			t.Run(fmt.Sprintf("%v at %d bit/s", delay, rate), func(t *testing.T) {
				far := fabric(func(f *suite.Fabric) { f.Rate, f.Delay, f.NoCoalescing = rate, delay, true })
				if why := lacks(t, x, far); why != "" {
					t.Skip(why)
				}
				tb := up(t, x, 2, far)
				longer := roundTrip(t, tb) - near
				t.Logf("a round trip of %v is %v longer with a delay of %v", near, longer, delay)
				if off := (longer - 2*delay).Abs(); off > 100*time.Microsecond+2*delay/50 && os.Getenv("WINDTUNNEL_TIMING_TESTS") != "" {
					t.Errorf("a round trip is %v longer with a delay of %v, want %v", longer, delay, 2*delay)
				}
			})
		}
	}
}

// lacks returns the reason why the kernel cannot make a fabric; "" if it can.
func lacks(t *testing.T, x *Executor, f suite.Fabric) string {
	t.Helper()
	tb, err := x.Up(context.Background(), testbed.Spec{ID: testID(t), Nodes: 2, Fabric: f})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return err.Error()
	}
	must.Succeed(t, err)
	must.Succeed(t, tb.Down(context.Background()))
	return ""
}

// roundTrip is the median time of a TCP connect from the first node to the second.
func roundTrip(t *testing.T, tb *Testbed) time.Duration {
	t.Helper()
	to := netip.AddrPortFrom(tb.nodes[1].Addr(4), 7001)
	listener, err := socketIn(tb.nodes[1], func(fd int) error {
		return errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}), unix.Listen(fd, 200))
	})
	must.Succeed(t, err)
	defer unix.Close(listener)
	var times []time.Duration
	for range 101 {
		var took time.Duration
		fd, err := socketIn(tb.nodes[0], func(fd int) error {
			began := time.Now()
			err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
			took = time.Since(began)
			return err
		})
		must.Succeed(t, err)
		unix.Close(fd)
		times = append(times, took)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// socketIn makes a TCP socket in a node's namespace and prepares it there.
func socketIn(n *node, prepare func(fd int) error) (fd int, err error) {
	err = n.space.Do(func() error {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return prepare(fd)
	})
	return fd, err
}
