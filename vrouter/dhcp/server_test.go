package dhcp

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
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

// The sockets of a port open and close with it, also if another port's device does not exist.
func TestTheServerClosesTheSocketsOfItsPorts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	const space = "vr-dhcp-server"
	ns, err := netspace.Create(space)
	must.Succeed(t, err)
	defer ns.Close()
	defer netspace.Delete(space)
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
		links, err := netlink.LinkList()
		for _, l := range links {
			index[l.Attrs().Name] = l.Attrs().Index
		}
		delete(index, "lo")
		return err
	}))
	s := New(Config{InNode: in, Lease: func(string) *Lease { return testLease() }, Log: slog.New(slog.DiscardHandler)})
	defer s.Close()
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
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) { // a closed socket ends after its reader
			got := packetSockets(t, in)
			if fmt.Sprint(got) == fmt.Sprint(c.want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the packet sockets by ifindex are %v, want %v", c.what, got, c.want)
			}
		}
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
