package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// Two nodes translate packets of their workloads to different addresses of one pool. Hosts outside reach a workload at its
// floating address. The kernel does not track these connections. They continue while the agent restarts.
func TestWorkloadsReachHostsOutsideByPoolAndFloatingAddresses(t *testing.T) {
	t.Parallel()
	needs(t, "ip", "iptables", "ip6tables")
	b := fleetBed(t, "10s")
	a := b.nodes[0]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/16", "--subnet", "fd00:1::/64")
	w := []*workload{b.connected("x", "red", 0), b.connected("y", "red", 1)}
	a.run("network", "nat", "red", "--pool", "192.0.2.8/29", "--pool", "2001:db8:77::8/125")
	shared := [2][]netip.Addr{}
	soon(t, "both nodes have an IPv4 and an IPv6 address of the pool", func() error {
		shared = [2][]netip.Addr{}
		for _, r := range rows[model.Floating](a, "network", "nat", "red") {
			for i, n := range b.nodes[:2] {
				if r.Node == n.name && r.Port != "f" {
					shared[i] = append(shared[i], r.Address)
				}
			}
		}
		if len(shared[0]) != 2 || len(shared[1]) != 2 {
			return fmt.Errorf("the nodes have %v", shared)
		}
		return nil
	})
	floating := addresses("192.0.2.14", "2001:db8:77::e")
	for i := range floating {
		for floating[i] == shared[0][i] || floating[i] == shared[1][i] {
			floating[i] = floating[i].Prev()
		}
	}
	f := &workload{bed: b, ns: b.namespace("f")}
	f.port = one[api.Port](a, "port", "add", "--name", "f", "--network", "red", "--netns", b.name+"-f", "--floating", floating[0].String(), "--floating", floating[1].String()).Port
	var there []*workload
	for i, n := range b.nodes[:2] {
		ns := b.outside(n)
		there = append(there, &workload{bed: b, ns: ns, port: model.Port{Name: "outside " + n.name, IPs: outsides}})
		replies(t, ns, "outside", outsides...)
		h := b.handle(ns)
		l, err := h.LinkByName("node")
		b.must(err)
		for _, p := range append(subnets("192.0.2.8/29"), subnets("2001:db8:77::8/125")...) {
			via := map[bool]string{true: "198.51.100.1", false: "2001:db8:1::1"}[p.Addr().Is4()]
			b.must(h.RouteAdd(&netlink.Route{Dst: ipNet(p), Gw: netip.MustParseAddr(via).AsSlice(), LinkIndex: l.Attrs().Index}))
		}
		of := func(all []netip.Addr) func(bool) string {
			return func(v6 bool) string { return "outside " + all[map[bool]int{false: 0, true: 1}[v6]].String() }
		}
		expectReplies(t, w[i].ns, outsides, of(shared[i]))
		if i == 0 {
			expectReplies(t, f.ns, outsides, of(floating))
		}
	}
	if shared[0][0] == shared[1][0] || shared[0][1] == shared[1][1] {
		t.Errorf("the nodes have the addresses %v of the pool, want no address on both", shared)
	}
	replies(t, f.ns, "floating", f.port.IPs...)
	expectReplies(t, there[0].ns, floating, func(v6 bool) string {
		return "floating " + map[bool]string{false: "198.51.100.2", true: "2001:db8:1::2"}[v6]
	})
	// A workload reaches a floating address of a workload on the same node. The node's kernel sends the packets back.
	expectReplies(t, w[0].ns, floating, func(v6 bool) string {
		return "floating " + shared[0][map[bool]int{false: 0, true: 1}[v6]].String()
	})

	// A router behind the node has a smaller MTU, so the node's kernel tells the workloads by ICMP.
	h := b.handle(a.ns)
	l, err := h.LinkByName("out")
	b.must(err)
	b.must(h.LinkSetMTU(l, 1300))
	for version, i := range map[int]int{4: 0, 6: 1} {
		for _, from := range []*workload{w[0], f} {
			checkTransfer(from, there[0], version, 4<<20)
			if got, err := from.ping(outsides[i], 64); err != nil || got != ipv4.ICMPTypeEchoReply && got != ipv6.ICMPTypeEchoReply {
				t.Errorf("%s pings %s: %v, %v", from.port.Name, outsides[i], got, err)
			}
			// The second hop is the node's kernel, which limits the rate of its errors.
			soon(t, from.port.Name+" pings "+outsides[i].String()+" with hop limit 2", func() error {
				got, err := from.ping(outsides[i], 2)
				if err == nil && got != ipv4.ICMPTypeTimeExceeded && got != ipv6.ICMPTypeTimeExceeded {
					err = fmt.Errorf("the answer is %v", got)
				}
				return err
			})
		}
	}
	for program, pool := range map[string]string{"iptables": "192.0.2.8/29", "ip6tables": "2001:db8:77::8/125"} {
		rules, matched := a.exec(program+" -t raw -nvxL VROUTER-PREROUTING"), 0
		for _, line := range strings.Split(rules, "\n") {
			if strings.Contains(line, pool) && strings.Fields(line)[0] != "0" {
				matched++
			}
		}
		if matched != 2 {
			t.Errorf("%s: %d rules have exempted packets of the pool from connection tracking, want 2 (one for each direction):\n%s", program, matched, rules)
		}
	}

	var ends []func() error
	for _, version := range []int{4, 6} {
		ends = append(ends, openTransfer(w[0], there[0], version), openTransfer(f, there[0], version))
	}
	a.kill(syscall.SIGKILL)
	a.start()
	for _, end := range ends {
		if err := end(); err != nil {
			t.Errorf("a transfer during a restart of the agent: %v", err)
		}
	}

	// Without the pool, the node deletes its routes, and translates packets to its own address.
	a.run("port", "delete", "f")
	a.run("network", "nat", "red", "--off")
	soon(t, "the kernel has no route to an address of the pool", func() error {
		if text := a.ip("route show proto 118") + a.ip("-6 route show proto 118"); strings.Contains(text, "192.0.2.") || strings.Contains(text, "2001:db8:77") {
			return fmt.Errorf("the kernel has the routes %s", text)
		}
		return nil
	})
	expectReplies(t, w[0].ns, outsides, func(v6 bool) string {
		return "outside " + map[bool]string{false: "198.51.100.1", true: "2001:db8:1::1"}[v6]
	})
}

// Two nodes share the addresses of a pool, and a router outside sends all packets for them to the first node. Workloads of
// both nodes get replies, pongs, transfers and ICMP errors.
func TestNodesShareAddressesOfAPool(t *testing.T) {
	t.Parallel()
	needs(t, "ip", "iptables", "ip6tables")
	b := fleetBed(t, "10s")
	a := b.nodes[0]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/16", "--subnet", "fd00:1::/64")
	w := []*workload{b.connected("x", "red", 0), b.connected("y", "red", 1)}
	a.run("network", "nat", "red", "--pool", "192.0.2.8/32", "--pool", "2001:db8:77::8/128", "--ports", "30000")
	pool := addresses("192.0.2.8", "2001:db8:77::8")
	soon(t, "both nodes have ports of both addresses", func() error {
		found := map[netip.Addr]map[uint16]string{pool[0]: {}, pool[1]: {}}
		for _, r := range rows[model.Floating](a, "network", "nat", "red") {
			found[r.Address][r.FirstPort] = r.Node
		}
		for _, nodes := range found {
			if len(nodes) != 2 || nodes[1024] == nodes[31024] || nodes[1024] == "" || nodes[31024] == "" {
				return fmt.Errorf("the nodes by address and first port are %v", found)
			}
		}
		return nil
	})
	ns := b.outside(a)
	there := &workload{bed: b, ns: ns, port: model.Port{Name: "outside", IPs: outsides}}
	replies(t, ns, "outside", outsides...)
	// The second node's way to the outside. Packets to the pool do not take it.
	h, out := b.handle(b.nodes[1].ns), b.handle(ns)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "out"
	b.must(h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "node2", PeerNamespace: netlink.NsFd(int(ns))}))
	for _, end := range []struct {
		h              *netlink.Handle
		device, v4, v6 string
	}{{h, "out", "198.51.101.1/24", "2001:db8:2::1/64"}, {out, "node2", "198.51.101.2/24", "2001:db8:2::2/64"}} {
		l, err := end.h.LinkByName(end.device)
		b.must(err)
		b.must(end.h.LinkSetUp(l))
		for _, p := range subnets(end.v4, end.v6) {
			b.must(end.h.AddrAdd(l, &netlink.Addr{IPNet: ipNet(p), Flags: map[bool]int{true: 0x02 /* IFA_F_NODAD */}[p.Addr().Is6()]}))
		}
		if end.h == h {
			for to, via := range map[string]string{"0.0.0.0/0": "198.51.101.2", "::/0": "2001:db8:2::2"} {
				b.must(h.RouteAdd(&netlink.Route{Dst: ipNet(netip.MustParsePrefix(to)), Gw: netip.MustParseAddr(via).AsSlice(), LinkIndex: l.Attrs().Index}))
			}
		}
	}
	l, err := out.LinkByName("node")
	b.must(err)
	for i, via := range []string{"198.51.100.1", "2001:db8:1::1"} {
		b.must(out.RouteAdd(&netlink.Route{Dst: ipNet(netip.PrefixFrom(pool[i], pool[i].BitLen())), Gw: netip.MustParseAddr(via).AsSlice(), LinkIndex: l.Attrs().Index}))
	}
	for _, from := range w {
		expectReplies(t, from.ns, outsides, func(v6 bool) string { return "outside " + pool[map[bool]int{true: 1}[v6]].String() })
		for i, version := range []int{4, 6} {
			checkTransfer(from, there, version, 4<<20)
			if got, err := from.ping(outsides[i], 64); err != nil || got != ipv4.ICMPTypeEchoReply && got != ipv6.ICMPTypeEchoReply {
				t.Errorf("%s pings %s: %v, %v", from.port.Name, outsides[i], got, err)
			}
		}
	}
	// ICMP errors take the way of the replies.
	for _, to := range outsides {
		for _, from := range w {
			soon(t, from.port.Name+" learns that a port of "+to.String()+" is closed", func() error {
				if _, err := replied(from.ns, "udp", to, 9); !errors.Is(err, syscall.ECONNREFUSED) {
					return fmt.Errorf("the error is %v, want %v", err, syscall.ECONNREFUSED)
				}
				return nil
			})
		}
	}
}
