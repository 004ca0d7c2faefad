package traffic

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"windtunnel/lab/suite"
)

// enlist makes the worker of one flow at one end. The socket is connected; for
// connect/request/response the server has a listening socket and the client has none.
func (c *crew) enlist(s Spec, f flow, client bool, fd int) (*worker, error) {
	if f.Load {
		s = s.load()
	}
	f.Role = roleOf(s.Workload.Kind, f.Direction, client)
	// The client ends the run, and sends the server a message.
	w := c.add(&worker{flow: f, fd: fd, cpu: -1, work: s.Workload.ReceiverWork, tcp: !s.Workload.Kind.UDP() && s.Workload.Kind != suite.TCPCRR, tolerates: !client})
	if err := w.equip(s); err != nil {
		return nil, err
	}
	switch f.Role {
	case roleSend:
		return w, w.sends(s)
	case roleReceive:
		return w, w.receives(s)
	case roleRequest:
		w.latency, w.course = newHistogram(), newCourse(s.Timing)
		w.retry = callTimeout.Nanoseconds()
		if pace := s.Workload.Pace; pace > 0 {
			w.pace.interval = 1e9 * float64(s.Workload.Streams) / pace
			w.pace.offset = 1e9 * float64(f.Index) / pace
		}
		w.loop = map[suite.Kind]func(*worker){
			suite.TCPRR: (*worker).transact, suite.TCPCRR: (*worker).connectTransact, suite.UDPRR: (*worker).transactDatagrams,
		}[s.Workload.Kind]
	case roleRespond:
		w.until = closing
		w.loop = map[suite.Kind]func(*worker){
			suite.TCPRR: (*worker).respond, suite.TCPCRR: (*worker).acceptRespond, suite.UDPRR: (*worker).respondDatagrams,
		}[s.Workload.Kind]
	}
	return w, nil
}

func roleOf(k suite.Kind, direction string, client bool) string {
	switch {
	case k.Exchange() && client:
		return roleRequest
	case k.Exchange():
		return roleRespond
	case client == (direction == string(suite.Forward)):
		return roleSend
	}
	return roleReceive
}

// equip allocates a worker's buffer.
func (w *worker) equip(s Spec) (err error) {
	size := int(s.Workload.Buffer)
	w.mixed = s.Workload.IMIX
	switch w.flow.Role {
	case roleRequest, roleRespond:
		// One more byte shows a datagram that is too long. respondDatagrams has its
		// request and its response in the same buffer, one after the other.
		w.request, w.response = int(s.Workload.Request), int(s.Workload.Response)
		size = max(w.request+1+w.response, greetingSize+1)
	case roleReceive:
		if s.Workload.Kind.UDP() {
			size++
		}
	}
	w.buf, w.unmap, err = newBuffer(size)
	return err
}

func (w *worker) sends(s Spec) (err error) {
	if rate := s.Workload.StreamRate(); rate > 0 {
		size := float64(s.Workload.Buffer)
		if w.mixed {
			size = imixMean()
		}
		w.pace.interval = size * 8e9 / float64(rate)
		if !s.Workload.Kind.UDP() {
			w.pace.backlog = streamBacklog
		}
	}
	if s.Workload.Kind.UDP() {
		w.loop = (*worker).sendDatagrams
		return nil
	}
	w.loop = (*worker).sendStream
	if s.Workload.PacketPerSend {
		w.flags = packetPerSend
	}
	if s.Workload.Sendfile {
		w.file, w.fileSize, err = newFile(int(s.Workload.Buffer))
	}
	return err
}

func (w *worker) receives(s Spec) error {
	w.until = closing
	if !s.Workload.Kind.UDP() {
		w.loop = (*worker).receiveStream
		return nil
	}
	w.loop = (*worker).receiveDatagrams
	if err := w.overflow.count(w.fd); err != nil {
		return fmt.Errorf("count the datagrams that a full socket drops: %w", err)
	}
	return setTimeouts(w.fd, drainTimeout)
}

// dials sets the address to which a worker of connect/request/response connects.
func (w *worker) dials(s Spec, to netip.AddrPort) (err error) {
	w.address, err = raw(to)
	w.noDelay, w.tos = s.Workload.NoDelay, tosOf(s.Workload)
	w.buffers = [2]int{int(s.Workload.SendBuffer), int(s.Workload.ReceiveBuffer)}
	return err
}

// errNothing is the error for a run in which no payload passed.
func errNothing(r Result) error {
	if r.Local.SentBytes+r.Local.ReceivedBytes > 0 || r.Local.Transactions > 0 {
		return nil
	}
	return fmt.Errorf("nothing passed to or from %s within the window of %v: check that packets of the full size get through (ping -M do -s SIZE)", r.Peer, r.Spec.Timing.Duration)
}

// newBuffer maps size bytes outside Go's heap, and writes to every page. release unmaps
// them.
func newBuffer(size int) (p []byte, release func() error, err error) {
	p, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return nil, nil, fmt.Errorf("map a buffer of %d bytes: %w", size, err)
	}
	for i := range p {
		p[i] = 'A' // NTttcp sends this byte too
	}
	whole := p
	return p, func() error { return unix.Munmap(whole) }, nil
}

// sendfileSize is the smallest size of a file for sendfile, so that it does not read the
// same page again and again.
const sendfileSize = 4 << 20

// newFile makes a file in memory, with all of its pages in the page cache. Its size is a
// multiple of the buffer's size, and at least sendfileSize.
func newFile(buffer int) (fd int, size int64, err error) {
	size = int64((max(sendfileSize, buffer)+buffer-1)/buffer) * int64(buffer)
	if fd, err = unix.MemfdCreate("windtunnel-sendfile", unix.MFD_CLOEXEC); err != nil {
		return -1, 0, fmt.Errorf("make a file in memory for sendfile: %w", err)
	}
	block := make([]byte, 1<<20)
	for written := int64(0); written < size; {
		n, err := unix.Write(fd, block[:min(int64(len(block)), size-written)])
		if err != nil {
			unix.Close(fd)
			return -1, 0, fmt.Errorf("fill a file in memory with %d bytes for sendfile: %w", size, err)
		}
		written += int64(n)
	}
	return fd, size, nil
}
