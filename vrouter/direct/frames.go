package direct

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// frames is the packet socket of a device: it receives the test frames, and sends whole frames.
type frames struct{ *os.File }

// listenFrames opens a socket in the network namespace of the calling thread. The socket has no
// protocol until it is bound, so it receives no frames of other devices.
func listenFrames(ifindex int) (net.PacketConn, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, EtherType))
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: ifindex}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("bind a packet socket to the device with index %d: %w", ifindex, err)
	}
	return frames{os.NewFile(uintptr(fd), "packet socket")}, nil
}

func (f frames) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := f.Read(b)
	return n, nil, err
}

// WriteTo sends a frame, whose header has the addresses.
func (f frames) WriteTo(frame []byte, _ net.Addr) (int, error) { return f.Write(frame) }

func (f frames) LocalAddr() net.Addr { return nil }
