package liveness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// family is an IP version's kind of echo messages.
type family struct {
	network, any   string
	request, reply icmp.Type
	only           func(*icmp.PacketConn) error // makes the kernel drop all messages except replies
}

var families = map[bool]family{
	true: {"ip4:icmp", "0.0.0.0", ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply, func(c *icmp.PacketConn) error {
		var f ipv4.ICMPFilter
		f.SetAll(true)
		f.Accept(ipv4.ICMPTypeEchoReply)
		return c.IPv4PacketConn().SetICMPFilter(&f)
	}},
	false: {"ip6:ipv6-icmp", "::", ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, func(c *icmp.PacketConn) error {
		var f ipv6.ICMPFilter
		f.SetAll(true)
		f.Accept(ipv6.ICMPTypeEchoReply)
		return c.IPv6PacketConn().SetICMPFilter(&f)
	}},
}

// echo sends echo requests and receives their replies. It opens the socket of an IP version
// with the first request.
type echo struct {
	in    func(func() error) error // runs a function in the node's network namespace
	log   *slog.Logger
	token string // data of the requests; only their receivers know it
	heard func(netip.Addr)
	conns map[bool]*icmp.PacketConn // by whether the version is 4
	told  string                    // the last logged error
	seq   uint16
	wait  sync.WaitGroup
}

// Run starts a prober that ends with ctx. in runs a function in the node's network namespace.
// wait waits until the prober has ended.
func Run(ctx context.Context, interval time.Duration, in func(func() error) error, log *slog.Logger, wait *sync.WaitGroup) *Prober {
	e := &echo{in: in, log: log, token: rand.Text(), conns: map[bool]*icmp.PacketConn{}}
	p := newProber(interval, e.send)
	e.heard = p.Heard
	wait.Go(func() {
		p.run(ctx)
		for _, c := range e.conns {
			c.Close()
		}
		e.wait.Wait()
	})
	return p
}

// send sends a request. Errors to send count as requests without a reply.
func (e *echo) send(to, source netip.Addr) {
	f := families[to.Is4()]
	c := e.conns[to.Is4()]
	if c == nil {
		if err := e.in(func() (err error) { c, err = f.listen(); return err }); err != nil {
			if e.told != err.Error() {
				e.told = err.Error()
				e.log.Warn("cannot test whether other nodes answer", "error", err)
			}
			return
		}
		e.conns[to.Is4()] = c
		e.wait.Go(func() { e.receive(f, c) })
	}
	e.seq++
	m := icmp.Message{Type: f.request, Body: &icmp.Echo{ID: id, Seq: int(e.seq), Data: []byte(e.token)}}
	b, err := m.Marshal(nil)
	if err != nil {
		panic(err) // Marshal does not fail for an echo
	}
	if at := (&net.IPAddr{IP: to.AsSlice()}); to.Is4() {
		c.IPv4PacketConn().WriteTo(b, &ipv4.ControlMessage{Src: source.AsSlice()}, at)
	} else {
		c.IPv6PacketConn().WriteTo(b, &ipv6.ControlMessage{Src: source.AsSlice()}, at)
	}
}

// readRetry is the wait after an error of a socket.
const readRetry = 100 * time.Millisecond

// id identifies the requests of probers, for people who read captures.
const id = 0x7670

func (f family) listen() (*icmp.PacketConn, error) {
	c, err := icmp.ListenPacket(f.network, f.any)
	if err != nil {
		return nil, fmt.Errorf("open a socket for echo requests (%s): %w", f.network, err)
	}
	if err := f.only(c); err != nil {
		c.Close()
		return nil, fmt.Errorf("set the filter for echo replies (%s): %w", f.network, err)
	}
	return c, nil
}

// receive records the replies that arrive at a socket until the socket is closed.
func (e *echo) receive(f family, c *icmp.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := c.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(readRetry)
			continue
		}
		m, err := icmp.ParseMessage(f.reply.Protocol(), buffer[:n])
		if err != nil {
			continue
		}
		if r, is := m.Body.(*icmp.Echo); is && m.Type == f.reply && r.ID == id && string(r.Data) == e.token {
			if a, ok := netip.AddrFromSlice(from.(*net.IPAddr).IP); ok {
				e.heard(a.Unmap())
			}
		}
	}
}
