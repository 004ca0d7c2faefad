package dhcp

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// newTestServer returns a server whose ports have the test lease. Its network namespace has the veth pair web1 and
// web2. It also returns their ifindexes.
func newTestServer(t *testing.T) (*Server, map[string]int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	const space = "vr-dhcp-server"
	ns := must.Get(netspace.Create(space))(t)
	t.Cleanup(func() {
		must.Succeed(t, netspace.Delete(space))
		ns.Close()
	})
	in := func(f func() error) error {
		return netspace.OwnThread(func() error { return errors.Join(netns.Set(ns), f()) })
	}
	index := map[string]int{}
	must.Succeed(t, in(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "web1"
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "web2"}); err != nil {
			return err
		}
		for _, name := range []string{"web1", "web2"} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			index[name] = l.Attrs().Index
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
		}
		// The kernel drops what a device sends before it is up (net/core/link_watch.c).
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			one, err1 := netlink.LinkByName("web1")
			two, err2 := netlink.LinkByName("web2")
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			if one.Attrs().OperState == netlink.OperUp && two.Attrs().OperState == netlink.OperUp {
				return nil
			}
		}
		return errors.New("the devices are not up after 5 s")
	}))
	s := New(Config{InNode: in, Lease: func(string) *Lease { return testLease() }, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	return s, index
}

// The sockets of a port open and close with it, also if another port's device does not exist.
func TestTheServerClosesTheSocketsOfItsPorts(t *testing.T) {
	s, index := newTestServer(t)
	missing := index["web2"] + 1000
	for _, c := range []struct {
		what    string
		ports   map[string]int
		want    map[int]int // sockets by ifindex
		refused string
	}{
		{"two ports", index, map[int]int{index["web1"]: 2, index["web2"]: 2}, ""},
		{"one port is deleted", map[string]int{"web1": index["web1"]}, map[int]int{index["web1"]: 2}, ""},
		{"the device is replaced", map[string]int{"web1": index["web2"]}, map[int]int{index["web2"]: 2}, ""},
		{"a device does not exist", map[string]int{"web1": index["web2"], "db": missing}, map[int]int{index["web2"]: 2}, "open sockets for DHCP on the device of port db"},
		{"no port", nil, map[int]int{}, ""},
	} {
		err := s.Serve(c.ports)
		if text := fmt.Sprint(err); (err != nil) != (c.refused != "") || !strings.Contains(text, c.refused) {
			t.Errorf("%s: the error is %v, want one with %q", c.what, err, c.refused)
		}
		must.Eventually(t, c.what, func() error { // a closed socket ends after its reader
			if got := packetSockets(t, s.InNode); fmt.Sprint(got) != fmt.Sprint(c.want) {
				return fmt.Errorf("the packet sockets by ifindex are %v, want %v", got, c.want)
			}
			return nil
		})
	}
}

// packetSockets returns the number of packet sockets in a network namespace, by ifindex.
func packetSockets(t *testing.T, in func(func() error) error) map[int]int {
	t.Helper()
	all := map[int]int{}
	must.Succeed(t, in(func() error {
		data, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/net/packet", unix.Gettid()))
		for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
			if fields := bytes.Fields(line); i > 0 {
				var ifindex int
				fmt.Sscan(string(fields[4]), &ifindex) // sk RefCnt Type Proto Iface
				all[ifindex]++
			}
		}
		return err
	}))
	return all
}

// A new port gets a router advertisement at once, and then the answer to a discover message.
func TestANewPortGetsAnAdvertisementAndAnswers(t *testing.T) {
	s, index := newTestServer(t)
	client := map[uint16]*os.File{}
	for _, protocol := range []uint16{unix.ETH_P_IP, unix.ETH_P_IPV6} {
		must.Succeed(t, s.InNode(func() (err error) {
			client[protocol], err = open(index["web2"], protocol)
			return err
		}))
		defer client[protocol].Close()
	}
	must.Succeed(t, s.Serve(map[string]int{"web1": index["web1"]}))
	advertisement, err := testLease().advertisement()
	must.Succeed(t, err)
	receive(t, client[unix.ETH_P_IPV6], "the advertisement", func(data []byte) bool { return bytes.Equal(data, advertisement) })
	mac := testLease().MAC
	discover, err := udp(mac, netip.MustParseAddrPort("0.0.0.0:68"), netip.MustParseAddrPort("255.255.255.255:67"), message(t).ToBytes())
	must.Succeed(t, err)
	copy(discover[6:], mac[:])
	_, err = client[unix.ETH_P_IP].Write(discover)
	must.Succeed(t, err)
	receive(t, client[unix.ETH_P_IP], "the offer", func(data []byte) bool {
		f, ok := parse(data)
		return ok && f.from == testLease().Gateways[0] && f.ports == [2]uint16{67, 68}
	})
	counts := map[string]uint64{}
	s.Counts(func(port, result string, n uint64) { counts[port+" "+result] = n })
	must.Equal(t, map[string]uint64{"web1 answered": 2}, counts)
}

// receive reads frames from a socket until one is the wanted frame.
func receive(t *testing.T, socket *os.File, what string, isWanted func(data []byte) bool) {
	t.Helper()
	must.Succeed(t, socket.SetReadDeadline(time.Now().Add(5*time.Second)))
	for buffer := make([]byte, 2048); ; {
		n, err := socket.Read(buffer)
		if err != nil {
			t.Fatalf("receive %s: %v", what, err)
		}
		if isWanted(buffer[:n]) {
			return
		}
	}
}
