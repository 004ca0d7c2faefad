package traffic

import (
	"syscall"
	"unsafe"
)

// pacer limits the rate of datagrams, or of the send calls of a TCP stream, by absolute
// times. So a late datagram does not delay the datagrams after it. The zero value has no
// limit.
//
// It sleeps for at least a quantum and then sends all datagrams that are due: a sleep for
// every datagram would cost more than the datagram. If it is late by more than the backlog,
// it drops the excess, so that a stall does not cause a burst.
type pacer struct {
	interval float64 // time between datagrams or calls, ns; 0 = no limit
	backlog  float64 // longest delay that it makes up for, ns; 0 = paceBacklog
	due      float64 // time of the next datagram or call, by now()
	asleep   syscall.Timespec
}

const (
	paceQuantum = 100e3 // ns
	paceBacklog = 50e6  // ns
	// streamBacklog lets a TCP stream make up for a retransmission timeout. TCP's pacing
	// prevents a burst.
	streamBacklog = 1e9 // ns
)

// wait returns the time of the next datagram. It sleeps for at most a quantum, so that the
// thread still reads the phase. ok is false if the time has not come.
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
	maxNap         = 20e6 // ns: longest delay until a thread notices a new phase
)

// sent records that the call sent n bytes of size. The other bytes are due at once.
func (p *pacer) sent(n, size int) {
	if p.interval > 0 && n < size {
		p.due -= p.interval * float64(size-max(n, 0)) / float64(size)
	}
}
