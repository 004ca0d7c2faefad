package traffic

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// worker is one thread of traffic: its socket, its buffer and its counters.
// While its loop runs, other threads use only the stage and the tally. The padding prevents
// that two workers share a cache line.
type worker struct {
	_ [64]byte

	stage *stage
	seen  int32 // last phase that this worker has read
	until int32 // the phase in which it ends
	fd    int
	tcp   bool
	buf   []byte
	tally tally
	batch int   // see batched
	begin mark  // at the start of the window, by the conductor
	end   mark  // at its end, by the conductor
	ended int64 // now() at the end of the loop

	flow      flow
	loop      func(*worker)
	cpu       int                     // CPU of the thread; −1 = any
	limit     int64                   // bytes to send; MaxInt64 = until the time is over
	flags     int                     // of the stream's send and receive calls
	latency   *hdrhistogram.Histogram // round trips of the transactions in the window, ns
	course    course                  // of transactions
	sequence  sequence                // numbers of the datagrams received
	overflow  overflow                // of a receiver of numbered datagrams
	silence   silence                 // of a receiver
	marked    int64                   // datagrams sent with the mark of the window
	lost      int64                   // datagram transactions in the window without a response in time
	segments  [2]int64                // segments retransmitted before the start and before the end of the window
	file      int                     // file for sendfile; 0 = none
	fileSize  int64
	offset    int64 // position of the next sendfile in the file
	pace      pacer
	request   int
	response  int
	address   rawAddress   // server of connect/request/response
	work      float64      // ns of CPU time for each byte received
	owed      int64        // part of work that is not spent yet, ns
	noDelay   bool         // TCP_NODELAY of its connections
	buffers   [2]int       // send and receive buffer of its connections
	tos       tosOption    // to set on its connections
	unmap     func() error // unmaps buf
	retry     int64        // longest wait of a datagram transaction for its response, ns
	fatal     error        // error that ended the loop too early
	signals   uint         // signals that interrupted a call
	tolerates bool         // a peer that ends first is no error, because the control connection reports errors
	anySize   bool         // datagrams of any size count, without numbers
	mixed     bool         // the datagrams have the sizes of imix
	idleEnd   int64        // time without a datagram that ends the receiver, ns; 0 = unlimited
	mayEnd    func() bool  // whether such a time ends the receiver already

	_ [64]byte
}

// flow describes the traffic of a worker.
type flow struct {
	Index     int    `json:"index"`
	Direction string `json:"direction"` // forward: client to server
	Role      string `json:"role"`      // send, receive, request, respond
	// Load: a TCP stream beside request/response.
	Load bool `json:"load,omitempty"`
}

// counts are a worker's counters since its start.
type counts struct {
	bytes        int64 // payload written to or read from sockets
	calls        int64 // socket calls that moved payload, except those for datagrams of a stream
	datagrams    int64
	transactions int64
	errors       int64 // failed calls, except those that the end of the run causes
}

// tally has the counts of a worker, and those of them that it has published. The conductor reads
// the published counts at the edges of the window, because a busy CPU can delay the worker by
// seconds. Publishing takes some ns, so a worker does not publish after each small send.
type tally struct {
	counts
	due    int // calls until the next publication
	shared struct{ bytes, calls, datagrams, transactions, errors atomic.Int64 }
}

// publish publishes the counts.
func (t *tally) publish() {
	set := func(to *atomic.Int64, n int64) {
		if to.Load() != n {
			to.Store(n)
		}
	}
	set(&t.shared.bytes, t.bytes)
	set(&t.shared.calls, t.calls)
	set(&t.shared.datagrams, t.datagrams)
	set(&t.shared.transactions, t.transactions)
	set(&t.shared.errors, t.errors)
}

// read returns the published counts. Any thread may call it.
func (t *tally) read() counts {
	c := &t.shared
	return counts{c.bytes.Load(), c.calls.Load(), c.datagrams.Load(), c.transactions.Load(), c.errors.Load()}
}

// batchBytes and mostBatch limit what a sender counts without publishing it. Both are far
// smaller than a socket's send buffer.
const (
	batchBytes = 4 << 10
	mostBatch  = 16 // calls
)

// batched returns the number of calls after which a worker publishes its counts. It is 1 unless
// the worker sends small buffers as fast as it can.
func (w *worker) batched() int {
	if w.flow.Role != roleSend || w.pace.interval > 0 {
		return 1
	}
	return max(1, min(mostBatch, batchBytes/len(w.buf)))
}

// mark is a tally at an edge of the window.
type mark struct {
	counts
	at int64 // now(); 0: not set
}

const noLimit = math.MaxInt64

// cross is called when the worker reads a new phase.
func (w *worker) cross() {
	phase := w.stage.phase.Load()
	if w.seen < measuring && phase >= measuring {
		w.segments[0] = w.retransmitted()
		w.silence = silence{last: now()}
	}
	if w.seen < cooling && phase >= cooling {
		w.leave()
	}
	w.seen = phase
}

// leave is called when the worker reads that the window is over, or ends.
func (w *worker) leave() {
	w.segments[1] = w.retransmitted()
	w.silence.ends(now())
}

// silence follows the longest time in the window in which a receiver got nothing, ns.
type silence struct {
	last    int64 // now() of the last arrival, or of the window's start; 0 before it
	longest int64
}

func (s *silence) ends(at int64) {
	s.longest = max(s.longest, at-s.last)
	s.last = at
}

// heard records an arrival within the window.
func (w *worker) heard() {
	if w.seen == measuring {
		w.silence.ends(now())
	}
}

// retransmitted returns the segments that the socket has retransmitted since it was opened;
// TCP only.
func (w *worker) retransmitted() int64 {
	if w.tcp && w.fd >= 0 {
		if info, err := unix.GetsockoptTCPInfo(w.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			return int64(info.Total_retrans)
		}
	}
	return 0
}

// finish is called at the end of the loop.
func (w *worker) finish() {
	w.tally.publish()
	w.ended += now()
	if w.stage.phase.Load() != w.seen {
		w.cross()
	}
	if w.seen == measuring {
		w.leave()
	}
	if w.tcp && w.drives() {
		unix.Shutdown(w.fd, unix.SHUT_WR) // data in flight still arrives; an error means that the connection has ended
	}
}

// transient reports whether a failed call must be repeated, because a signal of Go's
// runtime or the socket's timeout interrupted it.
//
// The loops have no call at which Go's scheduler could stop them. The runtime's signals
// mostly arrive inside a system call, where they cannot stop a thread either. So transient
// lets the scheduler stop the thread: after a timeout, and after some signals, because the
// runtime repeats them while it waits. After each signal would be too often: a thread
// always gets one every 10 ms.
func (w *worker) transient(e syscall.Errno) bool {
	switch e {
	case syscall.EINTR:
		if w.signals++; w.signals%16 == 0 {
			runtime.Gosched()
		}
		return true
	case syscall.EAGAIN:
		runtime.Gosched()
		return true
	}
	return false
}

// failed records a call that failed permanently. It reports whether this is the normal end
// of a run: the peer closed the connection because its time is over.
func (w *worker) failed(what string, e syscall.Errno) {
	if w.seen >= cooling || w.stage.phase.Load() >= cooling {
		return
	}
	if w.tolerates && (e == syscall.ECONNRESET || e == syscall.EPIPE || e == syscall.ECONNABORTED) {
		return
	}
	w.tally.errors++
	w.fatal = fmt.Errorf("%s: %w", what, e)
}

// errPeerClosed is the error of a stream that the peer ended too early.
var errPeerClosed = errors.New("the peer closed the connection before the run was over")

func (w *worker) closedByPeer() {
	if w.tolerates || w.seen >= cooling || w.stage.phase.Load() >= cooling {
		return
	}
	w.fatal = errPeerClosed
}

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
	offset   float64 // of the first request, ns, so that connections take turns
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
	p.sleep(max(p.due-t, paceQuantum))
	return false
}

// sleep sleeps for a time in ns, at most maxNap.
func (p *pacer) sleep(ns float64) {
	p.asleep = syscall.NsecToTimespec(int64(min(ns, maxNap)))
	syscall.RawSyscall6(syscall.SYS_CLOCK_NANOSLEEP, clockMonotonic, 0, uintptr(unsafe.Pointer(&p.asleep)), 0, 0, 0)
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
