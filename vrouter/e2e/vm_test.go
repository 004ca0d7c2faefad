package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

// A virtual machine with Debian's kernel and busybox boots. Its DHCP client gets the address, MTU, routes and
// DNS server, and its kernel gets the IPv6 router. Then the guest resolves the name of a workload on another node,
// and exchanges data with it.
func TestAVMThatBootsGetsItsNetwork(t *testing.T) {
	must.Long(t)
	if kerneltest.In() {
		configureGuest(t)
		return
	}
	needs(t, "busybox")
	b := newBed(t, options{})
	b.state.Nodes = b.nodesOf(false)
	b.state.Networks = []model.Network{{Name: "red", ID: 291, DHCP: true, DNS: addresses("10.1.0.2"), Subnets: subnets("10.1.0.0/24", "10.2.0.0/24", "fd00:1::/64")}}
	vm := b.workload("vm", "red", 0, "10.1.0.10", "fd00:1::10")
	vm.port.Attach = model.Attachment{Device: "tap-vm"}
	b.state.Ports[0] = vm.port
	b.tap(b.nodes[0].ns, "tap-vm")
	far := b.workload("far", "red", 1, "10.2.0.12", "fd00:1::12")
	b.up()
	var server net.Listener
	must.Succeed(t, in(far.ns, func() (err error) {
		server, err = net.Listen("tcp", far.ip(4).String()+":7")
		return err
	}))
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	kerneltest.Run(t, kerneltest.Guest{
		Seconds: 300, Megabyte: 1024, Modules: kerneltest.CardModules, Programs: []string{"busybox"},
		Namespace: b.nodes[0].space, Cards: []kerneltest.Card{{Tap: "tap-vm", MAC: vm.port.MAC.String()}},
		Parameters: fmt.Sprintf("VROUTER_GUEST_MTU=%d", b.nodes[0].vif("vm").MTU),
	})
}

// tap adds a tap device for a virtual machine to a namespace.
func (b *bed) tap(ns netns.NsHandle, name string) {
	b.t.Helper()
	b.must(in(ns, func() error {
		return netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR})
	}))
}

func configureGuest(t *testing.T) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	must.Succeed(t, err)
	defer h.Close()
	l, err := h.LinkByName("eth0")
	must.Succeed(t, err)
	must.Succeed(t, h.LinkSetUp(l))
	os.Setenv("PATH", "/bin")
	os.Setenv("RESOLV", "/etc/resolv.conf")
	must.Succeed(t, udhcpc("/tmp", 20))
	l, err = h.LinkByName("eth0")
	must.Succeed(t, err)
	if want := os.Getenv("VROUTER_GUEST_MTU"); fmt.Sprint(l.Attrs().MTU) != want {
		t.Errorf("the guest's MTU is %d, want the port's, %s", l.Attrs().MTU, want)
	}
	routes := strings.Join(strings.Fields(output(t, "busybox", "ip", "route")), " ")
	for _, want := range []string{"default via 10.1.0.1 dev eth0", "10.2.0.0/24 via 10.1.0.1 dev eth0", "src 10.1.0.10"} {
		if !strings.Contains(routes, want) {
			t.Errorf("the guest has the routes %s, without %q", routes, want)
		}
	}
	soon(t, 20*time.Second, "the IPv6 router", func() error {
		if all := output(t, "busybox", "ip", "-6", "route"); !strings.Contains(all, "default via fe80::200:5eff:fe00:100 dev eth0") {
			return fmt.Errorf("the guest has the IPv6 routes %s", all)
		}
		return nil
	})
	c, err := net.Dial("tcp", "far.red:7")
	must.Succeed(t, err)
	defer c.Close()
	sent, err := io.ReadAll(payload(1, 1<<20))
	must.Succeed(t, err)
	go c.Write(sent)
	got := make([]byte, len(sent))
	_, err = io.ReadFull(c, got)
	must.Succeed(t, err)
	if !bytes.Equal(got, sent) {
		t.Error("the workload returned other bytes than the guest sent")
	}
}

// output runs a command and returns its output.
func output(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", command, err, out)
	}
	return string(out)
}
