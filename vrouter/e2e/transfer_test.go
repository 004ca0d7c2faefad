package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

var encaps = []model.Encapsulation{model.MPLSoGRE, model.MPLSoUDP, model.VXLAN}

// pair is two workloads of one network on two nodes.
func pair(b *bed, forwarding model.Forwarding, v6 bool, encap model.Encapsulation) (x, y *workload) {
	b.state.Nodes = b.nodesOf(v6, encap)
	b.state.Networks = []model.Network{{
		Name: "red", ID: 1, VNI: 1001, Forwarding: forwarding,
		Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/64")},
	}}
	x = b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	y = b.workload("y", "red", 1, "10.1.0.11", "fd00:1::11")
	b.up()
	return x, y
}

// Every encapsulation, as IP and as Ethernet payload, over both underlays, with
// superpackets and with software GSO, carries every byte unchanged both ways.
func TestBulkTransfersArriveIntact(t *testing.T) {
	must.Long(t)
	for _, offload := range []string{"none", "tcp", "tunnel"} {
		t.Run(offload, func(t *testing.T) {
			t.Parallel()
			b := sharedBed(t, options{offload: offload})
			for _, encap := range encaps {
				for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
					for _, v6 := range []bool{false, true} {
						if v6 && offload == "tcp" {
							continue // the other two span it
						}
						b.run(fmt.Sprintf("%s/%s/underlay-v6=%v", encap, forwarding, v6), func(t *testing.T) {
							x, y := pair(b, forwarding, v6, encap)
							for _, version := range []int{4, 6} {
								n := bulk
								if version == 6 || v6 {
									n = bulk / 4
								}
								checkTransfer(x, y, version, n)
								checkTransfer(y, x, version, n)
							}
						})
					}
				}
			}
		})
	}
}

// Datagrams from one byte to the largest, most of them in fragments.
func TestDatagramsOfEverySizeComeBack(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	for _, encap := range encaps {
		b.run(string(encap), func(t *testing.T) {
			x, y := pair(b, model.L3, false, encap)
			for _, version := range []int{4, 6} {
				for _, n := range []int{1, 64, 1000, 1400, 1473, 4096, 9000, 32768, 65000} {
					if err := datagram(x, y, version, n); err != nil {
						t.Errorf("IPv%d: %v", version, err)
					}
				}
			}
		})
	}
}

// train sends datagrams as one superpacket (UDP_SEGMENT), as QUIC does, and returns how many arrive.
func train(t *testing.T, from, to *workload, version, datagrams int) int {
	t.Helper()
	const size = 1000
	var server net.PacketConn
	from.bed.must(in(to.ns, func() (err error) {
		server, err = net.ListenPacket("udp", netip.AddrPortFrom(to.ip(version), 0).String())
		return err
	}))
	defer server.Close()
	c, err := from.dial("udp", server.LocalAddr().String())
	from.bed.must(err)
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	from.bed.must(err)
	from.bed.must(raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, size)
	}))
	from.bed.must(err)
	_, err = c.Write(make([]byte, datagrams*size-1)) // the last datagram is shorter
	from.bed.must(err)
	return receive(server, datagrams, time.Second)
}

// A superpacket of datagrams arrives by every encapsulation, also where the underlay carries it whole.
func TestTrainsOfDatagramsArrive(t *testing.T) {
	must.Long(t)
	t.Parallel()
	check := func(t *testing.T, b *bed, x, y *workload) {
		z := b.workload("z", "red", 0, "10.1.0.12", "fd00:1::12")
		b.apply()
		for _, version := range []int{4, 6} {
			for _, to := range []*workload{y, z} {
				b.must(datagram(x, to, version, 64)) // neighbours resolved
				if n := train(t, x, to, version, 8); n != 8 {
					t.Errorf("IPv%d to %s: %d of 8 datagrams arrived; drops %v %v", version, to.port.Name, n, b.nodes[0].drops(), b.nodes[1].drops())
				}
			}
		}
	}
	for _, offload := range []string{"tunnel", "tcp", "none"} {
		b := sharedBed(t, options{offload: offload, config: map[string]any{"xdp": "off"}})
		b.run(offload+"/direct", func(t *testing.T) {
			x, y := directPair(b, model.L3, model.VXLAN)
			check(t, b, x, y)
		})
		for _, encap := range encaps {
			for _, v6 := range []bool{false, true} {
				for _, forwarding := range []model.Forwarding{model.L3, model.L2} {
					if offload != "tunnel" && (forwarding == model.L2 || v6) {
						continue // superpackets that are carried whole span these
					}
					b.run(fmt.Sprintf("%s/%s/underlay-v6=%v/%s", offload, encap, v6, forwarding), func(t *testing.T) {
						x, y := pair(b, forwarding, v6, encap)
						check(t, b, x, y)
					})
				}
			}
		}
	}
}

// The loopback device of a new namespace is down. There the kernel cuts superpackets, so agents set it up.
func TestTheLoopbackDeviceIsSetUp(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{config: map[string]any{"xdp": "off", "repair_interval": "200ms"}})
	down := func() {
		for _, n := range b.nodes {
			n.ip("link set lo down")
		}
	}
	down()
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	check := func() error {
		if err := datagram(x, y, 4, 64); err != nil {
			return err
		}
		if n := train(t, x, y, 4, 8); n != 8 {
			return fmt.Errorf("%d of 8 datagrams arrived", n)
		}
		return nil
	}
	b.must(check())
	down()
	soon(t, "trains of datagrams arrive after lo was set down", check)
}

// tunnelled makes VXLAN devices of two workloads, with the workloads' addresses of an IP version as the
// ends, and returns the workloads with addresses of these devices.
func tunnelled(t *testing.T, x, y *workload, version int) (tx, ty *workload) {
	t.Helper()
	end := func(w, far *workload, address string) *workload {
		for _, args := range [][]string{
			{"link", "add", "name", "tun", "type", "vxlan", "id", "99", "dstport", "8472", "local", w.ip(version).String(), "remote", far.ip(version).String()},
			{"addr", "add", address + "/24", "dev", "tun"},
			{"link", "set", "tun", "mtu", "1280", "up"},
		} {
			if out, err := w.command("ip", args...); err != nil {
				t.Fatalf("ip %v: %v: %s", args, err, out)
			}
		}
		t.Cleanup(func() { w.command("ip", "link", "del", "tun") })
		return &workload{bed: w.bed, ns: w.ns, port: model.Port{Name: "tunnel of " + w.port.Name, IPs: addresses(address)}}
	}
	return end(x, y, "172.20.0.1"), end(y, x, "172.20.0.2")
}

// Workloads that have an overlay of their own, such as Kubernetes in containers, send superpackets that
// already have the headers of a tunnel.
func TestTunnelsOfWorkloadsCarryBulkTransfers(t *testing.T) {
	must.Long(t)
	t.Parallel()
	check := func(t *testing.T, b *bed, x, y *workload, version int) {
		tx, ty := tunnelled(t, x, y, version)
		for _, pair := range [][2]*workload{{tx, ty}, {ty, tx}} {
			checkTransfer(pair[0], pair[1], 4, 1<<20)
		}
	}
	for _, offload := range []string{"tunnel", "none"} {
		b := sharedBed(t, options{offload: offload})
		b.run(offload+"/direct", func(t *testing.T) {
			x, y := directPair(b, model.L3, model.VXLAN)
			check(t, b, x, y, 4)
		})
		for _, encap := range encaps {
			for i, forwarding := range []model.Forwarding{model.L3, model.L2} {
				v6 := (offload == "none") != (forwarding == model.L2)
				b.run(fmt.Sprintf("%s/%s/underlay-v6=%v/%s", offload, encap, v6, forwarding), func(t *testing.T) {
					x, y := pair(b, forwarding, v6, encap)
					check(t, b, x, y, []int{4, 6}[i])
				})
			}
		}
	}
}

// Both nodes must count the same number of packets. On the receiver's node, superpackets have no number of segments after
// decapsulation.
func TestBothNodesCountTheSegmentsOfSuperpackets(t *testing.T) {
	for _, encap := range encaps {
		t.Run(string(encap), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, options{offload: "tunnel"})
			x, y := pair(b, model.L3, false, encap)
			for _, version := range []int{4, 6} {
				sent, received := b.nodes[0].vif("x").RxPackets, b.nodes[1].vif("y").TxPackets
				must.Succeed(t, transfer(x, y, version, 4<<20))
				sent, received = b.nodes[0].vif("x").RxPackets-sent, b.nodes[1].vif("y").TxPackets-received
				if sent < 4<<20/1500 || received < sent*98/100 || received > sent*102/100 { // a late packet can count for only one node
					t.Errorf("IPv%d: node a counted %d packets from x, and node b %d packets to y, want equal numbers", version, sent, received)
				}
			}
		})
	}
}
