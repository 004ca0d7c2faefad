package system

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

func TestBGPConfigNamesEveryOtherNode(t *testing.T) {
	n := &Node{Index: 1}
	for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		n.Underlay = append(n.Underlay, netip.MustParseAddr(a))
	}
	config := bgpConfig(n.Underlay[1], others(n))
	for _, line := range []string{" bgp router-id 10.0.0.2", " neighbor NODES update-source 10.0.0.2", " neighbor 10.0.0.1 peer-group NODES", " neighbor 10.0.0.3 peer-group NODES", "  advertise-all-vni"} {
		if !strings.Contains(config, line+"\n") {
			t.Errorf("no line %q in\n%s", line, config)
		}
	}
	if strings.Contains(config, "neighbor 10.0.0.2") {
		t.Errorf("the node is its own neighbour in\n%s", config)
	}
}

func TestAnARPAnnouncementAsksForTheSendersOwnAddress(t *testing.T) {
	got := arpAnnouncement(net.HardwareAddr{2, 0, 0, 0, 0, 9}, netip.MustParseAddr("10.31.0.2"))
	want := []byte{0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 31, 0, 2, 0, 0, 0, 0, 0, 0, 10, 31, 0, 2}
	must.Equal(t, want, got)
}

// With three nodes each is told the other two's addresses, and frames that came
// by a tunnel do not leave by one.
func TestEVPNAnnouncesTheContainersToEveryNode(t *testing.T) {
	e := EVPN{}
	nodes := nodesOnASwitch(t, e, 3)
	attached(t, e, nodes)
	const bytes = 2 << 20
	for _, to := range nodes[1:] {
		if got := carry(t, nodes[0], to, bytes); got != bytes {
			t.Errorf("%d of %d bytes came to node %d", got, bytes, to.Index)
		}
	}
	assertNoCircle(t, nodes)
	l := must.Get(nodes[0].Space.Link(vxlanDevice))(t)
	entries := must.Get(nodes[0].Space.Links.NeighList(l.Attrs().Index, unix.AF_BRIDGE))(t)
	for _, other := range nodes[1:] {
		mac := other.Endpoints[0].MAC.String()
		told := false
		for _, entry := range entries {
			if entry.HardwareAddr.String() == mac && entry.IP.Equal(net.IP(nodes[0].Underlay[other.Index].AsSlice())) {
				told = entry.Flags&netlink.NTF_EXT_LEARNED != 0
			}
		}
		if !told {
			t.Errorf("nobody told node 0 that %s is behind %s: %v", mac, nodes[0].Underlay[other.Index], entries)
		}
	}
}

func TestTheErrorOfEVPNWithoutAPeerNamesThePeer(t *testing.T) {
	e := EVPN{}
	nodes := nodesOnASwitch(t, e, 2)
	err := onAll(nodes[:1], func(n *Node) error {
		return errors.Join(e.bringUp(n), awaitEVPN(n, 200*time.Millisecond))
	})
	must.Fail(t, err, "172.30.0.2", "bgpd runs")
	must.Succeed(t, onAll(nodes[:1], e.Detach))
	links, err := nodes[0].Space.Links.LinkList()
	if err != nil || len(links) != 2 {
		t.Errorf("%d devices (%v); the loopback and the fabric device were to be expected", len(links), err)
	}
}
