package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"windtunnel/lab/space"
	"windtunnel/lab/system"
)

// ProofPort is the port on which an endpoint answers the proof of connectivity.
const ProofPort = system.PublishedProof

const proofChunk = 64 << 10 // bytes a write

// AnswerProof accepts one connection at an endpoint, reads args.Bytes bytes and
// sends the same number of bytes. It returns when the other side has closed the
// connection.
func (s *Service) AnswerProof(args ReachArgs, _ *struct{}) error {
	at, err := s.locate(args.Endpoint)
	if err != nil {
		return err
	}
	if at.guest != nil {
		return at.guest.prove("AnswerProof", args)
	}
	where := at.space
	deadline := time.Now().Add(args.Wait)
	var l *net.TCPListener
	err = where.Do(func() (err error) {
		l, err = net.ListenTCP("tcp", &net.TCPAddr{Port: int(args.Port)})
		return err
	})
	if err != nil {
		return fmt.Errorf("answer the proof: %w", err)
	}
	defer l.Close()
	if err := l.SetDeadline(deadline); err != nil {
		return err
	}
	c, err := l.Accept()
	if err != nil {
		return fmt.Errorf("answer the proof: accept a connection: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c, int64(args.Bytes)); err != nil {
		return fmt.Errorf("answer the proof: receive %d bytes: %w", args.Bytes, err)
	}
	if err := sendZeros(c, args.Bytes); err != nil {
		return fmt.Errorf("answer the proof: send %d bytes: %w", args.Bytes, err)
	}
	_, err = c.Read(make([]byte, 1)) // wait until the other side has received everything and closes
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("answer the proof: the other side did not close: %w", err)
	}
	return nil
}

// Reach proves that an address can be reached: by a small echo, by an echo as large
// as the MTU that must not fragment, and by a bulk TCP transfer in both directions.
// A faulty tunnel can pass the first test and fail the others.
func (s *Service) Reach(args ReachArgs, _ *struct{}) error {
	at, err := s.locate(args.Endpoint)
	if err != nil {
		return err
	}
	if at.guest != nil {
		return at.guest.prove("Reach", args)
	}
	where := at.space
	deadline := time.Now().Add(args.Wait)
	ip := 20
	if args.Address.Is6() {
		ip = 40
	}
	const icmp = 8
	payloads := []int{56, args.MTU - ip - icmp}
	if args.NoEcho {
		payloads = nil
	}
	for _, payload := range payloads {
		if err := echo(where, args.Address, payload, deadline); err != nil {
			return err
		}
	}
	return bulk(where, args, deadline)
}

// prove makes the agent in the guest execute the guest's side of the proof.
func (g *guest) prove(method string, args ReachArgs) error {
	args.Endpoint = ""
	return g.client.call(context.Background(), method, args, &struct{}{})
}

func bulk(where *space.Space, args ReachArgs, deadline time.Time) error {
	addr := net.JoinHostPort(args.Address.String(), strconv.Itoa(int(args.Port)))
	c, err := dial(where, addr, deadline)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", addr, err)
	}
	defer c.Close()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	if err := sendZeros(c, args.Bytes); err != nil {
		return fmt.Errorf("send %d bytes of TCP to %s: %w", args.Bytes, addr, err)
	}
	if n, err := io.CopyN(io.Discard, c, int64(args.Bytes)); err != nil {
		return fmt.Errorf("receive %d bytes of TCP from %s: got %d: %w", args.Bytes, addr, n, err)
	}
	return nil
}

// dial retries until the other side listens.
func dial(where *space.Space, addr string, deadline time.Time) (c net.Conn, err error) {
	for {
		err = where.Do(func() (err error) {
			d := net.Dialer{Deadline: deadline}
			c, err = d.Dial("tcp", addr)
			return err
		})
		if err == nil || time.Now().After(deadline) {
			return c, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func sendZeros(w io.Writer, n int) error {
	chunk := make([]byte, proofChunk)
	for n > 0 {
		m, err := w.Write(chunk[:min(n, len(chunk))])
		if err != nil {
			return err
		}
		n -= m
	}
	return nil
}

// echo sends ICMP echo requests with the given payload, which must not fragment,
// until one is answered. The first request can be lost while neighbours are resolved.
func echo(where *space.Space, to netip.Addr, payload int, deadline time.Time) error {
	var c net.PacketConn
	err := where.Do(func() (err error) {
		c, err = openEcho(to)
		return err
	})
	if err != nil {
		return fmt.Errorf("open an ICMP socket: %w", err)
	}
	defer c.Close()
	wait := 200 * time.Millisecond
	for seq := 1; ; seq++ {
		err = pingOnce(c, to, seq, payload, wait)
		if err == nil {
			return nil
		}
		wait = min(2*wait, 5*time.Second) // on a link with a delay, replies take longer
		if time.Now().After(deadline) {
			return fmt.Errorf("ping %s with %d bytes of payload, with fragmentation forbidden: %w", to, payload, err)
		}
	}
}
