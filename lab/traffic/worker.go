package traffic

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"syscall"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// worker is one thread of traffic: its socket, its buffer and its counters.
// No other thread touches it between start and end of its loop but for the
// stage, which it shares. The padding keeps two workers off one cache line.
type worker struct {
	_ [64]byte

	stage *stage
	seen  int32 // the phase that this worker has taken note of
	until int32 // the phase in which it ends
	fd    int
	tcp   bool
	buf   []byte
	tally tally
	begin mark // at the start of the window
	end   mark // at its end

	flow      flow
	loop      func(*worker)
	cpu       int                     // to pin to; −1 where any will do
	limit     int64                   // bytes to send, then end; MaxInt64 where time decides
	flags     int                     // of the stream's send and receive calls
	latency   *hdrhistogram.Histogram // of transactions in the window, ns
	course    course                  // of transactions
	sequence  sequence                // of datagrams received
	file      int                     // what sendfile reads; 0 where it does not
	fileSize  int64
	offset    int64 // position of the next sendfile in the file
	pace      pacer
	request   int
	response  int
	address   rawAddress   // whom connect/request/response connects to
	work      float64      // ns of CPU time for each byte received
	owed      int64        // of that, not yet spent, ns
	noDelay   bool         // of its connections
	buffers   [2]int       // send and receive buffer of its connections
	unmap     func() error // gives buf back
	retry     int64        // how long a datagram transaction waits for its response, ns
	fatal     error        // why the loop ended before it was told to
	signals   uint         // that interrupted a call
	tolerates bool         // a peer that ends first is no error: who decides says so elsewhere
	anySize   bool         // datagrams of any size count, unnumbered
	idleEnd   int64        // a silence of so many ns ends a receiver of datagrams; 0 = none does

	_ [64]byte
}

// flow says what a worker carries.
type flow struct {
	Index     int    `json:"index"`
	Direction string `json:"direction"` // forward: client to server
	Role      string `json:"role"`      // send, receive, request, respond
	// Load: a TCP stream beside request/response.
	Load bool `json:"load,omitempty"`
}

// tally is what a worker counted since it began.
type tally struct {
	bytes        int64 // payload passed to or taken from the kernel
	calls        int64 // socket calls that moved payload
	datagrams    int64
	transactions int64
	errors       int64 // calls that failed, but for those that the end of the run causes
	lost         int64 // datagram transactions without a response in time
}

// mark is a tally at an edge of the window.
type mark struct {
	tally
	at          int64 // now()
	retransmits int64 // of the socket since it was made; TCP only
	set         bool
}

const noLimit = math.MaxInt64

// cross takes note of the phase the run has come to.
func (w *worker) cross() {
	phase := w.stage.phase.Load()
	if w.seen < measuring && phase >= measuring {
		w.begin = w.mark()
	}
	if w.seen < cooling && phase >= cooling {
		w.end = w.mark()
	}
	w.seen = phase
}

func (w *worker) mark() mark {
	m := mark{tally: w.tally, at: now(), set: true}
	if w.tcp && w.fd >= 0 {
		if info, err := unix.GetsockoptTCPInfo(w.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			m.retransmits = int64(info.Total_retrans)
		}
	}
	return m
}

// finish notes where the loop ended, if the window was still open.
func (w *worker) finish() {
	if w.stage.phase.Load() != w.seen {
		w.cross()
	}
	if w.begin.set && !w.end.set {
		w.end = w.mark()
	}
	if w.tcp && w.drives() {
		unix.Shutdown(w.fd, unix.SHUT_WR) // what is on its way still arrives; an error means that all is over
	}
}

// transient reports whether a failed call is to be made again: a signal of
// Go's runtime or the socket's timeout came between.
//
// The loops call nothing that Go's scheduler could use to stop them, and the
// runtime's signals mostly arrive inside a system call, where they cannot stop
// them either. So a thread that blocks lets itself be stopped here: after a
// timeout, and after some signals, for the runtime repeats them while it waits.
// After each would be too often, since a thread gets one every 10 ms as it is.
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

// failed takes note of a call that failed for good and reports whether that is
// how a run ends: the peer has closed because its time is over.
func (w *worker) failed(what string, e syscall.Errno) {
	if w.seen >= cooling || w.stage.phase.Load() >= cooling {
		return
	}
	if w.tolerates && hungUp(e) {
		return
	}
	w.tally.errors++
	w.fatal = fmt.Errorf("%s: %w", what, e)
}

// errPeerClosed is why a stream ended before its time.
var errPeerClosed = errors.New("the peer closed the connection before the run was over")

func (w *worker) closedByPeer() {
	if w.tolerates || w.seen >= cooling || w.stage.phase.Load() >= cooling {
		return
	}
	w.fatal = errPeerClosed
}

func hungUp(e syscall.Errno) bool {
	return e == syscall.ECONNRESET || e == syscall.EPIPE || e == syscall.ECONNABORTED
}
