package dhcp

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// servedPort is a port with its sockets.
type servedPort struct {
	*Server
	name    string
	ifindex int
	sockets [2]*os.File // for IPv4 and IPv6
	counts  [results]atomic.Uint64
	last    atomic.Pointer[refusedAt]
	queries chan struct{} // one element for each DNS query that waits for an answer
}

// dnsPort is the UDP port of DNS servers.
const dnsPort = 53

// refusedAt is the last refused message of a port.
type refusedAt struct {
	at   time.Time
	text string
}

// serve opens the sockets of a port and answers its packets until close.
func (s *Server) serve(name string, ifindex int) (*servedPort, error) {
	p := &servedPort{Server: s, name: name, ifindex: ifindex, queries: make(chan struct{}, maxQueries)}
	for i, protocol := range []uint16{unix.ETH_P_IP, unix.ETH_P_IPV6} {
		socket, err := open(ifindex, protocol)
		if err != nil {
			p.close()
			return nil, err
		}
		p.sockets[i] = socket
	}
	go p.read(p.sockets[0], false)
	go p.read(p.sockets[1], true)
	return p, nil
}

// close closes the sockets, which ends their goroutines.
func (p *servedPort) close() {
	for _, socket := range p.sockets {
		socket.Close() // Close of a nil file is allowed
	}
}

// open returns a socket that receives the packets of a protocol that the eBPF programs let pass, and
// that sends frames to the workload.
func open(ifindex int, protocol uint16) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	bound := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8, Ifindex: ifindex})
	if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, queueBytes), bound); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "packets"), nil
}

// read answers packets until the socket is closed, and sends router advertisements if advertises is
// true. While it waits for the rate, the kernel drops the packets that the socket's queue cannot hold.
func (p *servedPort) read(socket *os.File, advertises bool) {
	limit, buffer := rate.NewLimiter(messageRate, messageBurst), make([]byte, 2048)
	for next := time.Now(); ; {
		if advertises && !time.Now().Before(next) {
			next = time.Now().Add(advertiseEvery)
			socket.SetReadDeadline(next)
			if lease := p.Lease(p.name); lease != nil && lease.isRouter() {
				frame, err := lease.advertisement()
				p.send(socket, frame, err)
			}
		}
		limit.Wait(context.Background()) // it cannot fail: it waits for one token
		n, err := socket.Read(buffer)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			continue // the deadline, or ENETDOWN: the device can be set up again
		}
		f, ok := parse(buffer[:n])
		lease := p.Lease(p.name)
		switch {
		case !ok || lease == nil:
		case lease.isQuery(f):
			p.resolve(socket, lease, f)
		default:
			frame, err := lease.answer(f)
			p.send(socket, frame, err)
		}
	}
}

// isQuery reports whether a frame is a DNS query of the workload to the server.
func (l *Lease) isQuery(f frame) bool {
	return f.icmp6 == nil && f.ports[1] == dnsPort && f.mac == l.MAC && slices.Contains(l.DNS, f.to) &&
		slices.ContainsFunc(l.Addresses, func(p netip.Prefix) bool { return p.Addr() == f.from })
}

// resolve answers a DNS query in a goroutine, because resolvers can be slow. It drops the query if
// maxQueries queries of the port wait.
func (p *servedPort) resolve(socket *os.File, l *Lease, f frame) {
	const headers = 40 + 8 // of IPv6 and UDP
	select {
	case p.queries <- struct{}{}:
	default:
		return
	}
	query := slices.Clone(f.payload)
	go func() {
		defer func() { <-p.queries }()
		if answer := p.DNS(l, query, int(l.MTU)-headers); answer != nil {
			frame, err := udp(l.MAC, netip.AddrPortFrom(f.to, dnsPort), netip.AddrPortFrom(f.from, f.ports[0]), answer)
			p.write(socket, frame, err)
		}
	}()
}

// send sends a frame to the workload, if it is not nil. It counts the frame or the refusal.
func (p *servedPort) send(socket *os.File, frame []byte, err error) {
	var refusal *refusal
	switch {
	case errors.As(err, &refusal):
		p.counts[refusal.result].Add(1)
		p.last.Store(&refusedAt{time.Now(), refusal.text})
		p.Log.Debug("a DHCP message gets no answer", "port", p.name, "result", refusal.result, "error", refusal.text)
	case frame != nil:
		p.counts[answered].Add(1)
		fallthrough
	default:
		p.write(socket, frame, err)
	}
}

func (p *servedPort) write(socket *os.File, frame []byte, err error) {
	if err != nil {
		p.Log.Error("cannot encode the answer to a workload", "port", p.name, "error", err)
	} else if frame != nil {
		socket.SetWriteDeadline(time.Now().Add(time.Second))
		socket.Write(frame) // the client retries
	}
}

// answer returns the frame that answers a DHCP message or a router solicitation; nil: there is no answer.
func (l *Lease) answer(f frame) ([]byte, error) {
	solicits := f.icmp6 != nil && f.icmp6.TypeCode.Type() == layers.ICMPv6TypeRouterSolicitation
	switch {
	case !solicits && f.ports[1] != dhcpv4.ServerPort && f.ports[1] != dhcpv6.DefaultServerPort:
		return nil, nil // the socket received it before the programs were attached
	case !l.DHCP:
		return nil, nil
	case f.mac != l.MAC:
		return nil, refused(foreignMAC, "the source of the frame, %s, is not the port's MAC address, %s", f.mac, l.MAC)
	case solicits && (f.hops != 255 || !l.isRouter()):
		return nil, nil
	case solicits:
		return l.advertisement()
	case f.from.Is4() && f.ports[1] == dhcpv4.ServerPort:
		return l.answerDHCP4(f)
	case f.from.Is6() && f.ports[1] == dhcpv6.DefaultServerPort:
		return l.answerDHCP6(f)
	}
	return nil, nil
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

func (l *Lease) answerDHCP6(f frame) ([]byte, error) {
	if !f.from.IsLinkLocalUnicast() {
		return nil, refused(foreignAddress, "the packet's source %s is not link-local", f.from)
	}
	answer, err := l.answer6(f.payload)
	if answer == nil {
		return nil, err
	}
	return udp(l.MAC, netip.AddrPortFrom(routerAddress, dhcpv6.DefaultServerPort), netip.AddrPortFrom(f.from, dhcpv6.DefaultClientPort), answer.ToBytes())
}
