package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// served is a port with its socket.
type served struct {
	name    string
	ifindex int
	lease   atomic.Pointer[Lease]
	socket  *os.File
	counts  [reasons]atomic.Uint64
	last    atomic.Pointer[refusedAt]
	log     *slog.Logger
}

// refusedAt is the last refused message of a port.
type refusedAt struct {
	at   time.Time
	text string
}

// serve opens the socket of a port and answers its packets until close.
func (s *Server) serve(want Port) (*served, error) {
	socket, err := open(want.Ifindex, unix.ETH_P_IP)
	if err != nil {
		return nil, err
	}
	p := &served{name: want.Name, ifindex: want.Ifindex, socket: socket, log: s.log.With("port", want.Name)}
	p.lease.Store(&want.Lease)
	go p.read()
	return p, nil
}

// close ends the answers.
func (p *served) close() { p.socket.Close() }

// open returns a socket that receives the packets of a protocol that the eBPF programs let pass, and
// that sends frames to the workload.
func open(ifindex int, protocol uint16) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	bound := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8, Ifindex: ifindex})
	if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, queue), bound); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "packets"), nil
}

// read answers packets until the socket is closed. While it waits for the rate, the kernel drops the
// packets that the socket's queue cannot hold.
func (p *served) read() {
	limit, buffer := rate.NewLimiter(messages, burst), make([]byte, 2048)
	for {
		limit.Wait(context.Background()) // it never fails, because 1 is less than burst
		n, err := p.socket.Read(buffer)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			continue // for example ENETDOWN: the device may be up again
		}
		p.handle(buffer[:n])
	}
}

// handle answers one frame.
func (p *served) handle(data []byte) {
	lease := p.lease.Load()
	answer, err := lease.answer(data)
	var refusal *refusal
	switch {
	case errors.As(err, &refusal):
		p.counts[refusal.reason].Add(1)
		p.last.Store(&refusedAt{time.Now(), refusal.text})
		p.log.Debug("a DHCP message gets no answer", "reason", refusal.reason, "why", refusal.text)
	case err != nil:
		p.log.Error("cannot build an answer", "error", err)
	case answer != nil:
		p.counts[answered].Add(1)
		p.socket.SetWriteDeadline(time.Now().Add(time.Second))
		p.socket.Write(answer) // the client retries
	}
}

// answer returns the frame that answers a frame; nil: there is no answer.
func (l *Lease) answer(data []byte) ([]byte, error) {
	f, ok := parse(data)
	if !ok || f.ports[1] != dhcpv4.ServerPort || f.mac != l.MAC {
		return nil, nil // it came before the programs were attached
	}
	return l.answerDHCP4(f)
}

func (l *Lease) answerDHCP4(f frame) ([]byte, error) {
	m, err := dhcpv4.FromBytes(f.payload)
	if err != nil {
		return nil, refused(malformed, "the DHCP message cannot be decoded: %v", err)
	}
	if f.from != netip.IPv4Unspecified() && f.from != l.address(netip.Addr.Is4).Addr() {
		return nil, refused(foreignAddress, "the packet's source %s is not the port's address", f.from)
	}
	answer, to, err := l.answer4(m)
	if answer == nil {
		return nil, err
	}
	from := netip.AddrPortFrom(l.gateway(netip.Addr.Is4), dhcpv4.ServerPort)
	return udp(l.MAC, from, netip.AddrPortFrom(to, dhcpv4.ClientPort), answer.ToBytes())
}
