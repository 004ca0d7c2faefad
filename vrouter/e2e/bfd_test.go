package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/bgp"
	"windtunnel/vrouter/model"
)

// Two routers with FRR's bfdd share the flows. When bfdd of one is killed, or hangs, the session with it ends, and all
// packets take the other. When bfdd runs again, both share the flows again.
func TestBFDFindsAFailedRouter(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := bgpBed(t, 3, 2)
	b.configureBGP(model.VXLAN)
	for i := range b.state.Nodes[0].BGP.Neighbors {
		b.state.Nodes[0].BGP.Neighbors[i].BFD = model.Duration(50 * time.Millisecond)
	}
	a, prefix := b.nodes[0], "10.9.0.0/24"
	var routers []*frr
	var last [2]atomic.Int64 // when the host behind each router received its last packet
	for i, n := range b.nodes[1:] {
		f, lan, _ := evpnRouter(t, n)
		routers = append(routers, f)
		var sink net.PacketConn
		b.must(in(lan.ns, func() (err error) {
			sink, err = net.ListenPacket("udp", "10.9.0.2:7000")
			return err
		}))
		defer sink.Close()
		go func() {
			for buf := make([]byte, 64); ; {
				if _, _, err := sink.ReadFrom(buf); err != nil {
					return
				}
				last[i].Store(time.Now().UnixNano())
			}
		}()
	}
	x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.up()
	for _, f := range routers {
		f.start()
		f.run(frrBFD)
		_, err := f.vtysh("bgpd", "configure terminal", "router bgp 64512", "neighbor "+a.v4.String()+" bfd 3 50 50")
		b.must(err)
	}
	shared := func() {
		t.Helper()
		soon(t, "BFD is up, and the node uses both routers", func() error {
			all, err := ask(a, (*api.Client).BGPNeighbors)
			if err == nil && slices.ContainsFunc(all, func(n bgp.Neighbor) bool { return n.BFD != "up" || n.State != "established" }) {
				err = fmt.Errorf("the neighbours are %+v", all)
			}
			for _, v := range a.rib() {
				if err == nil && v.Destination() == prefix && v.State != bgp.Used {
					err = fmt.Errorf("BGP does not use the path %+v", v)
				}
			}
			if n := strings.Count(a.run("bgp", "rib", "--family", "evpn"), prefix); err == nil && n != 2 {
				err = fmt.Errorf("the node has %d paths to %s, want 2", n, prefix)
			}
			return err
		})
	}
	for i, step := range []struct {
		name       string
		fail, mend func(f *frr)
	}{
		{"killed", func(f *frr) { f.kill(frrBFD) }, func(f *frr) { f.run(frrBFD) }},
		{"stopped", func(f *frr) { f.daemons[frrBFD].Process.Signal(syscall.SIGSTOP) }, func(f *frr) { f.daemons[frrBFD].Process.Signal(syscall.SIGCONT) }},
	} {
		shared()
		end := x.traffic(mustAddr("10.9.0.2"), 64, 1000)
		for j := range last {
			soon(t, "both routers get packets", func() error {
				if time.Since(time.Unix(0, last[j].Load())) > time.Second {
					return fmt.Errorf("router %d gets no packets", j)
				}
				return nil
			})
		}
		failed := time.Now()
		step.fail(routers[i])
		soon(t, "the neighbour has a reason", func() error {
			all, err := ask(a, (*api.Client).BGPNeighbors)
			if err == nil && !slices.ContainsFunc(all, func(n bgp.Neighbor) bool { return n.Address == routers[i].v4 && strings.Contains(n.Reason, "BFD") }) {
				err = fmt.Errorf("the neighbours are %+v", all)
			}
			return err
		})
		soon(t, "all packets take the other router", func() error {
			if at := time.Unix(0, last[i].Load()); time.Since(at) < time.Second/2 {
				return fmt.Errorf("the router got a packet %s after it failed", at.Sub(failed))
			}
			return nil
		})
		took := time.Unix(0, last[i].Load()).Sub(failed)
		t.Logf("bfdd %s: the last packet takes the router %s later", step.name, took)
		if took > 200*time.Millisecond && os.Getenv("WINDTUNNEL_TIMING_TESTS") != "" {
			t.Errorf("packets take a router whose bfdd is %s for %s, want at most 200 ms", step.name, took)
		}
		if time.Since(time.Unix(0, last[1-i].Load())) > time.Second {
			t.Errorf("no packets take the other router")
		}
		end()
		step.mend(routers[i])
	}
	shared()
}

// Two routers run BIRD with graceful restart and BFD, and share the flows. When one BIRD is killed, BFD finds it, and all packets
// go to the other router, in spite of the graceful restart. No packet is lost. After a short hang of a BIRD, both routers share the flows again.
func TestBFDEndsAGracefulRestart(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := bgpBed(t, 3, 2)
	b.configureBGP(model.MPLSoUDP)
	a := b.nodes[0]
	b.state.Nodes[0].BGP.Families = []model.BGPFamily{model.VPNv4}
	var routers [2]*bird
	var last [2]atomic.Int64   // when each router received its last packet
	var count [2]atomic.Uint64 // packets that each router received
	for i, n := range b.nodes[1:] {
		b.state.Nodes[0].BGP.Neighbors[i].BFD = model.Duration(100 * time.Millisecond)
		var sink net.PacketConn
		b.must(in(n.ns, func() (err error) {
			sink, err = net.ListenPacket("udp", netip.AddrPortFrom(n.v4, 6635).String()) // MPLS over UDP
			return err
		}))
		defer sink.Close()
		go func() {
			for buf := make([]byte, 2048); ; {
				if _, _, err := sink.ReadFrom(buf); err != nil {
					return
				}
				last[i].Store(time.Now().UnixNano())
				count[i].Add(1)
			}
		}()
	}
	x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
	b.up()
	start := func(i int) {
		n := b.nodes[1+i]
		routers[i] = startBIRD(t, n, fmt.Sprintf(`log stderr all;
router id %[1]s;
vpn4 table vpn4tab;
protocol device {}
protocol bfd { interface "*" { interval 100 ms; multiplier 3; }; }
protocol static {
  vpn4 { table vpn4tab; };
  route %[1]s:1 10.9.0.0/24 via %[1]s mpls 300 { bgp_ext_community.add((rt, 64512, 1001)); };
}
protocol bgp node {
  local %[1]s as 64512;
  neighbor %[2]s as 64512;
  direct;
  bfd on;
  connect delay time 1; connect retry time 1; error wait time 1,2;
  graceful restart on; graceful restart time 120;
  vpn4 mpls { table vpn4tab; import all; export all; };
}
`, n.v4, a.v4))
	}
	start(0)
	start(1)
	shared := func() {
		t.Helper()
		soon(t, "BFD is up, and the node uses both routers", func() error {
			all, err := ask(a, (*api.Client).BGPNeighbors)
			if err == nil && slices.ContainsFunc(all, func(n bgp.Neighbor) bool { return n.BFD != "up" || n.State != "established" || n.Reason != "" }) {
				err = fmt.Errorf("the neighbours are %+v", all)
			}
			used := 0
			for _, v := range a.rib() {
				if v.State == bgp.Used {
					used++
				}
			}
			if err == nil && used != 2 {
				err = fmt.Errorf("the node uses %d paths, want 2", used)
			}
			return err
		})
	}
	for i, step := range []struct {
		name       string
		fail, mend func()
	}{
		{"killed", func() {
			routers[0].cmd.Process.Signal(syscall.SIGKILL)
			routers[0].cmd.Wait()
		}, func() { start(0) }},
		{"stopped", func() { routers[1].cmd.Process.Signal(syscall.SIGSTOP) }, func() { routers[1].cmd.Process.Signal(syscall.SIGCONT) }},
	} {
		shared()
		before := count[0].Load() + count[1].Load()
		end := x.traffic(mustAddr("10.9.0.2"), 64, 1000)
		for j := range last {
			soon(t, "both routers get packets", func() error {
				if time.Since(time.Unix(0, last[j].Load())) > time.Second {
					return fmt.Errorf("router %d gets no packets", j)
				}
				return nil
			})
		}
		failed := time.Now()
		step.fail()
		soon(t, "all packets take the other router", func() error {
			if at := time.Unix(0, last[i].Load()); time.Since(at) < time.Second/2 {
				return fmt.Errorf("the router got a packet %s after it failed", at.Sub(failed))
			}
			return nil
		})
		took := time.Unix(0, last[i].Load()).Sub(failed)
		t.Logf("BIRD %s: the last packet takes the router %s later", step.name, took)
		if took > 450*time.Millisecond && os.Getenv("WINDTUNNEL_TIMING_TESTS") != "" {
			t.Errorf("packets take a router whose BIRD is %s for %s, want at most 450 ms", step.name, took)
		}
		all, err := ask(a, (*api.Client).BGPNeighbors)
		b.must(err)
		for _, n := range all {
			if failed := n.Address == routers[i].v4; failed != strings.Contains(n.Reason, "BFD") || failed && n.Received > 0 {
				t.Errorf("the neighbour %s has the reason %q and %d paths; its router has failed: %v", n.Address, n.Reason, n.Received, failed)
			}
		}
		sent := end()
		soon(t, "the routers have all packets", func() error {
			if got := count[0].Load() + count[1].Load() - before; got != sent {
				return fmt.Errorf("the routers got %d of %d packets", got, sent)
			}
			return nil
		})
		begin := time.Now()
		step.mend()
		shared()
		t.Logf("BIRD runs again after it was %s: both routers are used %s later", step.name, time.Since(begin))
	}
}
