package delayline

import (
	"encoding/binary"
	"math"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// pairedLine returns a line whose sockets are connected to the returned ones.
func pairedLine(t *testing.T, delay time.Duration) (l *line, in, out int) {
	t.Helper()
	var ends [2][2]int
	for i := range ends {
		ends[i] = must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
		for _, fd := range ends[i] {
			t.Cleanup(func() { unix.Close(fd) })
		}
	}
	return newLine(ends[0][1], ends[1][0], delay, &stats{}), ends[0][0], ends[1][1]
}

func TestALineReleasesNoFrameBeforeItIsDueAndKeepsTheOrder(t *testing.T) {
	l, in, out := pairedLine(t, 3*time.Millisecond)
	for i := range byte(5) {
		must.Get(unix.Write(in, []byte{i, i}))(t)
	}
	buf := make([]byte, 10)
	for i := range byte(5) {
		began := time.Now()
		must.Succeed(t, l.pass())
		if took := l.released.Sub(began); took < l.delay {
			t.Errorf("frame %d was released after %v", i, took)
		}
		n := must.Get(unix.Read(out, buf))(t)
		must.Equal(t, []byte{i, i}, buf[:n])
	}
	late := Counts(make([]uint64, buckets))
	for i := range l.stats.late {
		late[i] = l.stats.late[i].Load()
	}
	must.Equal(t, 5, late.Sum())
}

func TestALineCountsFramesThatAreTooLong(t *testing.T) {
	l, in, _ := pairedLine(t, 0)
	must.Succeed(t, unix.SetsockoptInt(in, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20))
	if _, err := unix.Write(in, make([]byte, largest+1)); err != nil {
		t.Skipf("send a long datagram: %v", err)
	}
	must.Get(unix.Write(in, make([]byte, largest)))(t)
	n, _, err := l.receive()
	must.Succeed(t, err)
	must.Equal(t, largest, n)
	must.Equal(t, 1, l.stats.cut.Load())
}

func TestTheAgeOfAFrameComesFromItsTimestamp(t *testing.T) {
	l, _, _ := pairedLine(t, time.Second)
	now := time.Now()
	for _, c := range []struct {
		before  time.Duration
		dropped uint32
	}{{0, 0}, {30 * time.Microsecond, 7}, {2 * time.Second, 9}} {
		n := 0
		put := func(kind int32, data []byte) {
			h := (*unix.Cmsghdr)(unsafe.Pointer(&l.control[n]))
			h.Level, h.Type = unix.SOL_SOCKET, kind
			h.SetLen(unix.CmsgLen(len(data)))
			copy(l.control[n+unix.CmsgLen(0):], data)
			n += unix.CmsgSpace(len(data))
		}
		stamp := unix.NsecToTimespec(now.Add(-c.before).UnixNano())
		put(unix.SCM_TIMESTAMPNS, unsafe.Slice((*byte)(unsafe.Pointer(&stamp)), unsafe.Sizeof(stamp)))
		put(unix.SO_RXQ_OVFL, binary.NativeEndian.AppendUint32(nil, c.dropped))
		l.header.SetControllen(n)
		must.Equal(t, c.before, l.age(now))
		must.Equal(t, c.dropped, l.stats.refused.Load())
	}
	l.header.SetControllen(0)
	must.Equal(t, 0, l.age(now)) // without a timestamp
}

// With one frame at a time a line spins before the frame is due. The time that it spins follows
// how late its sleeps end.
func TestTheMarginIsBounded(t *testing.T) {
	l, _, _ := pairedLine(t, 0)
	for range 300 {
		l.await(time.Now().Add(time.Millisecond/10), false)
		if l.margin < 0 || l.margin > mostMargin {
			t.Fatalf("the margin is %v", l.margin)
		}
	}
}

// Go's garbage collector is off in the process, so a line must not allocate memory.
func TestALineDoesNotAllocate(t *testing.T) {
	l, in, out := pairedLine(t, 10*time.Microsecond)
	buf := make([]byte, 10)
	n := testing.AllocsPerRun(100, func() {
		_, _ = unix.Write(in, buf)
		_ = l.pass()
		_, _ = unix.Read(out, buf)
	})
	must.Equal(t, 0, n)
}

func TestBucketsHoldDurationsWithin3Percent(t *testing.T) {
	for b := range buckets - 1 {
		must.Equal(t, b, bucket(uint64(lowest(b))))
		must.Equal(t, b, bucket(uint64(lowest(b+1)-1)))
		if width := float64(lowest(b+1)-1-lowest(b)) / float64(max(lowest(b), 1)); width > 1./32 {
			t.Errorf("bucket %d of %v is %.3f wide", b, lowest(b), width)
		}
	}
	must.Equal(t, buckets-1, bucket(math.MaxUint64))
	if last := lowest(buckets - 1); last < 4*time.Second {
		t.Errorf("the last bucket begins at %v", last)
	}
}

func TestQuantilesOfADifferenceLeaveOutTheFramesBefore(t *testing.T) {
	p := &Process{lines: make([]stats, 2)}
	var before, after Reading
	p.lines[0].late.add(time.Second)
	p.lines[0].refused.Store(3)
	p.Add(&before)
	for i := range 100 {
		p.lines[i%2].late.add(time.Duration(i+1) * time.Microsecond)
	}
	p.lines[1].cut.Store(1)
	p.lines[1].normal.Store(1)
	p.Add(&after)
	d := after.Since(before)
	must.Equal(t, 100, d.Late.Sum())
	must.Equal(t, 1, d.Lost)
	must.Equal(t, true, d.Normal)
	for _, c := range []struct {
		share float64
		want  time.Duration
	}{{0.5, 50 * time.Microsecond}, {0.99, 99 * time.Microsecond}, {0, time.Microsecond}} {
		if got := d.Late.Quantile(c.share); (got - c.want).Abs() > c.want/30 {
			t.Errorf("the %g quantile is %v, want %v", c.share, got, c.want)
		}
	}
	must.Equal(t, 0, Counts(nil).Quantile(0.5))
}

func TestServeRefusesOtherArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"1"}, {"a", "b"}} {
		if Serve(args, os.Stdin) == nil {
			t.Errorf("arguments %q are accepted", args)
		}
	}
}
