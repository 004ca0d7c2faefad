package udptun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// batches sends and receives several datagrams with one system call
// (sendmmsg(2), recvmmsg(2)). The message type of both IP versions is the same.
type batches interface {
	ReadBatch(messages []ipv4.Message, flags int) (int, error)
	WriteBatch(messages []ipv4.Message, flags int) (int, error)
}

func (t *Tunnel) batches() batches {
	if t.socket.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Is4() {
		return ipv4.NewPacketConn(t.socket)
	}
	return ipv6.NewPacketConn(t.socket)
}

func (t *Tunnel) newMessages() []ipv4.Message {
	messages := make([]ipv4.Message, t.batch)
	for i := range messages {
		messages[i].Buffers = [][]byte{make([]byte, maxPacket)}
	}
	return messages
}

// toPeersInBatches sends the packets that are available in the device, in batches.
// It does not wait until a batch is full, so batches add no delay.
func (t *Tunnel) toPeersInBatches() error {
	device, err := t.device.SyscallConn()
	if err != nil {
		return fmt.Errorf("access the TUN device: %w", err)
	}
	addresses := map[netip.AddrPort]*net.UDPAddr{}
	for _, p := range t.routes.Peers() {
		addresses[p] = net.UDPAddrFromAddrPort(p)
	}
	socket, messages := t.batches(), t.newMessages()
	for {
		n, err := t.fill(device, messages, addresses)
		if err != nil {
			return fmt.Errorf("read from the TUN device (was it deleted?): %w", err)
		}
		t.sendAll(socket, messages[:n])
		for i := range messages[:n] {
			messages[i].Buffers[0] = messages[i].Buffers[0][:maxPacket]
		}
	}
}

// fill waits until the device has packets, and reads the available packets. Each
// becomes a message to its peer.
func (t *Tunnel) fill(device syscall.RawConn, messages []ipv4.Message, addresses map[netip.AddrPort]*net.UDPAddr) (n int, failure error) {
	err := device.Read(func(fd uintptr) bool {
		for range messages {
			packet := messages[n].Buffers[0]
			size, err := unix.Read(int(fd), packet)
			if errors.Is(err, unix.EAGAIN) {
				return n > 0
			}
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				failure = err
				return true
			}
			if peer, ok := t.route(packet[:size]); ok {
				messages[n].Buffers[0], messages[n].Addr = packet[:size], addresses[peer]
				n++
			}
		}
		return true
	})
	return n, errors.Join(failure, err)
}

// sendAll sends the messages. After an error it drops the first message that is not
// sent yet.
func (t *Tunnel) sendAll(socket batches, messages []ipv4.Message) {
	for len(messages) > 0 {
		sent, err := socket.WriteBatch(messages, 0)
		if err != nil || sent < 1 {
			t.outward.failed.Add(1)
			messages = messages[1:]
			continue
		}
		for _, m := range messages[:sent] {
			t.outward.carried(len(m.Buffers[0]))
		}
		messages = messages[sent:]
	}
}

func (t *Tunnel) fromPeersInBatches() error {
	socket, messages := t.batches(), t.newMessages()
	for {
		n, err := socket.ReadBatch(messages, 0)
		if err != nil {
			return fmt.Errorf("receive from peers: %w", err)
		}
		for _, m := range messages[:n] {
			from := m.Addr.(*net.UDPAddr).AddrPort()
			t.deliver(m.Buffers[0][:m.N], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
		}
	}
}
