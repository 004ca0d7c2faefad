package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"windtunnel/vrouter/api"
)

// listen opens a TCP listener in the workload. Port 0 is any.
func (w *workload) listen(version int, port uint16) (net.Listener, error) {
	var l net.Listener
	err := in(w.ns, func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(w.ip(version), port).String())
		return err
	})
	return l, err
}

// dial connects from the workload.
func (w *workload) dial(network, addr string) (net.Conn, error) {
	return w.dialFor(network, addr, patience*5*time.Second)
}

// dialFor connects from the workload, within the time limit.
func (w *workload) dialFor(network, addr string, limit time.Duration) (net.Conn, error) {
	var c net.Conn
	err := in(w.ns, func() (err error) {
		c, err = (&net.Dialer{Timeout: limit}).Dial(network, addr)
		return err
	})
	return c, err
}

// payload is bytes that nobody can guess, the same for a seed.
func payload(seed uint64, n int) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}), int64(n))
}

// bulk is the size of a long transfer, bytes: 16 MiB, or VROUTER_BULK MiB.
var bulk = func() int {
	if n, err := strconv.Atoi(os.Getenv("VROUTER_BULK")); err == nil {
		return n << 20
	}
	return 16 << 20
}()

// transfer sends n bytes over TCP and compares their hashes at both ends.
func transfer(from, to *workload, version, n int) error {
	return carry(from, to, version, payload(uint64(n), n))
}

// checkTransfer reports an error unless n bytes arrive intact over TCP.
func checkTransfer(from, to *workload, version, n int) {
	t := from.bed.t
	t.Helper()
	err := transfer(from, to, version, n)
	if err == nil {
		return
	}
	t.Errorf("an IPv%d transfer of %d bytes from %s to %s: %v", version, n, from.port.Name, to.port.Name, err)
	for _, n := range from.bed.agents() {
		drops, err := ask(n, (*api.Client).Drops)
		t.Logf("node %s has dropped (%v): %+v", n.name, err, drops)
	}
}

// openTransfer transfers data until the returned function is called. The function returns the
// transfer's error.
func openTransfer(from, to *workload, version int) (end func() error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- carry(from, to, version, until{ctx, payload(1, math.MaxInt)}) }()
	return func() error {
		stop()
		return <-done
	}
}

// until reads slowly from a reader until the context ends.
type until struct {
	context.Context
	io.Reader
}

func (u until) Read(b []byte) (int, error) {
	if u.Err() != nil {
		return 0, io.EOF
	}
	time.Sleep(10 * time.Millisecond)
	return u.Reader.Read(b)
}

// carry sends data over TCP and compares its hashes at both ends.
func carry(from, to *workload, version int, data io.Reader) error {
	l, err := to.listen(version, 0)
	if err != nil {
		return err
	}
	return carryTo(l, from, data, patience*5*time.Second)
}

// carryTo is as carry, to a listener, which it closes. limit is for the connection only.
func carryTo(l net.Listener, from *workload, data io.Reader, limit time.Duration) error {
	defer l.Close()
	var sent, received hash.Hash = sha256.New(), sha256.New()
	deadline := time.Now().Add(patience * 60 * time.Second)
	receiver := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			c.SetDeadline(deadline)
			_, err = io.Copy(received, c)
		}
		receiver <- err
	}()
	c, err := from.dialFor("tcp", l.Addr().String(), limit)
	if err != nil {
		return err
	}
	c.SetDeadline(deadline)
	n, err := io.CopyBuffer(onlyWriter{c}, io.TeeReader(data, sent), make([]byte, 128<<10))
	c.Close()
	if err == nil {
		err = <-receiver
	}
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", n, err)
	}
	if string(sent.Sum(nil)) != string(received.Sum(nil)) {
		return fmt.Errorf("%d bytes were sent, but the received data differ", n)
	}
	return nil
}

type onlyWriter struct{ io.Writer }

// datagram sends one UDP datagram of n bytes there and expects it back, equal.
func datagram(from, to *workload, version, n int) error {
	var server net.PacketConn
	err := in(to.ns, func() (err error) {
		server, err = net.ListenPacket("udp", netip.AddrPortFrom(to.ip(version), 0).String())
		return err
	})
	if err != nil {
		return err
	}
	defer server.Close()
	go func() {
		buf := make([]byte, 65536)
		for {
			n, addr, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			server.WriteTo(buf[:n], addr)
		}
	}()
	c, err := from.dial("udp", server.LocalAddr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	want, err := io.ReadAll(payload(uint64(n), n))
	if err != nil {
		return err
	}
	got := make([]byte, 65536)
	for try := range 3 { // the first may meet an unresolved neighbour
		if _, err := c.Write(want); err != nil {
			return err
		}
		c.SetReadDeadline(time.Now().Add(patience * time.Second << try))
		m, err := c.Read(got)
		if err != nil {
			continue
		}
		if string(got[:m]) != string(want) {
			return fmt.Errorf("a datagram of %d bytes came back as %d other bytes", n, m)
		}
		return nil
	}
	return fmt.Errorf("a datagram of %d bytes: no answer: %w", n, errTimeout)
}

// anyTransfer sends n bytes to a service that several workloads share: the one
// that accepts must get them all.
func anyTransfer(from *workload, servers []*workload, n int) error {
	var port uint16 // the kernel chooses it for the first server; a fixed port may still be in use
	results := make(chan error, len(servers))
	for _, s := range servers {
		var l net.Listener
		if err := in(s.ns, func() (err error) {
			l, err = net.Listen("tcp", netip.AddrPortFrom(s.ip(4), port).String())
			return err
		}); err != nil {
			return err
		}
		defer l.Close()
		port = uint16(l.Addr().(*net.TCPAddr).Port)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(20 * time.Second))
			got, err := io.Copy(io.Discard, c)
			if err == nil && got != int64(n) {
				err = fmt.Errorf("%d of %d bytes", got, n)
			}
			results <- err
		}()
	}
	c, err := from.dial("tcp", netip.AddrPortFrom(servers[0].ip(4), port).String())
	if err != nil {
		return err
	}
	if _, err := io.Copy(onlyWriter{c}, payload(1, n)); err != nil {
		return err
	}
	c.Close()
	return <-results
}
