package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
)

// members returns the number of next hops of a route in the node's tables.
func (n *node) members(route string) (int, error) {
	for _, nh := range table(n, (*api.Client).Nexthops) {
		if nh.Name == "ecmp "+route {
			return len(nh.Members), nil
		}
	}
	return 0, fmt.Errorf("there is no nexthop ecmp %s", route)
}

// A route avoids next hops on a killed node long before the node is gone. If an agent is
// stopped by SIGTERM, the route avoids its node within 3 s.
func TestARouteAvoidsADeadNode(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, options{nodes: 3})
	first := b.nodes[0]
	first.config["store"], first.config["store_listen"], first.config["store_insecure"] = "embedded", first.v4.String()+":2379", true
	for _, n := range b.nodes[1:] {
		n.config["store"] = "etcd+insecure://" + first.v4.String()
	}
	b.t.Cleanup(b.down)
	for _, n := range b.nodes {
		n.start()
	}
	a, c, d := b.nodes[0], b.nodes[1], b.nodes[2]
	b.alive(a, "a", "b", "c")
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	x, y, _ := b.connected("x", "red", 0), b.connected("y", "red", 1), b.connected("z", "red", 2)
	a.run("route", "add", "red", "10.9.0.0/24", "--port", "x", "--port", "y", "--port", "z")
	soon(t, "the ports are known", func() error { return datagram(x, y, 4, 64) })
	await := func(want int) time.Duration {
		t.Helper()
		began := time.Now()
		soon(t, fmt.Sprintf("%d next hops", want), func() error {
			if got, err := a.members("red 10.9.0.0/24"); err != nil || got != want {
				return fmt.Errorf("%d next hops, %v", got, err)
			}
			return nil
		})
		return time.Since(began)
	}
	await(3)
	d.kill(syscall.SIGTERM)
	t.Logf("the route avoids the node %v after SIGTERM", await(2))
	d.start()
	await(3)
	d.kill(syscall.SIGKILL)
	t.Logf("the route avoids the node %v after SIGKILL", await(2))
	if out := a.run("rt", "list", "--vrf", "red"); !strings.Contains(out, "10.1.0.4") {
		t.Errorf("the routes do not contain port z of the killed node:\n%s", out)
	}
	c.kill(syscall.SIGTERM) // the node still forwards
	if err := datagram(x, y, 4, 64); err != nil {
		t.Errorf("x does not reach y, whose node's agent was stopped by SIGTERM: %v", err)
	}
}

// `vrouter remove` deletes the node and its ports from the fleet. If the store is down, it
// prints the command that deletes them later.
func TestARemovedNodeLeavesTheFleet(t *testing.T) {
	t.Parallel()
	b := fleetBed(t, "10s")
	a, c := b.nodes[0], b.nodes[1]
	b.alive(a, "a", "b")
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	b.connected("x", "red", 0)
	b.connected("y", "red", 1)
	await := func(nodes, ports int) {
		t.Helper()
		soon(t, fmt.Sprintf("the fleet has %d nodes and %d ports", nodes, ports), func() error {
			gotNodes, gotPorts := answer(a, (*api.Client).Nodes), answer(a, (*api.Client).State).Ports
			if len(gotNodes) != nodes || len(gotPorts) != ports {
				return fmt.Errorf("nodes %+v, ports %+v", gotNodes, gotPorts)
			}
			return nil
		})
	}
	await(2, 2)
	if out, err := c.remove(); err != nil || out != "removed node b\ndeleted 1 port of the node from the fleet\n" {
		t.Fatalf("vrouter remove: %v\n%s", err, out)
	}
	c.agent.Wait()
	c.agent = nil
	await(1, 1)

	c.start() // next: `vrouter remove` while the agent and the store are down
	b.alive(a, "b")
	b.connected("z", "red", 1)
	await(2, 2)
	c.kill(syscall.SIGKILL)
	a.kill(syscall.SIGKILL)
	began := time.Now()
	out, err := c.remove()
	if err != nil || !strings.Contains(out, "removed node b\n") || !strings.Contains(out, "does not answer") || !strings.Contains(out, "vrouter node delete b --ports") {
		t.Errorf("vrouter remove without the store: %v\n%s", err, out)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("vrouter remove without the store took %v, want at most 10s", took)
	}
	a.start()
	if out, err := c.remove(); err != nil || !strings.Contains(out, "deleted 1 port") {
		t.Errorf("vrouter remove, again, with the store: %v\n%s", err, out)
	}
	await(1, 1)
	if out, err := exec.Command("ls", c.config["state_dir"].(string)).CombinedOutput(); err == nil {
		t.Errorf("after vrouter remove: the directory of the node's state has %s", out)
	}
}
