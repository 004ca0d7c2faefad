package e2e

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// rawFrame is an Ethernet frame to send from a device.
type rawFrame struct {
	bytes []byte
	mark  int // mark of the sending socket (SO_MARK)
	// unfinished: the TCP checksum is only the pseudo header's, and the kernel is told
	// that a NIC completes it.
	unfinished bool
	// lasting: send the frame again and again for this time, past the device's queueing
	// discipline (PACKET_QDISC_BYPASS); 0: once.
	lasting time.Duration
}

// send sends the frame. The calling thread must be in the device's namespace.
func (f rawFrame) send(device string) error {
	var header [10]byte // struct virtio_net_hdr
	if f.unfinished {
		header[0] = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
		binary.NativeEndian.PutUint16(header[6:], tcpAt)
		binary.NativeEndian.PutUint16(header[8:], sumAt-tcpAt)
	}
	d, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, f.mark); err != nil {
		return err
	}
	frame, to := append(header[:], f.bytes...), &unix.SockaddrLinklayer{Ifindex: d.Index}
	if f.lasting == 0 {
		return unix.Sendto(fd, frame, 0, to)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return err
	}
	for end := time.Now().Add(f.lasting); time.Now().Before(end); {
		if err := unix.Sendto(fd, frame, 0, to); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return err
		}
	}
	return nil
}

// sendFrame sends a frame from a device of the node, by a socket with a mark.
func (n *node) sendFrame(device string, mark int, frame []byte) {
	n.bed.t.Helper()
	n.bed.must(in(n.ns, func() error { return rawFrame{bytes: frame, mark: mark}.send(device) }))
}

// sendFrame sends a frame from the workload.
func (w *workload) sendFrame(frame []byte) {
	w.bed.t.Helper()
	w.bed.must(in(w.ns, func() error { return rawFrame{bytes: frame}.send("eth0") }))
}

// sendUnfinished sends a frame whose TCP checksum the NIC has to complete.
func (w *workload) sendUnfinished(frame []byte) {
	w.bed.t.Helper()
	w.bed.must(in(w.ns, func() error { return rawFrame{bytes: frame, unfinished: true}.send("eth0") }))
}
