package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

// A virtual machine with Debian's kernel and busybox boots. Its DHCP client gets the address, MTU, routes and
// DNS server, and its kernel gets the IPv6 router. Then the guest resolves the name of a workload on another node,
// and exchanges data with it.
func TestAVMThatBootsGetsItsNetwork(t *testing.T) {
	must.Long(t)
	if !kerneltest.In() {
		bootGuest(t, kerneltest.Guest{Programs: []string{"busybox", "ip"}})
		return
	}
	testprogram.Output(t, "/bin/ip link set eth0 up")
	os.Setenv("PATH", "/bin")
	os.Setenv("RESOLV", "/etc/resolv.conf")
	must.Succeed(t, udhcpc("/tmp", 20))
	checkGuest(t)
	exchange(t, "far.red")
}

// A virtual machine with Debian's packages boots, with the configuration that Debian's installer writes for DHCP. The
// guest gets all that the agent offers.
func TestADistributionInAVMGetsItsNetwork(t *testing.T) {
	if !kerneltest.In() {
		image := os.Getenv("VROUTER_GUEST_IMAGE")
		if image == "" {
			t.Skip("takes minutes; run it with: make test-guest")
		}
		bootGuest(t, kerneltest.Guest{Image: image})
		return
	}
	checkGuest(t)
	soon(t, "the IPv6 address", func() error {
		if all := testprogram.Output(t, "ip -6 address show dev eth0"); !strings.Contains(all, "inet6 fd00:1::10/") || strings.Contains(all, "tentative") {
			return fmt.Errorf("the guest has the IPv6 addresses %s", all)
		}
		return nil
	})
	for _, address := range []string{"10.2.0.12", "fd00:1::12"} {
		exchange(t, address)
		if all := testprogram.Output(t, "getent ahosts far.red"); !strings.Contains(all, address) {
			t.Errorf("the guest's library finds %s for far.red, want %s", all, address)
		}
	}
	if name := testprogram.Output(t, "cat /proc/sys/kernel/hostname"); name != "vm\n" {
		t.Errorf("the guest has the host name %q, want vm, the port's name", name)
	}
}

// bootGuest boots a guest as the workload vm. The workload far on another node returns data to it.
func bootGuest(t *testing.T, g kerneltest.Guest) {
	t.Helper()
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
		server, err = net.Listen("tcp", ":7")
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
	g.Seconds, g.Megabyte, g.Modules, g.Namespace = 300, 1024, kerneltest.CardModules, b.nodes[0].space
	g.Cards = []kerneltest.Card{{Tap: "tap-vm", MAC: vm.port.MAC.String()}}
	g.Parameters = fmt.Sprintf("VROUTER_GUEST_MTU=%d", b.nodes[0].vif("vm").MTU)
	kerneltest.Run(t, g)
}

// checkGuest checks the MTU, the address and the routes of the guest.
func checkGuest(t *testing.T) {
	t.Helper()
	has := func(command string, want ...string) {
		soon(t, "the configuration by DHCP", func() error {
			all := strings.Join(strings.Fields(testprogram.Output(t, command)), " ")
			for _, w := range want {
				if !strings.Contains(all, w) {
					return fmt.Errorf("the output of %s is %s, without %q", command, all, w)
				}
			}
			return nil
		})
	}
	has("ip link show dev eth0", "mtu "+os.Getenv("VROUTER_GUEST_MTU")+" ")
	has("ip address show dev eth0", "inet 10.1.0.10/24 ")
	has("ip route", "default via 10.1.0.1 dev eth0", "10.2.0.0/24 via 10.1.0.1 dev eth0")
	has("ip -6 route", "default via fe80::200:5eff:fe00:100 dev eth0")
}

// exchange sends data from the guest to the workload far, and receives them.
func exchange(t *testing.T, host string) {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort(host, "7"))
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

// tap adds a tap device for a virtual machine to a namespace.
func (b *bed) tap(ns netns.NsHandle, name string) {
	b.t.Helper()
	b.must(in(ns, func() error {
		return netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR})
	}))
}
