package system

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

func TestOVSLeavesRoomForItsTunnels(t *testing.T) {
	for tunnel, want := range map[string]int{"vxlan": 1450, "gre": 1458} {
		if got := MTU(OVS{tunnel}, 1500); got != want {
			t.Errorf("%s: MTU %d on a fabric of 1500, want %d", tunnel, got, want)
		}
	}
}

func TestOVSRefusesSeveralLinks(t *testing.T) {
	o := OVS{"vxlan"}
	must.Succeed(t, Supports(o, suite.TwoNodes, suite.Fabric{Links: 1}))
	must.Fail(t, Supports(o, suite.TwoNodes, suite.Fabric{Links: 2}), "ovs-vxlan", "2 links")
}

// With three nodes, each has a tunnel to both others.
func TestOVSJoinsThreeNodesWithoutALoop(t *testing.T) {
	for _, tunnel := range []string{"vxlan", "gre"} {
		t.Run(tunnel, func(t *testing.T) {
			o := OVS{tunnel}
			nodes := nodesOnASwitch(t, o, 3)
			attached(t, o, nodes)
			// A switch that is up early floods to nodes whose own is not there yet. What
			// their kernels refuse until a transfer gets through is no fault.
			const bytes = 2 << 20
			for _, to := range nodes[1:] {
				carry(t, nodes[0], to, 1)
			}
			early := make([]int, len(nodes))
			for i, n := range nodes {
				early[i] = refused(t, n)
			}
			for _, to := range nodes[1:] {
				if got := carry(t, nodes[0], to, bytes); got != bytes {
					t.Errorf("%d of %d bytes came to node %d", got, bytes, to.Index)
				}
			}
			assertNoCircle(t, nodes)
			for i, n := range nodes {
				if got := refused(t, n) - early[i]; got > 0 {
					t.Errorf("the kernel of node %d refused %d packets that were Open vSwitch's", n.Index, got)
				}
			}
			path := nodes[0].Space.Settings().Others[ovsDatapathKey]
			if !strings.HasPrefix(path, "kernel") && !strings.HasPrefix(path, "userspace (netdev): ") {
				t.Errorf("the record says of the datapath: %q", path)
			}
		})
	}
}

// refused counts how many packets the node's own stack answered with "port (or
// protocol) unreachable": OutDestUnreachs of the Icmp lines (RFC 2011).
func refused(t *testing.T, n *Node) int {
	t.Helper()
	var text []byte
	err := n.Space.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	must.Succeed(t, err)
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] != "Icmp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		return must.Get(strconv.Atoi(fields[slices.Index(names, "OutDestUnreachs")]))(t)
	}
	t.Fatalf("no ICMP counters in\n%s", text)
	return 0
}

// The fabric device has its addresses, routes, filters, queue and offloads
// afterwards as before, whether or not Attach got through; its filters and queue
// meanwhile too.
func TestOVSReturnsTheFabricDevice(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("fails=%v", fails), func(t *testing.T) {
			o := OVS{"vxlan"}
			nodes := nodesOnASwitch(t, o, 2)
			n := nodes[0]
			dressFabric(t, n)
			if _, why := o.choose(n); why == "" {
				t.Skip("the kernel's datapath leaves the fabric device alone")
			}
			before, queues := fabricState(t, n), fabricQueues(t, n)
			if fails { // the last port of the last bridge cannot be made
				n.Underlay = append(n.Underlay, n.Underlay[0])
				n.Endpoints = append(n.Endpoints, n.Endpoints[0])
			}
			err := onAll(nodes[:1], o.Attach)
			if (err != nil) != fails {
				t.Errorf("attach: %v", err)
			}
			must.Equal(t, queues, fabricQueues(t, n))
			if !fails {
				if got := fabricState(t, n); got == before {
					t.Error("Open vSwitch did not take the fabric device over")
				}
			}
			if fails {
				n.Endpoints = n.Endpoints[:1]
			}
			for range 2 { // what is detached can be detached again
				if err := onAll(nodes[:1], o.Detach); err != nil {
					t.Error(err)
				}
			}
			must.Equal(t, before, fabricState(t, n))
			must.Equal(t, queues, fabricQueues(t, n))
			links, err := n.Space.Links.LinkList()
			if err != nil || len(links) != 2 {
				t.Errorf("%d devices (%v); the loopback and the fabric device were to be expected", len(links), err)
			}
			if _, err := os.Stat(space.Home(n.Name)); !os.IsNotExist(err) {
				t.Errorf("%s is still there (%v)", space.Home(n.Name), err)
			}
		})
	}
}

// dressFabric gives the fabric device what the wire's NICs have: a queue, a
// filter at its egress, GRO.
func dressFabric(t *testing.T, n *Node) {
	t.Helper()
	l := must.Get(n.Space.Link("fab"))(t)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
	if err != nil {
		t.Skip("this kernel loads no programs for the traffic control hook: " + err.Error())
	}
	defer p.Close()
	index := l.Attrs().Index
	at := func(parent, handle uint32) netlink.QdiscAttrs {
		return netlink.QdiscAttrs{LinkIndex: index, Parent: parent, Handle: handle}
	}
	for _, q := range []netlink.Qdisc{
		&netlink.GenericQdisc{QdiscAttrs: at(netlink.HANDLE_ROOT, netlink.MakeHandle(1, 0)), QdiscType: "pfifo"},
		&netlink.Clsact{QdiscAttrs: at(netlink.HANDLE_CLSACT, netlink.MakeHandle(0xffff, 0))},
	} {
		if err := n.Space.Links.QdiscAdd(q); err != nil {
			t.Skipf("this kernel has no %s: %v", q.Type(), err)
		}
	}
	err = n.Space.Links.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          p.FD(), Name: "nic", DirectAction: true,
	})
	must.Succeed(t, err)
	must.Succeed(t, n.Space.Offloads("fab", map[string]bool{"rx-gro": true}))
}

func fabricQueues(t *testing.T, n *Node) string {
	t.Helper()
	l := must.Get(n.Space.Link("fab"))(t)
	qdiscs := must.Get(n.Space.Links.QdiscList(l))(t)
	var kinds []string
	for _, q := range qdiscs {
		kinds = append(kinds, q.Type())
	}
	slices.Sort(kinds)
	filters := must.Get(n.Space.Links.FilterList(l, netlink.HANDLE_MIN_EGRESS))(t)
	for _, f := range filters {
		if b, ok := f.(*netlink.BpfFilter); ok {
			kinds = append(kinds, fmt.Sprint("filter ", b.Name, " of program ", b.Id))
		}
	}
	return strings.Join(kinds, "\n")
}

// fabricState is all of the fabric device that Attach may change.
func fabricState(t *testing.T, n *Node) string {
	t.Helper()
	l := must.Get(n.Space.Link("fab"))(t)
	a := l.Attrs()
	state := []string{fmt.Sprintf("MTU %d, promiscuous %d, flags %v, GRO up to %d and %d bytes", a.MTU, a.Promisc, a.Flags, a.GROMaxSize, a.GROIPv4MaxSize)}
	on := must.Get(n.Space.OffloadsOn("fab"))(t)
	slices.Sort(on)
	state = append(state, strings.Join(on, " "))
	var more []string
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		addrs := must.Get(n.Space.Links.AddrList(l, family))(t)
		for _, a := range addrs {
			if !a.IP.IsLinkLocalUnicast() { // whose flags change by themselves
				more = append(more, fmt.Sprintf("address %s flags %#x", a.IPNet, a.Flags&^unix.IFA_F_TENTATIVE))
			}
		}
		routes := must.Get(n.Space.Links.RouteList(nil, family))(t)
		for _, r := range routes {
			more = append(more, fmt.Sprintf("route %s dev %d congctl %q proto %s scope %s src %s metric %d", r.Dst, r.LinkIndex, r.Congctl, r.Protocol, r.Scope, r.Src, r.Priority))
		}
	}
	for family, names := range map[string]map[string]string{"ipv4": ovsTakenIPv4, "ipv6": ovsTakenIPv6} {
		values := must.Get(deviceSysctls(n, family, "fab", names))(t)
		more = append(more, fmt.Sprint(family, values))
	}
	slices.Sort(more)
	return strings.Join(append(state, more...), "\n")
}

func TestTheErrorOfOVSWithADaemonThatEndsHasItsLastLines(t *testing.T) {
	o := OVS{"vxlan"}
	nodes := nodesOnASwitch(t, o, 2)
	failingProgram(t, "ovs-vswitchd", "no memory left for flows")
	err := onAll(nodes[:1], o.Attach)
	must.Fail(t, err, "ovs-vswitchd ended at once", "no memory left for flows")
	must.Succeed(t, onAll(nodes[:1], o.Detach))
}

// What Open vSwitch cannot set up it notes in its database and exits with 0.
func TestTheErrorOfOVSNamesThePortThatItCouldNotSetUp(t *testing.T) {
	o := OVS{"vxlan"}
	nodes := nodesOnASwitch(t, o, 2)
	attached(t, o, nodes)
	err := onAll(nodes[:1], func(n *Node) error {
		return configureOVS(n, "add-port", ovsBridge, "nosuch")
	})
	must.Fail(t, err, "set up Open vSwitch's port nosuch", "No such device")
}

func TestOVSHasNoDeviceToReturnWithoutABridge(t *testing.T) {
	n := &Node{Name: "wt-never-was"}
	if taken, err := readTaken(n); taken != nil || err != nil {
		t.Errorf("a node without a bridge has taken %+v (%v), want nothing", taken, err)
	}
}
