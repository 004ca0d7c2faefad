package traffic

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// transact sends requests and waits for each response, on one connection. Without a pace the end
// of a round trip is the start of the next one, so each needs one reading of the clock.
func (w *worker) transact() {
	request, response := w.buf[:w.request], w.buf[:w.response]
	began, more := now(), true
	for more {
		if !w.sendAll(w.fd, request) {
			return
		}
		if ok, closed := w.receiveAll(w.fd, response); !ok {
			if closed {
				w.closedByPeer()
			}
			return
		}
		ended := now()
		w.record(began, ended)
		w.tally.transactions++
		w.tally.bytes += int64(w.request + w.response)
		began, more = w.next(ended)
	}
}

// next returns the time from which the next transaction counts; more is false if the run is over.
// Without a pace that is the end of the last one. With a pace it waits until the next request is
// due. If the last response came later than that, the request counts from the time at which it
// was due: it waited, as the request of a user would have (no coordinated omission). The time by
// which this thread wakes up too late does not count.
func (w *worker) next(ended int64) (began int64, more bool) {
	seen := w.seen
	if w.over() {
		return 0, false
	}
	if w.pace.interval > 0 {
		return w.due(ended)
	}
	if w.seen != seen {
		ended = now() // storing the counters took time, which is not part of a round trip
	}
	return ended, true
}

func (w *worker) due(ended int64) (began int64, more bool) {
	p := &w.pace
	if p.due == 0 {
		p.due = float64(ended) + p.offset
	}
	p.due += p.interval
	if p.due <= float64(ended) {
		return int64(p.due), true
	}
	for {
		t := now()
		left := p.due - float64(t)
		if left <= 0 {
			return t, true
		}
		p.sleep(left)
		if w.over() {
			return 0, false
		}
	}
}

// respond answers each request, until the peer has closed.
func (w *worker) respond() {
	for w.exchange(w.fd) && !w.over() {
	}
}

// exchange receives one request and answers it.
func (w *worker) exchange(fd int) bool {
	ok, closed := w.receiveAll(fd, w.buf[:w.request])
	if closed {
		w.closedByPeer()
	}
	if !ok || !w.sendAll(fd, w.buf[:w.response]) {
		return false
	}
	w.tally.transactions++
	w.tally.bytes += int64(w.request + w.response)
	return true
}

// transactDatagrams is transact over UDP. A request or response can be lost: after the
// waiting time the next request is sent. Each has a number, if its size allows, so that a
// late response does not count for the next request.
func (w *worker) transactDatagrams() {
	var number [8]byte
	var count uint64
	echoed := min(w.request, w.response, len(number))
	began, more := now(), true
	for more {
		count++
		binary.LittleEndian.PutUint64(number[:], count)
		copy(w.buf[:w.request], number[:])
		if _, e := send(w.fd, w.buf[:w.request], 0); e != 0 && !w.transient(e) {
			w.datagramFailed()
		}
		w.tally.calls++
		w.awaitResponse(began, string(number[:]), echoed)
		began, more = w.next(now())
	}
}

// awaitResponse waits for the response with the request's number.
func (w *worker) awaitResponse(began int64, number string, echoed int) {
	for {
		n, e := receive(w.fd, w.buf, 0)
		ended := now()
		if n > 0 {
			w.tally.calls++
		}
		if n == w.response && string(w.buf[:echoed]) == number[:echoed] {
			w.record(began, ended)
			w.tally.transactions++
			w.tally.bytes += int64(w.request + w.response)
			return
		}
		if e != 0 && !w.transient(e) {
			w.datagramFailed()
		}
		if ended-began > w.retry {
			if w.stage.phase.Load() == measuring {
				w.lost++
			}
			return
		}
		if w.over() {
			return
		}
	}
}

// respondDatagrams answers each request. The response has the request's number.
func (w *worker) respondDatagrams() {
	echoed := min(w.request, w.response, 8)
	reply := w.buf[len(w.buf)-w.response:]
	for {
		n, e := receive(w.fd, w.buf[:w.request+1], 0)
		if n == w.request {
			copy(reply[:echoed], w.buf[:echoed])
			if _, e := send(w.fd, reply, 0); e != 0 && !w.transient(e) {
				w.datagramFailed()
			}
			w.tally.calls += 2
			w.tally.transactions++
			w.tally.bytes += int64(w.request + w.response)
		} else if e != 0 && !w.transient(e) {
			w.datagramFailed()
		}
		if w.over() {
			return
		}
	}
}

// datagramFailed counts a failed call on a UDP socket, and the worker continues. If the
// peer is gone, its host answers with ICMP errors, and the control connection ends the run.
func (w *worker) datagramFailed() {
	if w.seen < stopping {
		w.tally.errors++
	}
}

// connectTransact opens a connection for each transaction: connect, request, response, and
// the server's close. The server closes first, so that TIME_WAIT occupies no port of the
// client.
func (w *worker) connectTransact() {
	request, response := w.buf[:w.request], w.buf[:w.response]
	began, more := now(), true
	for more {
		fd, what, e := w.dial()
		if e != 0 {
			if !w.transient(e) {
				w.failed(what, e)
				return
			}
		} else {
			ok := w.sendAll(fd, request)
			if ok {
				ok, _ = w.receiveAll(fd, response)
			}
			ok = ok && w.drained(fd)
			closeSocket(fd)
			ended := now()
			if ok {
				w.record(began, ended)
				w.tally.transactions++
				w.tally.bytes += int64(w.request + w.response)
			} else if w.fatal != nil {
				return
			} else if w.seen < cooling {
				w.tally.errors++
			}
			began = ended
		}
		began, more = w.next(began)
	}
}

// dial makes one connection, in the calling thread.
func (w *worker) dial() (fd int, what string, e syscall.Errno) {
	family := syscall.AF_INET
	if w.address.length == syscall.SizeofSockaddrInet6 {
		family = syscall.AF_INET6
	}
	if fd, e = openSocket(family, syscall.SOCK_STREAM); e != 0 {
		return -1, "make a socket", e
	}
	if e = w.prepare(fd); e == 0 {
		e = w.connect(fd)
	}
	if e != 0 {
		closeSocket(fd)
		return -1, "connect", e
	}
	return fd, "", 0
}

// connect waits for the connection. If a signal or the timeout interrupts a call, the
// handshake continues, and the next call waits for it.
func (w *worker) connect(fd int) syscall.Errno {
	for {
		e := connectSocket(fd, &w.address)
		switch e {
		case 0, syscall.EISCONN:
			return 0
		case syscall.EINTR:
			w.transient(e)
		case syscall.EINPROGRESS, syscall.EALREADY, syscall.EAGAIN:
			w.transient(syscall.EAGAIN)
		default:
			return e
		}
		if w.over() {
			return syscall.EINTR
		}
	}
}

// prepare sets a connection's options, in the hot path and without allocations.
func (w *worker) prepare(fd int) syscall.Errno {
	if e := setCallTimeout(fd); e != 0 {
		return e
	}
	for i, name := range [...][2]int{{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}, {unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}} {
		if w.buffers[i] <= 0 || setOption(fd, syscall.SOL_SOCKET, name[0], int32(w.buffers[i])) == 0 {
			continue
		}
		if e := setOption(fd, syscall.SOL_SOCKET, name[1], int32(w.buffers[i])); e != 0 {
			return e
		}
	}
	if w.tos.value > 0 {
		if e := setOption(fd, w.tos.level, w.tos.name, int32(w.tos.value)); e != 0 {
			return e
		}
	}
	if w.noDelay {
		return setOption(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	}
	return 0
}

// drained waits for the server's close.
func (w *worker) drained(fd int) bool {
	for {
		n, e := receive(fd, w.buf[:1], 0)
		if e == 0 {
			return n == 0
		}
		if !w.transient(e) || w.over() {
			return false
		}
	}
}

// acceptRespond accepts connections one after another, answers one request on each, and
// closes it.
func (w *worker) acceptRespond() {
	for {
		fd, e := accept(w.fd)
		if e == 0 {
			if w.noDelay {
				setOption(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
			}
			w.exchangeOnce(fd)
			closeSocket(fd)
		} else if !w.transient(e) && !(e == syscall.EINVAL && w.seen >= stopping) && e != syscall.ECONNABORTED {
			w.failed("accept", e)
			return
		}
		if w.over() {
			return
		}
	}
}

// exchangeOnce answers the request of one short connection. A broken connection is counted
// as an error, and the worker continues.
func (w *worker) exchangeOnce(fd int) {
	before := w.tally.errors
	if !w.exchange(fd) && w.seen < cooling {
		w.fatal = nil
		w.tally.errors = before + 1
	}
}
