// Package udptun is a small overlay in user space: a TUN device, one UDP socket, and
// a program that sends each IP packet in a datagram, unchanged. It works in the same
// way as flannel's udp backend (backend/udp/proxy_amd64.c) and Weave's sleeve: two
// copies and a system call in each direction for every packet of the MTU's size.
//
// The tunnel neither routes packets nor changes their TTL, because the kernels on
// both sides do. It protects nothing: packets from a peer's address are accepted
// without authentication.
package udptun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"windtunnel/lab/parallel"
)

// Overhead is the number of bytes that the tunnel adds to a packet on an IPv4
// underlay: UDP 8, IPv4 20. IPv6 adds 20 more.
const Overhead = 28

// Config has the settings of a tunnel.
type Config struct {
	Device string         // name of the TUN device, which must not exist
	Listen netip.AddrPort // address of the socket; peers know it as the source address
	Routes []Route
	// Batch is the maximum number of packets in one system call of the socket, 1 to
	// MaxBatch. A system call of the device always carries one packet.
	Batch int
}

// MaxBatch is the largest batch.
const MaxBatch = 256

// maxPacket is the maximum length of an IP packet. No datagram is longer.
const maxPacket = 65535

// Tunnel is an open tunnel.
type Tunnel struct {
	device *os.File
	socket *net.UDPConn
	routes *Routes
	batch  int

	closing           atomic.Bool
	outward, backward tally
}

// Open makes the device and the socket in the calling thread's network namespace. The
// device is down and has no address; the caller sets both.
func Open(c Config) (*Tunnel, error) {
	routes, err := NewRoutes(c.Routes)
	if err != nil {
		return nil, err
	}
	if err := c.check(routes); err != nil {
		return nil, err
	}
	network := "udp4"
	if c.Listen.Addr().Is6() {
		network = "udp6"
	}
	socket, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(c.Listen))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("listen on UDP %s: %w; `ss -ulpn` shows the program that uses the port; end it or choose another port", c.Listen, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on UDP %s (is it an address of this node?): %w", c.Listen, err)
	}
	device, err := openDevice(c.Device)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return &Tunnel{device: device, socket: socket, routes: routes, batch: c.Batch}, nil
}

func (c Config) check(routes *Routes) error {
	if c.Batch < 1 || c.Batch > MaxBatch {
		return fmt.Errorf("batch %d: want 1 to %d packets", c.Batch, MaxBatch)
	}
	if !c.Listen.IsValid() || c.Listen.Addr().Is4In6() {
		return fmt.Errorf("listen on %q: want ADDRESS:PORT, without ::ffff before IPv4", c.Listen)
	}
	for _, p := range routes.Peers() {
		if p.Addr().Is4() != c.Listen.Addr().Is4() {
			return fmt.Errorf("peer %s cannot be reached from %s: one is IPv4, the other IPv6", p, c.Listen)
		}
		if p == c.Listen {
			return fmt.Errorf("peer %s is this node: packets would return to it; remove its networks from the routes", p)
		}
	}
	return nil
}

// Run carries packets until Close, which is no error, or until the device or
// the socket fails.
func (t *Tunnel) Run() error {
	ways := []func() error{t.toPeers, t.fromPeers}
	if t.batch > 1 {
		ways = []func() error{t.toPeersInBatches, t.fromPeersInBatches}
	}
	return parallel.Each(ways, func(_ int, way func() error) error {
		if err := way(); !t.closing.Load() {
			return errors.Join(err, t.Close()) // ends the other direction too
		}
		return nil
	})
}

// Close ends Run and removes the device. A second Close is no error.
func (t *Tunnel) Close() error {
	if t.closing.Swap(true) {
		return nil
	}
	return errors.Join(t.device.Close(), t.socket.Close())
}

// Counters returns the counts so far.
func (t *Tunnel) Counters() Counters {
	return Counters{ToPeers: t.outward.read(), FromPeers: t.backward.read()}
}

func (t *Tunnel) toPeers() error {
	packet := make([]byte, maxPacket)
	for {
		n, err := t.device.Read(packet)
		if err != nil {
			return fmt.Errorf("read from the TUN device (was it deleted?): %w", err)
		}
		peer, ok := t.route(packet[:n])
		if !ok {
			continue
		}
		if _, err := t.socket.WriteToUDPAddrPort(packet[:n], peer); err != nil {
			t.outward.failed.Add(1)
			continue
		}
		t.outward.carried(n)
	}
}

func (t *Tunnel) fromPeers() error {
	packet := make([]byte, maxPacket)
	for {
		n, from, err := t.socket.ReadFromUDPAddrPort(packet)
		if err != nil {
			return fmt.Errorf("receive from peers: %w", err)
		}
		t.deliver(packet[:n], from)
	}
}

// route finds the peer for a packet of the device. It counts malformed packets and
// packets without a route.
func (t *Tunnel) route(packet []byte) (netip.AddrPort, bool) {
	to, ok := destination(packet)
	if !ok {
		t.outward.malformed.Add(1)
		return netip.AddrPort{}, false
	}
	peer, ok := t.routes.Lookup(to)
	if !ok {
		t.outward.noRoute.Add(1)
	}
	return peer, ok
}

// deliver writes a peer's packet to the device, or drops it and counts the reason.
func (t *Tunnel) deliver(packet []byte, from netip.AddrPort) {
	if !t.routes.Knows(from) {
		t.backward.unknownPeer.Add(1)
		return
	}
	to, ok := destination(packet)
	if !ok {
		t.backward.malformed.Add(1)
		return
	}
	if _, elsewhere := t.routes.Lookup(to); elsewhere {
		t.backward.transit.Add(1)
		return
	}
	if _, err := t.device.Write(packet); err != nil { // EIO while the device is down
		t.backward.failed.Add(1)
		return
	}
	t.backward.carried(len(packet))
}
