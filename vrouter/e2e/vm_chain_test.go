package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

// firewallModules are the kernel modules of nftables with connection tracking, each after those that it needs.
var firewallModules = append(kerneltest.CardModules, "lib/libcrc32c", "net/netfilter/nfnetlink", "net/netfilter/nf_tables", "net/ipv4/netfilter/nf_defrag_ipv4",
	"net/ipv6/netfilter/nf_defrag_ipv6", "net/netfilter/nf_conntrack", "net/netfilter/nft_ct")

// firewallScript configures the ports of fw1 in chain, and allows connections to TCP port 80.
const firewallScript = `
ip link set eth0 up
ip link set eth1 up
ip address add 10.3.0.5/16 dev eth0
ip address add fd00:3::5/64 dev eth0 nodad
ip address add 10.4.0.5/16 dev eth1
ip address add fd00:4::5/64 dev eth1 nodad` + firewallRoutes + `nft add table inet filter
nft add chain inet filter forward { type filter hook forward priority 0 ; policy drop ; }
nft add rule inet filter forward ct state established,related accept
nft add rule inet filter forward tcp dport 80 accept
busybox sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
`

// A firewall in a virtual machine, nftables with connection tracking, connects two networks in a service chain. It
// forwards connections to one port in both directions, and drops those to another. While the machine hangs, the node
// reports its ports. When the machine and its devices fail, the node reports the ports too. A new machine with new
// devices replaces it.
func TestAFirewallInAVMConnectsTwoNetworks(t *testing.T) {
	must.Long(t)
	if kerneltest.In() {
		for line := range strings.Lines(strings.TrimSpace(firewallScript)) {
			testprogram.Output(t, "/bin/"+line)
		}
		kerneltest.AwaitHost(t)
		return
	}
	b := newBed(t, options{config: map[string]any{"liveness": "300ms"}})
	b.state.Nodes = b.nodesOf(false)
	taps := []string{"tap-left", "tap-right"}
	makeTaps := func() {
		for _, tap := range taps {
			b.tap(b.nodes[1].ns, tap)
		}
	}
	makeTaps()
	x, y := chain(b, func(_ string, side int) model.Attachment { return model.Attachment{Device: taps[side]} })
	g := kerneltest.Guest{Seconds: 300, Megabyte: 512, Modules: firewallModules, Programs: []string{"busybox", "ip", "nft"}, Namespace: b.nodes[1].space}
	for side, tap := range taps {
		g.Cards = append(g.Cards, kerneltest.Card{Tap: tap, MAC: model.MAC{2, 9, byte(side), 0, 0, 1}.String()})
	}
	firewall := kerneltest.Start(t, g)
	firewall.Await()
	for _, ends := range [][2]*workload{{x, y}, {y, x}} {
		for _, version := range []int{4, 6} {
			soon(t, "the firewall forwards connections to port 80", func() error { return connect(ends[0], ends[1], version, 80) })
			if err := connect(ends[0], ends[1], version, 81); !os.IsTimeout(err) {
				t.Errorf("IPv%d from %s to port 81 of %s: %v, want a timeout", version, ends[0].port.Name, ends[1].port.Name, err)
			}
		}
	}
	for _, port := range []string{"fw1-left", "fw1-right"} {
		if v := b.nodes[1].vif(port); v.RxPackets == 0 || v.TxPackets == 0 {
			t.Errorf("port %s has received %d packets and sent %d, want some of each", port, v.TxPackets, v.RxPackets)
		}
	}

	problems := func() string { return fmt.Sprint(answer(b.nodes[1], (*api.Client).Status).Problems) }
	reported := func() error {
		if text := problems(); !strings.Contains(text, "fw1-left") || !strings.Contains(text, "fw1-right") {
			return fmt.Errorf("the problems are %s", text)
		}
		return nil
	}
	firewall.Signal(unix.SIGSTOP)
	soon(t, "node b reports the ports of the machine that hangs", reported)
	if text := problems(); !strings.Contains(text, "its workload does not answer") {
		t.Errorf("the problems are %s", text)
	}
	firewall.Signal(unix.SIGCONT)
	soon(t, "node b has no problem of the ports", func() error {
		if text := problems(); strings.Contains(text, "fw1-") {
			return fmt.Errorf("the problems are %s", text)
		}
		return connect(x, y, 4, 80)
	})

	firewall.Kill()
	if err := connect(x, y, 4, 80); err == nil {
		t.Error("a connection passes the firewall that has failed")
	}
	for _, tap := range taps {
		b.nodes[1].ip("link del " + tap) // as a hypervisor does
	}
	soon(t, "node b reports the ports without their devices", reported)

	makeTaps()
	firewall = kerneltest.Start(t, g)
	firewall.Await()
	soon(t, "a new machine is connected to the ports", func() error { return connect(x, y, 4, 80) })
	firewall.Release()
	firewall.Wait()
}

// connect transfers data over TCP to a port of a workload.
func connect(from, to *workload, version int, port uint16) error {
	l, err := to.listen(version, port)
	if err != nil {
		return err
	}
	return carryTo(l, from, payload(1, 1<<20), 3*time.Second)
}
