package e2e

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// drops sums a node's drops by reason. In a subtest of bed.run it counts the drops since the
// subtest began: without those of deleted ports, which have no device, and without the earlier
// ones of the underlay, which has vif 0.
func (n *node) drops() map[string]uint64 {
	n.bed.t.Helper()
	sums := map[string]uint64{}
	for _, d := range answer(n, (*api.Client).Drops) {
		if d.Vif == 0 {
			d.Packets -= n.dropped[d.Reason]
		} else if n.dropped != nil && d.Device == "" {
			continue
		}
		if d.Packets > 0 {
			sums[d.Reason] += d.Packets
		}
	}
	return sums
}

// Two tenants use the same addresses on the same two nodes; each reaches its
// own, and never the other's.
func TestTenantsWithTheSameAddressesAreSeparate(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	for _, encap := range encaps {
		b.run(string(encap), func(t *testing.T) {
			b.state.Nodes = b.nodesOf(false, encap)
			subnets := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/64")}
			b.state.Networks = []model.Network{{Name: "red", ID: 1, Tenant: "one", Subnets: subnets}, {Name: "blue", ID: 2, Tenant: "two", Subnets: subnets}}
			red := [2]*workload{b.workload("rx", "red", 0, "10.1.0.10", "fd00:1::10"), b.workload("ry", "red", 1, "10.1.0.11", "fd00:1::11")}
			blue := [2]*workload{b.workload("bx", "blue", 0, "10.1.0.10", "fd00:1::10"), b.workload("by", "blue", 1, "10.1.0.11", "fd00:1::11")}
			lonely := b.workload("rz", "red", 1, "10.1.0.12", "fd00:1::12")
			b.up()
			for _, version := range []int{4, 6} {
				for _, pair := range [][2]*workload{red, blue} {
					checkTransfer(pair[0], pair[1], version, 1<<20)
				}
			}
			// Only red has 10.1.0.12: blue must not reach it.
			l, err := lonely.listen(4, 0)
			must.Succeed(t, err)
			defer l.Close()
			checkTransfer(red[0], lonely, 4, 1000)
			if c, err := blue[0].dial("tcp", l.Addr().String()); err == nil {
				c.Close()
				t.Error("a workload of blue reached one of red")
			}
			if n := b.nodes[0].drops()["arp_unknown"]; n == 0 {
				t.Error("blue's question for red's address was not counted as arp_unknown")
			}
		})
	}
}

// carriers are the two ways of direct between two nodes.
var carriers = []struct {
	name          string
	routed        bool
	pair          func(b *bed) (x, y *workload)
	encapsulation model.Encapsulation
}{
	{"labels", false, func(b *bed) (x, y *workload) { return directPair(b, model.L3, model.VXLAN) }, model.Direct},
	{"translated", true, func(b *bed) (x, y *workload) { return routedPair(b, model.VXLAN) }, model.Translated},
}

// Two tenants use the same addresses on the same two nodes. Each reaches the workloads of its
// own network only, also without a tunnel, and with traceroute.
func TestDirectSeparatesTenantsWithTheSameAddresses(t *testing.T) {
	needs(t, "traceroute")
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sharedBed(t, options{routed: c.routed})
			b.state.Networks = []model.Network{{Name: "blue", ID: 292, Tenant: "two", Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
			blue := [2]*workload{b.workload("bx", "blue", 0, "10.1.0.10", "fd00:1::10"), b.workload("by", "blue", 1, "10.1.0.11", "fd00:1::11")}
			lonely := b.workload("z", "red", 1, "10.1.0.12", "fd00:1::12")
			x, y := c.pair(b)
			const n = 1 << 20
			for _, version := range []int{4, 6} {
				for _, pair := range [][2]*workload{{x, y}, {x, lonely}, blue} {
					before := b.nodes[0].sent(c.encapsulation)
					checkTransfer(pair[0], pair[1], version, n)
					if sent := b.nodes[0].sent(c.encapsulation) - before; sent < n {
						t.Errorf("IPv%d in %s: %d bytes in %s packets, want at least %d", version, pair[0].port.Network, sent, c.name, n)
					}
					out, err := pair[0].command("traceroute", "-n", "-N", "1", "-q", "3", "-w", "2", "-m", "4", pair[1].ip(version).String())
					if hops := strings.Split(strings.TrimSpace(out), "\n"); err != nil || len(hops) != 3 || !strings.Contains(hops[2], pair[1].ip(version).String()+" ") {
						t.Errorf("traceroute by IPv%d in %s: %v\n%s", version, pair[0].port.Network, err, out)
					}
				}
				l, err := lonely.listen(version, 0)
				b.must(err)
				defer l.Close()
				if conn, err := blue[0].dialFor("tcp", l.Addr().String(), time.Second); err == nil {
					conn.Close()
					t.Errorf("IPv%d: a workload of blue reaches one of red", version)
				}
			}
		})
	}
}

// Without a tunnel, a workload's policy decides which flows reach it, and lets the replies to its
// own flows pass.
func TestPoliciesApplyWithoutATunnel(t *testing.T) {
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sharedBed(t, options{routed: c.routed})
			b.state.Policies = []model.Policy{{Name: "only", Rules: []model.Rule{
				{Direction: model.Ingress, Action: model.Allow, Remote: netip.MustParsePrefix("10.1.0.10/32")},
				{Direction: model.Ingress, Action: model.Allow, Remote: netip.MustParsePrefix("fd00:1::10/128")},
			}}}
			z := b.workload("z", "red", 0, "10.1.0.12", "fd00:1::12")
			x, y := c.pair(b)
			for i := range b.state.Ports {
				if p := &b.state.Ports[i]; p.Name == "y" {
					p.Policies = []string{"only"}
				}
			}
			b.apply()
			before := b.nodes[0].sent(c.encapsulation)
			for _, version := range []int{4, 6} {
				for _, ends := range [][2]*workload{{x, y}, {y, x}, {y, z}} {
					checkTransfer(ends[0], ends[1], version, 1<<20)
				}
				denied := b.nodes[1].drops()["policy"]
				l, err := y.listen(version, 0)
				b.must(err)
				defer l.Close()
				if conn, err := z.dialFor("tcp", l.Addr().String(), time.Second); err == nil {
					conn.Close()
					t.Errorf("workload z reaches workload y by IPv%d, which y's policy denies", version)
				}
				if n := b.nodes[1].drops()["policy"]; n == denied {
					t.Errorf("IPv%d: node b counts %d drops with the reason policy, as before", version, n)
				}
			}
			if sent := b.nodes[0].sent(c.encapsulation) - before; sent < 2<<20 {
				t.Errorf("node a has sent %d bytes in %s packets, want at least the 2 MiB of x's transfers", sent, c.name)
			}
		})
	}
}

// A workload that lies about who it is is not heard.
func TestASpoofedSourceIsDroppedUnderItsReason(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	must.Succeed(t, datagram(x, y, 4, 64))
	before := b.nodes[0].drops()
	err := in(x.ns, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		packet := []byte{0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 0, 99, 10, 1, 0, 11, 0, 9, 0, 9, 0, 8, 0, 0}
		for range 5 {
			if err := unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: [4]byte{10, 1, 0, 11}}); err != nil {
				return err
			}
		}
		return nil
	})
	must.Succeed(t, err)
	b.nodes[0].dropsUntil(map[string]uint64{"spoofed_ip": before["spoofed_ip"] + 5})
	soon(t, "the drop log shows the packet", func() error {
		if log := b.nodes[0].run("dropstats", "--log"); !containsAll(log, "spoofed_ip", "10.1.0.99", "10.1.0.11") {
			return errors.New(log)
		}
		return nil
	})
}

// Overlay packets of a host that is no node are refused, and let in when any
// source may send.
func TestAnUnknownUnderlaySourceIsRefusedWhenStrict(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{nodes: 3, bare: 1})
	b.state.Nodes = b.nodesOf(false, model.MPLSoUDP)[:2]
	b.state.Networks = []model.Network{{Name: "red", ID: 1, Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}}
	stranger := b.nodes[2]
	b.workload("x", "red", 0, "10.1.0.10")
	y := b.workload("y", "red", 1, "10.1.0.11")
	b.up()
	heard := y.hearing(t, 7777)
	// Label 18 is network 1's; from 10.1.0.10:9 to 10.1.0.11:7777 "hi".
	inner := []byte{0x45, 0, 0, 30, 0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 0, 10, 10, 1, 0, 11, 0, 9, 0x1e, 0x61, 0, 10, 0, 0, 'h', 'i'}
	fixIPv4(inner)
	send := func() {
		err := in(stranger.ns, func() error {
			c, err := net.Dial("udp", netip.AddrPortFrom(b.nodes[1].v4, 6635).String())
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(append([]byte{0, 1, 0x21, 64}, inner...))
			return err
		})
		must.Succeed(t, err)
	}
	send()
	if heard(false) {
		t.Error("a stranger's packet was delivered")
	}
	if n := b.nodes[1].drops()["unknown_source"]; n != 1 {
		t.Errorf("%d drops under unknown_source, want 1", n)
	}
	b.state.Settings.AnySource = true
	b.apply()
	send()
	if !heard(true) {
		t.Errorf("with any_source a stranger may send: %v", b.nodes[1].drops())
	}
}

func fixIPv4(b []byte) {
	var s uint32
	for i := 0; i < 20; i += 2 {
		s += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	b[10], b[11] = byte(^s>>8), byte(^s)
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}
