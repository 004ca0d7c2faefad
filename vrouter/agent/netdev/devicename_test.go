package netdev

import (
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
	"windtunnel/vrouter/model"
)

// The kernel must neither refuse nor change a device name that the model allows.
func TestTheKernelTakesTheDeviceNamesOfTheModel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	names := []string{"", ".", "..", "...", "e%d", "%d", "e%%d", "%s", strings.Repeat("x", 15), strings.Repeat("x", 16), "ä", "à", "网络", "all", "default", "All"}
	for b := range 256 {
		names = append(names, "a"+string([]byte{byte(b)})+"z")
	}
	err := netspace.OwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "first"
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "second"}); err != nil {
			return err
		}
		l, err := netlink.LinkByName("first")
		if err != nil {
			return err
		}
		for _, name := range names {
			refused := netlink.LinkSetName(l, name)
			now, err := netlink.LinkByIndex(l.Attrs().Index)
			if err != nil {
				return err
			}
			kept, allowed := refused == nil && now.Attrs().Name == name, model.CheckDevice(name)
			if kept != (allowed == nil) {
				t.Errorf("the kernel makes %q of %q (%v), and the model says %v", now.Attrs().Name, name, refused, allowed)
			}
		}
		return nil
	})
	must.Succeed(t, err)
}
