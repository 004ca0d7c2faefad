package traffic

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// packetPerSend is the flag that keeps buffers apart. TCP adds no byte to a segment
// that ends with it, so a buffer that fits a segment is a segment and a packet.
// TCP_NODELAY is not enough: buffers that wait for the congestion window, or for a
// fuller segment (tcp_autocorking), are still merged.
const packetPerSend = syscall.MSG_EOR

// sendStream sends one buffer after the other, at the configured rate.
func (w *worker) sendStream() {
	paced := w.pace.interval > 0
	for {
		if !paced || w.pace.wait() {
			n, e := w.sendBuffer(min(len(w.buf), int(w.limit-w.tally.bytes)))
			if e == 0 {
				w.tally.bytes += int64(n)
				w.tally.calls++
			} else if !w.transient(e) {
				w.failed("send", e)
				return
			}
			w.pace.sent(n, len(w.buf))
		}
		if w.over() || w.tally.bytes >= w.limit {
			return
		}
	}
}

// sendBuffer sends at most size bytes. They are from the buffer or, with sendfile,
// from a file in the page cache. At the end of the file it starts again at the
// beginning.
func (w *worker) sendBuffer(size int) (int, syscall.Errno) {
	if w.file == 0 {
		return send(w.fd, w.buf[:size], w.flags)
	}
	if w.offset+int64(len(w.buf)) > w.fileSize {
		w.offset = 0
	}
	return sendfile(w.fd, w.file, &w.offset, size)
}

// receiveStream receives until the sender has closed the connection.
func (w *worker) receiveStream() {
	for {
		n, e := receive(w.fd, w.buf, w.flags)
		if n > 0 {
			w.tally.bytes += int64(n)
			w.tally.calls++
			w.heard()
			w.workOn(n)
		} else if e == 0 {
			w.closedByPeer()
			return
		} else if !w.transient(e) {
			w.failed("receive", e)
			return
		}
		if w.over() {
			return
		}
	}
}

// sendAll sends all of p, unless the run or the peer ends first.
func (w *worker) sendAll(fd int, p []byte) (ok bool) {
	for {
		n, e := send(fd, p, 0)
		if e == 0 {
			w.tally.calls++
			if n == len(p) {
				return true
			}
			p = p[n:]
		} else if !w.transient(e) {
			w.failed("send", e)
			return false
		} else if w.over() {
			return false
		}
	}
}

// receiveAll fills p, unless the run ends first or the peer does. A peer that
// closes before the first byte yields closed.
func (w *worker) receiveAll(fd int, p []byte) (ok, closed bool) {
	for got := 0; got < len(p); {
		n, e := receive(fd, p[got:], 0)
		switch {
		case n > 0:
			w.tally.calls++
			got += n
		case e == 0:
			return false, true
		case !w.transient(e):
			w.failed("receive", e)
			return false, e == syscall.ECONNRESET
		case w.over():
			return false, false
		}
	}
	return true, false
}

// over is called after each call. It publishes the counters when they are due, updates the
// worker's phase and reports whether the run has ended.
func (w *worker) over() bool {
	if w.tally.due--; w.tally.due <= 0 {
		w.tally.publish()
		w.tally.due = w.batch
	}
	if w.stage.phase.Load() != w.seen {
		w.cross()
	}
	return w.seen >= w.until
}

// leastWork is the smallest CPU time to spend at once, because reading the thread's clock
// takes a system call of some tenths of a microsecond.
const leastWork = 20_000 // ns

// workOn uses the CPU time that is configured for n received bytes.
func (w *worker) workOn(n int) {
	if w.work == 0 {
		return
	}
	w.owed += int64(float64(n) * w.work)
	if w.owed < leastWork {
		return
	}
	for end := threadTime() + w.owed; threadTime() < end; {
	}
	w.owed = 0
}

// threadTime returns the CPU time of the calling thread, ns. A worker stays on its thread.
func threadTime() int64 {
	var t unix.Timespec
	// It fails only for a clock that the kernel does not have.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return t.Nano()
}
