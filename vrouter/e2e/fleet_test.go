package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
)

// fleetBed returns two nodes whose desired state is in an etcd server inside the agent of the first node. In a guest the
// lease is longer, because an agent starts more slowly there.
func fleetBed(t *testing.T, lease string) *bed {
	t.Helper()
	return fleetBedOf(t, options{config: map[string]any{"lease": (patience * must.Get(time.ParseDuration(lease))(t)).String()}})
}

func fleetBedOf(t *testing.T, o options) *bed {
	t.Helper()
	b := newBed(t, o)
	first := b.nodes[0]
	first.config["store"], first.config["store_listen"], first.config["store_insecure"] = "embedded", first.v4.String()+":2379", true
	for _, n := range b.nodes[1:] {
		n.config["store"] = "etcd+insecure://" + first.v4.String()
	}
	for _, n := range b.nodes {
		n.config["underlay"] = []string{n.v4.String()}
	}
	b.t.Cleanup(b.down)
	for _, n := range b.agents() {
		n.start()
	}
	return b
}

// connected is a workload whose port `vrouter port add` made.
func (b *bed) connected(name, network string, node int) *workload {
	b.t.Helper()
	w := &workload{bed: b, ns: b.namespace(name)}
	got := one[api.Port](b.nodes[node], "port", "add", "--name", name, "--network", network, "--netns", b.name+"-"+name)
	w.port = got.Port
	return w
}

// soon calls try until it succeeds, for at most two minutes, because a busy machine is slow. Between two calls it waits
// four times as long as the call took, and at most 400 ms, so that slow calls leave CPU time for others.
func soon(t testing.TB, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience * 2 * time.Minute)
	for {
		began := time.Now()
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(min(max(20*time.Millisecond, 4*time.Since(began)), 400*time.Millisecond))
	}
}

// What is made on one node is there on the other, and traffic flows between
// workloads whose addresses the fleet chose.
func TestTwoNodesShareOneState(t *testing.T) {
	t.Parallel()
	b := fleetBed(t, "10s")
	a, c := b.nodes[0], b.nodes[1]
	soon(t, "both nodes make themselves known", func() error {
		nodes := answer(a, (*api.Client).Nodes)
		alive := 0
		for _, n := range nodes {
			if n.Agent != nil {
				alive++
			}
		}
		if alive != 2 {
			return fmt.Errorf("%d of %d nodes are alive", alive, len(nodes))
		}
		return nil
	})
	c.run("network", "create", "red", "--subnet", "10.1.0.0/24", "--subnet", "fd00:1::/64")
	x, y := b.connected("x", "red", 0), b.connected("y", "red", 1)
	if x.ip(4) == y.ip(4) || x.ip(6) == y.ip(6) {
		t.Fatalf("both have %v and %v", x.port.IPs, y.port.IPs)
	}
	for _, version := range []int{4, 6} {
		soon(t, "the other node learns of the port", func() error { return transfer(x, y, version, 1<<20) })
	}
	for _, at := range []string{netip.AddrPortFrom(a.v4, 2379).String(), "127.0.0.1:2379"} {
		if _, err := heard(x.ns, at); err == nil {
			t.Errorf("a workload reaches the fleet's store at %s", at)
		}
	}
	_, err := a.try("network", "delete", "red")
	must.Fail(t, err, `delete network "red": it has 2 ports, x, y`)
	_, err = a.try("network", "create", "pink", "--subnet", "10.1.0.128/25")
	must.Fail(t, err, "overlaps")
	if out, err := a.remove(); err == nil || !strings.Contains(out, "other nodes use its embedded store ("+c.name+")") {
		t.Errorf("the node with the store was removed: %v %s", err, out)
	}
	// From any host: the first node's ports from the second.
	c.run("port", "delete", "x", "y")
	soon(t, "the network is free", func() error { _, err := a.try("network", "delete", "red"); return err })
}

// The store ends while traffic flows: nothing is lost, ports can be deleted, none
// added, and all is as it should be when it is back.
func theStoreIsUnreachable(t *testing.T) {
	b := fleetBed(t, "10s")
	a, c := b.nodes[0], b.nodes[1]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	x, y, z := b.connected("x", "red", 0), b.connected("y", "red", 1), b.connected("z", "red", 1)
	a.run("route", "add", "red", "10.9.0.0/24", "--port", y.port.Name)
	soon(t, "the ports reach each other", func() error { return datagram(x, y, 4, 64) })
	traffic := load(t, x, y)

	a.kill(syscall.SIGKILL) // and the store with it
	soon(t, "the other node notices", func() error {
		if s := answer(c, (*api.Client).Status); s.Store.Problem == "" {
			return fmt.Errorf("it still hears of the store: %+v", s.Store)
		}
		return nil
	})
	if out := c.run("status"); !strings.Contains(out, "not in use; the state of") {
		t.Errorf("status does not say so:\n%s", out)
	}
	if out, err := a.remove(); err == nil || !strings.Contains(out, "use --with-store") {
		t.Errorf("the node with the store was removed: %v %s", err, out)
	}
	_, err := c.try("port", "add", "--network", "red", "--netns", b.name+"-z", "--interface", "eth1")
	must.Fail(t, err, "nothing was changed")
	_, err = c.try("port", "delete", y.port.Name)
	must.Fail(t, err, "the route to 10.9.0.0/24 in network red uses it; delete the route first")
	c.run("port", "delete", z.port.Name)
	if s := answer(c, (*api.Client).Status); len(s.Store.Waiting) != 1 || s.Ports != 1 {
		t.Errorf("after a deletion: %+v, %d ports", s.Store, s.Ports)
	}
	// Its agent may start anew, and works to what it knew.
	c.kill(syscall.SIGKILL)
	c.start()
	if s := answer(c, (*api.Client).Status); s.Ports != 1 {
		t.Errorf("started without a store it has %d ports", s.Ports)
	}
	a.start()
	soon(t, "the deletion reaches the store", func() error {
		for _, p := range answer(a, (*api.Client).State).Ports {
			if p.Name == z.port.Name {
				return fmt.Errorf("%s is still there", p.Name)
			}
		}
		return nil
	})
	soon(t, "nothing waits any more", func() error {
		if s := answer(c, (*api.Client).Status); len(s.Store.Waiting) != 0 || s.Store.Problem != "" {
			return fmt.Errorf("the store is %+v, want no problem and nothing that waits", s.Store)
		}
		return nil
	})
	traffic.lost(t)
}

// A node that dies is dropped after its lease, and is back within a second.
func aKilledNodeIsRemovedAfterItsLeaseAndReturnsAtOnce(t *testing.T) {
	b := fleetBed(t, "3s")
	a, c := b.nodes[0], b.nodes[1]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	x, y := b.connected("x", "red", 0), b.connected("y", "red", 1)
	soon(t, "the ports reach each other", func() error { return datagram(x, y, 4, 64) })
	c.kill(syscall.SIGKILL)
	time.Sleep(time.Second)
	if err := datagram(x, y, 4, 64); err != nil {
		t.Errorf("within its lease: %v", err)
	}
	dropped := func() error {
		if err := datagram(x, y, 4, 64); err == nil {
			return fmt.Errorf("its port is still reached")
		}
		return nil
	}
	soon(t, "the node is dropped", dropped)
	if out := a.run("node", "list"); !strings.Contains(out, "gone") {
		t.Errorf("the list does not say so:\n%s", out)
	}
	c.start()
	began := time.Now()
	soon(t, "the node is back", func() error {
		_, err := x.command("ping", "-c", "1", "-W", "0.05", y.ip(4).String())
		return err
	})
	t.Logf("traffic came back %v after the agent answered", time.Since(began))

	// An agent that starts while another node is missing drops it as well.
	c.kill(syscall.SIGKILL)
	a.kill(syscall.SIGKILL)
	time.Sleep(patience * 4 * time.Second)
	a.start()
	soon(t, "the node is dropped after a start", dropped)
}

func TestASecondAgentOfANodeOnAnotherHostIsRefused(t *testing.T) {
	t.Parallel()
	b := fleetBedOf(t, options{nodes: 3, bare: 1, config: map[string]any{"lease": "3s"}})
	c, twin := b.nodes[1], b.nodes[2]
	soon(t, "the node is alive", func() error {
		for _, n := range answer(c, (*api.Client).Nodes) {
			if n.Name == c.name && n.Agent != nil {
				return nil
			}
		}
		return errTimeout
	})
	twin.config["node"] = c.name
	defer twin.kill(syscall.SIGKILL)
	must.Succeed(t, twin.launch())
	ended := make(chan error, 1)
	go func() { ended <- twin.agent.Wait() }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(twin.log(), "node "+c.name+" already has an agent") {
			t.Errorf("the second agent of node %s ends with %v, want an error that the node has an agent: %s", c.name, err, twin.log())
		}
		twin.agent = nil
	case <-time.After(20 * time.Second):
		t.Error("it runs")
	}
}
