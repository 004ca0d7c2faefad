package delayline

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// line carries the frames of one direction of a link. Between their arrival and their release the
// frames wait in the receive queue of its socket. So the queue keeps their order, bounds their
// memory and counts the frames that did not find room.
type line struct {
	in, out int // file descriptors of packet sockets
	delay   time.Duration
	stats   *stats

	began, released time.Time     // start of the line; release of the previous frame
	idle            time.Duration // total time in which the line waited
	margin          time.Duration

	frame   []byte // with its virtio header
	header  unix.Msghdr
	vector  unix.Iovec
	control [128]byte
}

// largest is the length of the largest frame with its virtio header: a superframe of 64 KiB and
// its headers fit.
const largest = 128 << 10

func newLine(in, out int, delay time.Duration, s *stats) *line {
	l := &line{in: in, out: out, delay: delay, stats: s, began: time.Now(), margin: mostMargin / 2, frame: make([]byte, largest)}
	l.vector.Base = &l.frame[0]
	l.vector.SetLen(len(l.frame))
	return l
}

// carry carries frames until a socket fails, as when its device is deleted.
func (l *line) carry() error {
	// The thread uses raw system calls: Go's scheduler does not run before and after them.
	runtime.LockOSThread()
	const aboveProbe = 2 // the threads that measure the CPU distance spin with priority 1
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: aboveProbe}, 0); err != nil {
		l.stats.normal.Store(1)
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // ignore the error: without the right, the priority stays
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	}
	for {
		if err := l.pass(); err != nil {
			return err
		}
	}
}

// pass passes one frame on.
func (l *line) pass() error {
	n, arrived, err := l.receive()
	if err != nil {
		return fmt.Errorf("receive a frame: %w", err)
	}
	due := arrived.Add(l.delay)
	l.await(due, arrived.After(l.released))
	l.released = time.Now()
	l.stats.late.add(l.released.Sub(due))
	l.publish(l.released)
	if err := l.send(n); err != nil {
		return fmt.Errorf("send a frame: %w", err)
	}
	return nil
}

// receive waits for a frame. It returns the frame's length and when it arrived in the queue.
func (l *line) receive() (n int, arrived time.Time, err error) {
	for {
		l.header = unix.Msghdr{Iov: &l.vector, Iovlen: 1, Control: &l.control[0]}
		l.header.SetControllen(len(l.control))
		r, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(l.in), uintptr(unsafe.Pointer(&l.header)), unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		switch {
		case e == unix.EAGAIN:
			arrival := unix.PollFd{Fd: int32(l.in), Events: unix.POLLIN}
			l.block(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&arrival)), 1)
			continue
		case e == unix.EINTR || e == unix.ENETDOWN:
			continue
		case e != 0:
			return 0, arrived, e
		case int(r) > len(l.frame):
			l.stats.cut.Add(1)
			continue
		}
		now := time.Now()
		return int(r), now.Add(-max(l.age(now), 0)), nil
	}
}

// age returns how long the received frame has been in the queue, by the wall clock. It also stores the number of
// frames that the kernel dropped because the queue was full.
func (l *line) age(now time.Time) (age time.Duration) {
	rest := l.control[:l.header.Controllen]
	for len(rest) > 0 {
		h, data, more, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		switch h.Type {
		case unix.SCM_TIMESTAMPNS:
			age = time.Duration(now.UnixNano() - (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano())
		case unix.SO_RXQ_OVFL:
			l.stats.refused.Store(*(*uint32)(unsafe.Pointer(&data[0])))
		}
		rest = more
	}
	return age
}

// mostMargin is the longest time that a line spins for one frame.
const mostMargin = 200 * time.Microsecond

// await waits until a frame is due. A sleep ends too late, mostly by tens of microseconds. If alone, no other
// frame was in the line when this one arrived, as with request/response. Then await sleeps for less time, by a
// margin, and spins until the frame is due. It adjusts the margin so that 1 sleep in 20 ends too late by more than
// the margin. If not alone, as in a stream, it does not spin, because the sending node's programs need the CPU.
func (l *line) await(due time.Time, alone bool) {
	var margin time.Duration
	if alone {
		margin = l.margin
	}
	if wait := time.Until(due) - margin; wait > 0 {
		length := unix.NsecToTimespec(int64(wait))
		if slept := l.block(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&length)), 0); slept > wait+l.margin {
			l.margin = min(l.margin+19*time.Microsecond, mostMargin)
		} else {
			l.margin = max(l.margin-time.Microsecond, 0)
		}
	}
	for time.Until(due) > 0 {
	}
}

// block makes a system call that waits, and counts the time of the call as idle. The kernel's own CPU time of the
// thread is too large if the kernel does not preempt system calls: it includes the time from a wake-up until the
// thread runs (RQCF_ACT_SKIP, kernel/sched).
func (l *line) block(call, a, b uintptr) time.Duration {
	before := time.Now()
	l.publish(before)
	unix.RawSyscall6(call, a, b, 0, 0, 0, 0)
	waited := time.Since(before)
	l.idle += waited
	return waited
}

// publish publishes the time in which the line did not wait.
func (l *line) publish(now time.Time) { l.stats.busy.Store(int64(now.Sub(l.began) - l.idle)) }

// send sends a frame. The queue of the device drops it if there is no room, and counts this.
func (l *line) send(n int) error {
	for {
		_, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(l.out), uintptr(unsafe.Pointer(&l.frame[0])), uintptr(n))
		switch e {
		case 0, unix.ENOBUFS, unix.ENETDOWN:
			return nil
		case unix.EINTR:
		case unix.EINVAL, unix.EMSGSIZE:
			l.stats.cut.Add(1)
			return nil
		default:
			return e
		}
	}
}

// stats are the figures of a line. The lab reads them in memory that it shares with the line's
// process.
type stats struct {
	late    histogram
	busy    atomic.Int64  // ns
	refused atomic.Uint32 // frames that the kernel dropped because the queue was full; starts at 0 again after 2^32
	cut     atomic.Uint32 // frames that the line could not carry
	normal  atomic.Uint32 // 1: the thread has no real-time priority
	_       uint32
}
