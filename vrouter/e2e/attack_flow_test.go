package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// openTenants starts two tenants with a policy and the same addresses, each with two workloads.
func openTenants(b *bed) (x, y, u, v *workload) {
	b.state.Nodes = b.nodesOf(false, model.MPLSoUDP)
	b.state.Policies = []model.Policy{open}
	for i, name := range []string{"red", "blue"} {
		b.state.Networks = append(b.state.Networks, model.Network{Name: name, ID: uint32(i + 1), Tenant: name, Policies: []string{"open"}, Subnets: subnets("10.1.0.0/16")})
	}
	x, y = b.workload("x", "red", 0, "10.1.0.10"), b.workload("y", "red", 1, "10.1.0.11")
	u, v = b.workload("u", "blue", 0, "10.1.0.10"), b.workload("v", "blue", 1, "10.1.0.11")
	b.up()
	return x, y, u, v
}

// TestOneNetworksFlowsLeaveRoomForAnothers: a workload opens more flows than the table
// has entries. Workloads of another network must still open connections.
func TestOneNetworksFlowsLeaveRoomForAnothers(t *testing.T) {
	t.Parallel()
	const flows = 3000
	b := newBed(t, options{config: map[string]any{"limits": limits(map[string]int{"flows": flows})}})
	x, y, u, v := openTenants(b)
	var frames [][]byte
	for port := range uint16(flows + 1000) {
		frames = append(frames, withSourcePort(udpFrame(t, x.port.MAC, model.RouterMAC, x.ip(4), y.ip(4), 7777, []byte("hello")), 34, 10000+port))
	}
	x.sendFrame(frames...)
	if drops := b.nodes[0].drops(); drops["flow_quota"] == 0 || drops["flow_table_full"] != 0 {
		t.Errorf("drops %v, want some under flow_quota and none under flow_table_full", drops)
	}
	for range 20 {
		must.Succeed(t, transfer(u, v, 4, 1<<10))
	}
}

// A workload sends a datagram to each of 45,000 ports, which is more than its quota of
// flows. Soon afterwards it must be able to open a connection, long before its flows are idle
// for too long. Connections of another network must succeed all the time.
func TestAPortThatFloodedOpensConnectionsAgain(t *testing.T) {
	const flows, datagrams = 60_000, 45_000
	b := newBed(t, options{config: map[string]any{"limits": limits(map[string]int{"flows": flows})}})
	x, y, u, v := openTenants(b)
	var over atomic.Bool
	blue := make(chan error, 1)
	go func() {
		for n := 0; !over.Load(); n++ {
			if err := transfer(u, v, 4, 1<<10); err != nil {
				blue <- fmt.Errorf("transfer %d: %w", n, err)
				return
			}
		}
		blue <- nil
	}()
	l, err := y.listen(4, 0)
	b.must(err)
	defer l.Close()
	b.must(in(x.ns, func() error {
		c, err := net.ListenPacket("udp4", "10.1.0.10:0")
		if err != nil {
			return err
		}
		defer c.Close()
		for port := range datagrams {
			c.WriteTo([]byte("hello"), &net.UDPAddr{IP: y.ip(4).AsSlice(), Port: 10_000 + port}) // ignore the error: it belongs to an earlier datagram
		}
		return nil
	}))
	end := time.Now()
	if b.nodes[0].drops()["flow_quota"] == 0 {
		t.Error("the flood did not exceed the quota of flows")
	}
	for {
		c, err := x.dialFor("tcp", l.Addr().String(), 100*time.Millisecond)
		if err == nil {
			c.Close()
			break
		}
		if time.Since(end) > 15*time.Second {
			t.Fatalf("%v after the flood the workload cannot open a connection: %v", time.Since(end), err)
		}
	}
	t.Logf("the workload opened a connection %v after the flood", time.Since(end))
	over.Store(true)
	if err := <-blue; err != nil {
		t.Errorf("a connection of the other network: %v", err)
	}
}

// A new port with the number and the address of a deleted port has none of its flows: packets
// that its policy denies do not pass.
func TestANewPortHasNoFlowsOfADeletedPort(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
	b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16")}}
	b.state.Policies = []model.Policy{{Name: "out", Rules: []model.Rule{{Direction: model.Egress, Action: model.Allow}, {Direction: model.Ingress, Action: model.Deny}}}}
	x, y := b.workload("x", "red", 0, "10.1.0.10"), b.workload("y", "red", 1, "10.1.0.11")
	b.state.Ports[0].Policies = []string{"out"}
	b.up()
	socket := func(w *workload, port uint16) net.PacketConn {
		var c net.PacketConn
		b.must(in(w.ns, func() (err error) {
			c, err = net.ListenPacket("udp", netip.AddrPortFrom(w.ip(4), port).String())
			return err
		}))
		t.Cleanup(func() { c.Close() })
		return c
	}
	sx, sy, other := socket(x, 5555), socket(y, 6666), socket(y, 6667)
	to := func(w *workload, port uint16) net.Addr {
		return net.UDPAddrFromAddrPort(netip.AddrPortFrom(w.ip(4), port))
	}
	soon(t, "send from x to y and back", func() error {
		sx.WriteTo([]byte("request"), to(y, 6666))
		if receive(sy, 1, 200*time.Millisecond) == 0 {
			return errTimeout
		}
		sy.WriteTo([]byte("reply"), to(x, 5555))
		if receive(sx, 1, 200*time.Millisecond) == 0 {
			return errTimeout
		}
		return nil
	})
	b.state.Ports = slices.DeleteFunc(b.state.Ports, func(p model.Port) bool { return p.Name == "x" })
	b.apply()
	z := b.workload("z", "red", 0, "10.1.0.10")
	b.state.Ports[len(b.state.Ports)-1].Policies = []string{"out"}
	b.apply()
	sz := socket(z, 5555)
	other.WriteTo([]byte("denied"), to(z, 5555))
	if receive(sz, 1, 500*time.Millisecond) > 0 {
		t.Error("the policy lets a packet of a new flow pass, so this test says nothing")
	}
	sy.WriteTo([]byte("denied too"), to(z, 5555))
	if receive(sz, 1, 500*time.Millisecond) > 0 {
		t.Error("port z received a packet that its policy denies: it passed by a flow of the deleted port x")
	}
}
