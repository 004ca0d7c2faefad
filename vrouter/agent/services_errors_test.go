package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// datagrams returns a UDP socket in a namespace that is connected to an address and does not fragment.
func datagrams(t *testing.T, s *netdev.Space, from, to string) (c *net.UDPConn) {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		controlled := raw.Control(func(fd uintptr) {
			if netip.MustParseAddrPort(to).Addr().Is4() {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
			} else {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
			}
		})
		return errors.Join(controlled, err)
	}}
	if from != "" {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from))
	}
	must.Succeed(t, s.Do(func() error {
		conn, err := d.Dial("udp", to)
		if err == nil {
			c = conn.(*net.UDPConn)
		}
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return c
}

// refused sends datagrams until the kernel learns that the other end's port is closed.
func refused(t *testing.T, c net.Conn) {
	t.Helper()
	must.Eventually(t, fmt.Sprintf("a refusal of %s to %s", c.RemoteAddr(), c.LocalAddr()), func() error {
		c.SetDeadline(time.Now().Add(time.Second))
		c.Write([]byte("data")) // can return the error of an earlier datagram
		if _, err := c.Read(make([]byte, 16)); !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("the error is %v", err)
		}
		return nil
	})
}

// The kernels of both ends recognise errors about datagrams through a service: the client's if the backend's port is
// closed, and the backend's if the client's port is closed.
func TestClosedPortsBehindServicesAreReported(t *testing.T) {
	b := newServedBed(t, model.VXLAN)
	b.set(t, served(unix.IPPROTO_UDP, 0, "10.7.0.11:8080", "[fd07::11]:8080")...)
	for _, a := range []struct{ service, backend, client, itself string }{
		{"10.96.0.10:80", "10.7.0.11:8080", "10.7.0.10:40000", "10.7.0.11:40000"},
		{"[fd96::10]:80", "[fd07::11]:8080", "[fd07::10]:40000", "[fd07::11]:40000"},
	} {
		refused(t, datagrams(t, b.workloads["b1"], a.itself, a.service))
		client := datagrams(t, b.workloads["a1"], a.client, a.service)
		refused(t, client)
		backend := datagrams(t, b.workloads["b1"], a.backend, a.client)
		must.Eventually(t, "a datagram from "+a.client+" at the backend", func() error {
			client.Write([]byte("data")) // can return the error of an earlier datagram
			backend.SetDeadline(time.Now().Add(time.Second))
			_, err := backend.Read(make([]byte, 16))
			return err
		})
		must.Succeed(t, client.Close())
		refused(t, backend)
	}
}

// If a router of the underlay reports a narrow path to a backend (pmtu.h), the client's kernel learns its MTU: a connection continues, and a socket
// that does not fragment gets EMSGSIZE.
func TestClientsOfServicesLearnThePathMTU(t *testing.T) {
	b := newServedBed(t, model.VXLAN)
	backends := []string{"10.7.0.11:8080", "[fd07::11]:8080"}
	b.set(t, append(served(unix.IPPROTO_TCP, 0, backends...), served(unix.IPPROTO_UDP, 0, backends...)...)...)
	repeaters(t, b.workloads["b1"], "b1", backends...)
	text := make([]byte, 1<<20)
	rand.Read(text)
	var talks []*conversation
	var clients []*net.UDPConn
	for i, address := range []string{"10.96.0.10:80", "[fd96::10]:80"} {
		talks = append(talks, converseAt(t, b.workloads["a1"], b.workloads["b1"], address, backends[i]))
		must.Succeed(t, talks[i].transfer(text))
		clients = append(clients, datagrams(t, b.workloads["a1"], "", address))
		must.Get(repeated(clients[i], text[:1400]))(t)
	}
	nexthops := must.Get(b.nodes["a"].client.Nexthops(t.Context(), 0))(t)
	for _, nh := range nexthops {
		if nh.Type == "tunnel" {
			must.Succeed(t, pinnedMap(t, b.nodes["a"].config, "learned_mtus").Put(nh.ID, layout.LearnedMTU{MTU: 1350, UntilNs: math.MaxUint64}))
		}
	}
	for _, talk := range talks {
		if err := talk.transfer(text); err != nil {
			t.Errorf("%s to %s: %v", talk.near.LocalAddr(), talk.near.RemoteAddr(), err)
		}
	}
	for _, c := range clients {
		if _, err := repeated(c, text[:1400]); !errors.Is(err, syscall.EMSGSIZE) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("1400 bytes to %s: %v", c.RemoteAddr(), err)
		}
		if _, err := c.Write(text[:1400]); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("1400 bytes again to %s: %v, want EMSGSIZE", c.RemoteAddr(), err)
		}
		if _, err := repeated(c, text[:1200]); err != nil {
			t.Errorf("1200 bytes to %s: %v", c.RemoteAddr(), err)
		}
	}
}
