package e2e

import (
	"fmt"
	"net"
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
