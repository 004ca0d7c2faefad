package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// portsVariable says how many ports a node gets.
const portsVariable = "VROUTER_PORTS"

// perNamespace is how many of them share a namespace: a port's device costs what
// it costs wherever it is, a namespace much more.
const perNamespace = 50

// A node with many ports: added side by side, found again by an agent that starts
// anew, all of them reached from another node.
func TestManyPortsOnANode(t *testing.T) {
	many := number(t, portsVariable, 100)
	b := newBed(t, options{config: map[string]any{"repair_interval": "500ms", "limits": limits(map[string]int{"vifs": many + 100, "nexthops": 4*many + 1000, "routes": many + 4096})}})
	first := b.nodes[0]
	first.config["store"], first.config["store_listen"], first.config["store_insecure"] = "embedded", first.v4.String()+":2379", true
	b.nodes[1].config["store"] = "etcd+insecure://" + first.v4.String()
	for _, n := range b.nodes {
		n.config["underlay"] = []string{n.v4.String()}
	}
	t.Cleanup(b.down)
	for _, n := range b.nodes {
		n.start()
	}
	a := b.nodes[0]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/16")
	far := b.connected("far", "red", 1)
	for i := range (many + perNamespace - 1) / perNamespace {
		b.namespace(fmt.Sprint("w", i))
	}
	client := api.Dial(a.config["socket"].(string))
	defer client.Close()

	_, before := processOf(t, a)
	began := time.Now()
	ports := make([]model.Port, many)
	var adding sync.WaitGroup
	const clients = 64
	for first := range clients {
		adding.Go(func() {
			for i := first; i < many; i += clients {
				p, err := client.AddPort(context.Background(), model.PortRequest{Port: model.Port{
					Name: fmt.Sprint("p", i), Network: "red",
					Attach: model.Attachment{Netns: fmt.Sprint(b.name, "-w", i/perNamespace), Interface: fmt.Sprint("eth", i%perNamespace)},
				}})
				if ports[i] = p.Port; err != nil {
					t.Error(err)
				}
			}
		})
	}
	if adding.Wait(); t.Failed() {
		return
	}
	added := time.Since(began)

	status, cpu := processOf(t, a)
	a.kill(syscall.SIGKILL)
	restarted := time.Now()
	a.start() // it answers once it has made a pass over everything
	s := answer(a, (*api.Client).Status)
	equal := time.Since(restarted)
	t.Logf("%d ports were added in %v, with %.1f s of the agent's CPU time; its resident memory is %d MB; after a restart it had checked all ports after %v", many, added.Round(time.Millisecond), cpu-before, status.VmRSS>>20, equal.Round(time.Millisecond))
	if s.Ports != many || len(s.Problems) > 0 || s.Repairs != 0 {
		t.Errorf("it has %d ports, %d repairs, problems %v", s.Ports, s.Repairs, s.Problems)
	}
	seen := map[string]bool{}
	for _, p := range ports {
		if seen[p.IPs[0].String()] {
			t.Errorf("address %s was given twice", p.IPs[0])
		}
		seen[p.IPs[0].String()] = true
	}
	for range 20 {
		p := ports[rand.N(many)]
		w := &workload{bed: b, port: p}
		if out, err := w.command("ping", "-I", p.Attach.Interface, "-c", "1", "-W", "2", far.ip(4).String()); err != nil {
			t.Errorf("from port %s, %s: %v\n%s", p.Name, p.IPs[0], err, out)
		}
	}
}

// processOf returns the status of an agent's process, and its CPU time in seconds.
func processOf(tb testing.TB, n *node) (procfs.ProcStatus, float64) {
	tb.Helper()
	p, err := procfs.NewProc(n.agent.Process.Pid)
	must.Succeed(tb, err)
	status, err := p.NewStatus()
	must.Succeed(tb, err)
	stat, err := p.Stat()
	must.Succeed(tb, err)
	return status, stat.CPUTime()
}

// fleetPortsVariable says how many ports a fleet has, of 100 on each node.
const fleetPortsVariable = "VROUTER_FLEET_PORTS"

// An agent of a large fleet, of which it has a copy, and tables of its own share.
func TestAnAgentOfALargeFleet(t *testing.T) {
	must.Long(t)
	t.Parallel()
	const perNode = 100
	many := number(t, fleetPortsVariable, 1000)
	b := fleetBed(t, "60s")
	a, c := b.nodes[0], b.nodes[1]
	names := []string{a.name, c.name}
	b.state = model.State{Nodes: b.nodesOf(false, model.MPLSoUDP)}
	for i := len(names); i < many/perNode; i++ {
		names = append(names, fmt.Sprint("node", i))
		b.state.Nodes = append(b.state.Nodes, model.Node{Name: names[i], Underlay: addresses(fmt.Sprintf("192.0.%d.%d", i/250, i%250+1))})
	}
	for i := range names {
		b.state.Networks = append(b.state.Networks, model.Network{Name: fmt.Sprint("n", i), ID: uint32(i + 1), Subnets: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i)}), 16)}})
	}
	for i := range many {
		node := i % len(names)
		network := (node + i/len(names)%10*7) % len(names) // each network on ten nodes
		b.state.Ports = append(b.state.Ports, model.Port{
			Name: fmt.Sprint("p", i), Network: fmt.Sprint("n", network), Node: names[node],
			MAC: model.MAC{2, 1, 0, byte(i >> 16), byte(i >> 8), byte(i)}, IPs: addresses(fmt.Sprintf("10.%d.%d.%d", network, i/200+1, i%200+2)),
		})
	}
	file := b.dir + "/large.yaml"
	writeJSON(t, file, b.state)
	began := time.Now()
	a.run("apply", "-f", file)
	applied := time.Since(began)
	soon(t, "the other agent has its share", func() error {
		if s := answer(c, (*api.Client).Status); s.Ports != perNode {
			return fmt.Errorf("%d ports", s.Ports)
		}
		return nil
	})
	settled := time.Since(began)
	own, _ := processOf(t, c)
	withStore, _ := processOf(t, a)
	b.namespace("new")
	began = time.Now()
	one[api.Port](c, "port", "add", "--name", "new", "--network", "n1", "--netns", b.name+"-new")
	t.Logf("%d ports applied in %v, all there after %v; a port more takes %v; the agent's memory is %d MB, of the one with the store %d MB",
		many, applied.Round(time.Millisecond), settled.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), own.VmRSS>>20, withStore.VmRSS>>20)
}
