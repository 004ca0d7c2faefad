package traffic

import (
	"syscall"
	"unsafe"
)

// pacer spaces datagrams, or the send calls of a TCP stream, by an absolute
// clock, so that a late one does not delay those after it. The zero value does
// not pace.
//
// It sleeps for a quantum at least and then lets everything go that has become
// due: a sleep for every datagram would cost more than the datagram. What it
// falls behind by more than the backlog is given up, so that a stall does not
// end in a flood.
type pacer struct {
	interval float64 // between datagrams or calls, ns; 0 = as fast as possible
	backlog  float64 // how far it may fall behind and make up for it, ns; paceBacklog where 0
	due      float64 // when the next one may go, by now()
	asleep   syscall.Timespec
}

const (
	paceQuantum = 100e3 // ns
	paceBacklog = 50e6  // ns
	// streamBacklog: what a TCP stream lost to a retransmission timeout it may
	// catch up with; TCP's own pacing keeps that from being a flood.
	streamBacklog = 1e9 // ns
)

// wait returns when the next datagram may go. It sleeps a quantum at most, so
// that the thread still looks at the stage; ok is false where it is too early.
func (p *pacer) wait() (ok bool) {
	t := float64(now())
	if p.due == 0 || t-p.due > max(p.backlog, paceBacklog) {
		p.due = t
	}
	if p.due <= t {
		p.due += p.interval
		return true
	}
	nap := max(p.due-t, paceQuantum)
	p.asleep = syscall.NsecToTimespec(int64(min(nap, maxNap)))
	syscall.RawSyscall6(syscall.SYS_CLOCK_NANOSLEEP, clockMonotonic, 0, uintptr(unsafe.Pointer(&p.asleep)), 0, 0, 0)
	return false
}

const (
	clockMonotonic = 1
	maxNap         = 20e6 // ns: how late a thread may learn that the stage moved on
)

// sent takes note that the call which was due sent n bytes of size: what it did
// not send is due at once.
func (p *pacer) sent(n, size int) {
	if p.interval > 0 && n < size {
		p.due -= p.interval * float64(size-max(n, 0)) / float64(size)
	}
}
