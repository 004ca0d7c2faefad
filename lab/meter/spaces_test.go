package meter

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// joined is two namespaces of the test's own, joined by a veth pair "left"
// (10.99.0.1, fd99::1) and "right" (10.99.0.2, fd99::2).
type joined struct{ left, right netns.NsHandle }

func join(t testing.TB) joined {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	j := joined{left: newSpace(t, "l"), right: newSpace(t, "r")}
	h := at(t, j.left)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "left", 1500
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "right", PeerNamespace: netlink.NsFd(j.right), PeerMTU: 1500}
	if err := h.LinkAdd(veth); err != nil {
		t.Skipf("cannot make a veth pair: %v", err)
	}
	address(t, j.left, "left", "10.99.0.1/24", "fd99::1/64")
	address(t, j.right, "right", "10.99.0.2/24", "fd99::2/64")
	return j
}

// newSpace makes a named namespace and removes it when the test ends.
func newSpace(t testing.TB, side string) netns.NsHandle {
	t.Helper()
	name := fmt.Sprintf("wt-meter-%d-%s", os.Getpid(), side)
	ns, err := netspace.Create(name)
	if err != nil {
		t.Skipf("cannot make a network namespace: %v", err)
	}
	t.Cleanup(func() {
		ns.Close()
		if err := netspace.Delete(name); err != nil {
			t.Error(err)
		}
	})
	return ns
}

func at(t testing.TB, ns netns.NsHandle) *netlink.Handle {
	t.Helper()
	h := must.Get(netlink.NewHandleAt(ns, unix.NETLINK_ROUTE))(t)
	t.Cleanup(h.Close)
	return h
}

func address(t testing.TB, ns netns.NsHandle, device string, prefixes ...string) {
	t.Helper()
	h := at(t, ns)
	l := must.Get(h.LinkByName(device))(t)
	for _, p := range prefixes {
		ip, mask, err := net.ParseCIDR(p)
		must.Succeed(t, err)
		const noDAD = 0x02
		a := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: mask.Mask}}
		if ip.To4() == nil {
			a.Flags = noDAD
		}
		must.Succeed(t, h.AddrAdd(l, a))
	}
	must.Succeed(t, h.LinkSetUp(l))
}

// connect makes a TCP connection from left to right over the given address.
// Both ends are closed when the test ends.
func (j joined) connect(t testing.TB, to string) (sender, receiver *net.TCPConn) {
	t.Helper()
	var l net.Listener
	err := insideOf(j.right, func() (err error) {
		l, err = net.Listen("tcp", to)
		return err
	})
	must.Succeed(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		accepted <- c
	}()
	var c net.Conn
	err = insideOf(j.left, func() (err error) {
		c, err = net.Dial("tcp", l.Addr().String())
		return err
	})
	must.Succeed(t, err)
	s, ok := <-accepted
	if !ok {
		c.Close()
		t.Fatal("the connection was not accepted")
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// transfer sends n bytes and returns when all have been received.
func transfer(t testing.TB, sender, receiver *net.TCPConn, n int64) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		block := make([]byte, 128<<10)
		for left := n; left > 0; {
			k, err := sender.Write(block[:min(left, int64(len(block)))])
			if err != nil {
				failed <- err
				return
			}
			left -= int64(k)
		}
		failed <- nil
	}()
	block := make([]byte, 128<<10)
	for got := int64(0); got < n; {
		k, err := receiver.Read(block)
		if err != nil {
			t.Fatalf("after %d of %d bytes: %v", got, n, err)
		}
		got += int64(k)
	}
	must.Succeed(t, <-failed)
}
