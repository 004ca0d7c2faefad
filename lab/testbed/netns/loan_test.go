package netns

import (
	"errors"
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

// A device has vanished from its namespace: Clean reports it once. The host has another device of
// the same name: the device stays in the namespace until the name is free.
func TestCleanEndsTheLoanOfADevice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	id := testID(t)
	node := space.TestbedPrefix(id) + "a"
	host, err := space.Create("wt-host-" + id)
	must.Succeed(t, err)
	defer func() {
		if err := errors.Join(host.Close(), space.Delete("wt-host-"+id)); err != nil {
			t.Error(err)
		}
	}()
	add := func(name string) error {
		return host.Pair(space.Veth{Name: name, PeerName: name + "-peer", MTU: 1400}, host)
	}
	lend := func() error {
		s, err := space.Create(node)
		if err != nil {
			return err
		}
		return errors.Join(s.Borrow("data"), s.Close())
	}
	clean := func(want string, removed ...string) {
		t.Helper()
		c, err := space.Clean(space.TestbedPrefix(id))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
		must.Equal(t, removed, c.Namespaces)
	}
	err = host.Do(func() error {
		if err := errors.Join(add("data"), lend(), host.Remove("data-peer")); err != nil {
			return err
		}
		clean("device data (MAC address ", node)
		clean("")
		if err := errors.Join(add("data"), lend(), add("data2")); err != nil {
			return err
		}
		l, err := host.Link("data2")
		if err != nil {
			return err
		}
		if err := host.Links.LinkSetName(l, "data"); err != nil {
			return err
		}
		clean("rename the other one (`ip link set data name NEW`)")
		if err := host.Links.LinkSetName(l, "data2"); err != nil {
			return err
		}
		clean("", node)
		_, err = host.Link("data")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
