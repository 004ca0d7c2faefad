package traffic

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// overflow counts the datagrams that the receiver's socket dropped because its buffer was full. It
// counts only datagrams of the sender's window. With each datagram the kernel can report the drops
// of the socket so far (SO_RXQ_OVFL). This takes time, so the receiver asks only twice: after the
// first datagram of the window, and after the first datagram behind the window.
type overflow struct {
	phase int32     // that the next edge must have; above cooling: both edges have passed
	due   bool      // the next datagram has a reading
	edges [2]uint64 // numbers of the first datagram of the window, and of the first one behind it
	drops [2]uint32 // of the socket before these datagrams

	header  unix.Msghdr
	vector  unix.Iovec
	control [unix.SizeofCmsghdr + 8]byte
}

// count makes the kernel count for a socket.
func (o *overflow) count(fd int) error {
	o.phase = measuring
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
}

// receive wraps the function receive. When a reading is due, it also returns the number of datagrams
// that the socket has dropped.
func (o *overflow) receive(fd int, p []byte) (n int, dropped uint32, e syscall.Errno) {
	if !o.due {
		n, e = receive(fd, p, 0)
		return n, 0, e
	}
	o.vector.Base = unsafe.SliceData(p)
	o.vector.SetLen(len(p))
	o.header = unix.Msghdr{Iov: &o.vector, Iovlen: 1, Control: &o.control[0]}
	o.header.SetControllen(len(o.control))
	r, _, e := syscall.RawSyscall6(syscall.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&o.header)), 0, 0, 0, 0)
	if n, e = result(r, e); e == 0 && o.header.Controllen > unix.SizeofCmsghdr { // the kernel adds the count after the first drop only
		dropped = *(*uint32)(unsafe.Pointer(&o.control[unix.SizeofCmsghdr]))
	}
	return n, dropped, e
}

// take processes the number of a received datagram. dropped is the result of a reading, if one was due.
func (o *overflow) take(phase int32, number uint64, dropped uint32) {
	edge := int(o.phase-measuring) & 1
	if o.due {
		// Datagrams that are missing between the edge and this one were dropped after the edge.
		gap := uint32(max(int64(number)-int64(o.edges[edge])-1, 0))
		o.due, o.drops[edge] = false, dropped-min(gap, dropped)
		o.phase++
		return
	}
	if o.phase >= measuring && o.phase <= cooling && phase >= o.phase {
		o.due, o.edges[edge] = true, number
	}
}

// result returns the datagrams that the socket dropped between the edges, and those that are
// missing there. received is the number of the different datagrams of the window. ok is false
// if an edge has not passed.
func (o *overflow) result(received int64) (dropped, missing int64, ok bool) {
	missing = max(int64(o.edges[1]-o.edges[0])-received, 0)
	return min(int64(o.drops[1]-o.drops[0]), missing), missing, o.phase > cooling
}
