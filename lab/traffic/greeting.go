package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// greeting is the client's first message on every data socket. It names the flow and the
// run. Its first two bits are notTraffic (see putHeader).
type greeting struct {
	token uint64
	index uint32
}

const (
	greetingSize  = 21
	greetingMagic = 0xf7_57_69_6e_64_74_75_6e // the bits 11, then "Windtun"
)

func (g greeting) encode() (p [greetingSize]byte) {
	binary.BigEndian.PutUint64(p[:], greetingMagic)
	binary.BigEndian.PutUint64(p[8:], g.token)
	binary.BigEndian.PutUint32(p[16:], g.index)
	return p
}

var errForeign = errors.New("a connection that does not belong to this run")

func decodeGreeting(p []byte) (greeting, error) {
	if len(p) != greetingSize || binary.BigEndian.Uint64(p) != greetingMagic {
		return greeting{}, errForeign
	}
	return greeting{binary.BigEndian.Uint64(p[8:]), binary.BigEndian.Uint32(p[16:])}, nil
}

// greet sends the greeting on a new TCP connection.
func (g greeting) greet(fd int) error {
	p := g.encode()
	if n, err := unix.Write(fd, p[:]); err != nil || n != len(p) {
		return fmt.Errorf("greet the server on a data connection: %w", err)
	}
	return nil
}

// readGreeting reads the greeting from a new TCP connection.
func readGreeting(fd int, deadline time.Time) (greeting, error) {
	p := make([]byte, 0, greetingSize)
	for len(p) < greetingSize {
		n, err := unix.Read(fd, p[len(p):greetingSize])
		switch {
		case n > 0:
			p = p[:len(p)+n]
		case err == nil:
			return greeting{}, errForeign
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return greeting{}, fmt.Errorf("read the greeting of a data connection: %w", err)
		}
		if time.Now().After(deadline) {
			return greeting{}, errForeign
		}
	}
	return decodeGreeting(p)
}

// greetDatagrams sends the greeting to a server's UDP socket until the echo arrives,
// because datagrams can be lost.
func (g greeting) greetDatagrams(fd int, deadline time.Time) error {
	p := g.encode()
	reply := make([]byte, greetingSize+1)
	for {
		if _, err := unix.Write(fd, p[:]); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			return fmt.Errorf("greet the server over UDP: %w", err)
		}
		n, err := unix.Read(fd, reply) // waits for callTimeout
		if err == nil && string(reply[:n]) == string(p[:]) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the server answers no datagram; is UDP let through between the ends?")
		}
	}
}

// answers is the server's side of greetings over UDP, with one bound socket for each flow.
// It answers until traffic starts, because an echo can be lost too.
type answers struct {
	token   uint64
	sockets []int
	known   []bool // true: the socket is connected to the client
	left    int    // number of flows without a greeting
}

// answer waits a short time for greetings, and echoes each greeting.
func (a *answers) answer() error {
	const wait = 5 // ms
	fds := make([]unix.PollFd, len(a.sockets))
	for i, fd := range a.sockets {
		fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	if _, err := unix.Poll(fds, wait); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for the client's greeting over UDP: %w", err)
	}
	for i := range fds {
		if fds[i].Revents != 0 {
			if err := a.echo(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *answers) echo(i int) error {
	p := make([]byte, greetingSize+1)
	n, from, err := unix.Recvfrom(a.sockets[i], p, unix.MSG_DONTWAIT|unix.MSG_PEEK)
	if err != nil {
		return nil // an ICMP error for an earlier echo, or no datagram
	}
	g, err := decodeGreeting(p[:n])
	ours := err == nil && g == greeting{a.token, uint32(i)}
	if !ours && a.known[i] {
		return nil // traffic, which overtook the start message; the worker receives it
	}
	if _, _, err := unix.Recvfrom(a.sockets[i], p, unix.MSG_DONTWAIT); err != nil || !ours {
		return nil // of another run
	}
	if !a.known[i] {
		if err := unix.Connect(a.sockets[i], from); err != nil {
			return fmt.Errorf("connect a UDP socket to the client: %w", err)
		}
		a.known[i] = true
		a.left--
	}
	if _, err := unix.Write(a.sockets[i], p[:n]); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("answer the client's greeting over UDP: %w", err)
	}
	return nil
}
