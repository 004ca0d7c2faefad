package e2e

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// rawFrames are Ethernet frames to send from a device. One socket sends all frames, because
// opening a socket takes longer than sending a frame.
type rawFrames struct {
	frames [][]byte
	mark   int // mark of the sending socket (SO_MARK)
	// unfinished: the TCP checksum covers only the pseudo header, and the NIC must
	// complete it.
	unfinished bool
	// while: send the frames repeatedly while it returns true, without the device's queueing
	// discipline (PACKET_QDISC_BYPASS); nil: send them once.
	while func() bool
}

// send sends the frames. The calling thread must be in the device's namespace. If vrouter's program on a netkit device
// drops a frame, the kernel returns the error ENOBUFS to the sender. send ignores this error.
func (f rawFrames) send(device string) error {
	var header [10]byte // struct virtio_net_hdr
	if f.unfinished {
		header[0] = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
		binary.NativeEndian.PutUint16(header[6:], tcpAt)
		binary.NativeEndian.PutUint16(header[8:], sumAt-tcpAt)
	}
	d, err := netlink.LinkByName(device)
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
	if f.while != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
			return err
		}
	}
	to := &unix.SockaddrLinklayer{Ifindex: d.Attrs().Index}
	drops := f.while != nil || d.Type() == "netkit"
	for {
		for _, frame := range f.frames {
			err := unix.Sendto(fd, slices.Concat(header[:], frame), 0, to)
			if err != nil && (!drops || !errors.Is(err, unix.ENOBUFS)) {
				return err
			}
		}
		if f.while == nil || !f.while() {
			return nil
		}
	}
}

// sendFrame sends a frame from a device of the node, by a socket with a mark.
func (n *node) sendFrame(device string, mark int, frame []byte) {
	n.bed.t.Helper()
	n.bed.must(in(n.ns, func() error { return rawFrames{frames: [][]byte{frame}, mark: mark}.send(device) }))
}

// sendOnSwitch sends a frame from a switch port to the node at that port.
func (b *bed) sendOnSwitch(port string, frame []byte) {
	b.t.Helper()
	b.must(in(b.sw, func() error { return rawFrames{frames: [][]byte{frame}}.send(port) }))
}

// sendFrame sends frames from the workload.
func (w *workload) sendFrame(frames ...[]byte) {
	w.bed.t.Helper()
	w.bed.must(in(w.ns, func() error { return rawFrames{frames: frames}.send("eth0") }))
}

// sendUnfinished sends a frame whose TCP checksum the NIC has to complete.
func (w *workload) sendUnfinished(frame []byte) {
	w.bed.t.Helper()
	w.bed.must(in(w.ns, func() error { return rawFrames{frames: [][]byte{frame}, unfinished: true}.send("eth0") }))
}
