package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store/storetest"
)

// scaleVariable is the number of nodes in the simulated fleet; each has 100 ports.
const scaleVariable = "VROUTER_FLEET"

// TestAPortIsKnownEverywhereSoon simulates the agents of a fleet over one real
// etcd. Each follows the store, takes its slice, compiles its tables and compares
// them with the previous ones: all work of an agent except the kernel's part.
// Ports are added one after another. A port concerns the agents whose nodes have ports in its
// network. The test measures the time until all these agents have the port in their copies and
// in their tables. Then the agents follow the store, but do not compile tables. The test adds
// ports without a wait between them, and measures the work of etcd.
func TestAPortIsKnownEverywhereSoon(t *testing.T) {
	nodes, perNode, wanted, calm := 8, 50, 20, 100*time.Millisecond
	if text := os.Getenv(scaleVariable); text != "" {
		var err error
		if nodes, err = strconv.Atoi(text); err != nil || nodes < 2 {
			t.Fatalf("%s=%s is no number of nodes", scaleVariable, text)
		}
		perNode, wanted, calm = 100, 200, 20*time.Second
	}
	c := storetest.Start(t, 1, nil)
	first := simulated(t, c, "")
	apply(t, first.Fleet, largeFleet(nodes, perNode))
	agents := []*simulatedAgent{first}
	for i := range nodes {
		a := simulated(t, c, nodeName(i))
		agents = append(agents, a)
		if i%20 == 19 {
			for _, a := range agents {
				a.ready(t)
			}
		}
	}
	began := time.Now()
	for _, a := range agents[1:] {
		a.ready(t)
	}
	t.Logf("%d agents know %d ports %v after the last one started; %.0f MB each", nodes, nodes*perNode, time.Since(began).Round(time.Millisecond), heap()/float64(nodes))

	time.Sleep(calm / 2) // all agents open their watches
	idle := loadOf(c)
	time.Sleep(calm)
	rest := loadOf(c)
	t.Logf("etcd, when nothing is asked: %s", rest.since(idle))
	calmShare := rest.by(idle, cpuSeconds) / rest.at.Sub(idle.at).Seconds() * 100
	busy := loadOf(c)
	var everywhere, onNode []time.Duration
	for i := range wanted {
		at := rand.IntN(nodes)
		began := time.Now()
		p, _, err := first.AddPort(ctx(t), PortRequest{Port: model.Port{Name: fmt.Sprint("new-", i), Network: fmt.Sprintf("n%d", at), Node: nodeName(at), Origin: model.Added}})
		if err != nil {
			t.Fatal(err)
		}
		known, forwards := first.learned(t, agents[1:], p)
		everywhere, onNode = append(everywhere, known.Sub(began)), append(onNode, forwards.Sub(began))
	}
	t.Logf("a new port is in the copy of every node that needs it after p50 %v, p99 %v, and in their tables after p50 %v, p99 %v",
		quantile(everywhere, 0.5), quantile(everywhere, 0.99), quantile(onNode, 0.5), quantile(onNode, 0.99))
	t.Logf("etcd, with %d ports added: %s", wanted, loadOf(c).since(busy))
	for _, a := range agents { // from now on the agents only follow the store
		a.end()
	}
	for what, other := range map[string]int{"more of a network on a node": 0, "the first of a network on a node": 3} {
		burst := loadOf(c)
		for i := range wanted {
			made := add(t, first.Fleet, model.Port{Name: fmt.Sprint("new-", other, "-", i), Network: fmt.Sprintf("n%d", i%nodes), Node: nodeName((i + other) % nodes), Origin: model.Added})
			if i == wanted-1 {
				for _, a := range agents {
					if a.node == made.Node {
						a.Fleet.await(ctx(t), func() bool { return a.view.ports[made.Name] != nil })
					}
				}
			}
		}
		time.Sleep(time.Second) // the other agents
		now := loadOf(c)
		t.Logf("etcd, with %d ports added without a wait, %s: %s", wanted, what, now.since(burst))
		t.Logf("etcd needs %.2f ms of CPU and sends %.1f kB for each of these ports, and needs %.1f %% of a CPU when nothing is asked",
			now.by(burst, cpuSeconds)*1e3/float64(wanted), now.by(burst, "etcd_network_client_grpc_sent_bytes_total")/1e3/float64(wanted), calmShare)
	}
	if quantile(onNode, 0) == 0 {
		t.Error("a port was in no node's tables")
	}
}

// etcdLoad is the work that etcd has done up to a time.
type etcdLoad struct {
	at      time.Time
	metrics map[string]float64
}

func loadOf(c *storetest.Cluster) etcdLoad { return etcdLoad{time.Now(), c.Metrics(0)} }

const cpuSeconds = "process_cpu_seconds_total"

// by returns how much the metric with the given name has grown from the load o, which was read
// earlier, to l.
func (l etcdLoad) by(o etcdLoad, name string) float64 { return l.metrics[name] - o.metrics[name] }

func (l etcdLoad) since(o etcdLoad) string {
	by := func(name string) float64 { return l.by(o, name) }
	seconds := l.at.Sub(o.at).Seconds()
	return fmt.Sprintf("%.1f s, %.1f %% of a CPU, %.0f kB/s sent, %.0f kB/s received, %.1f proposals/s, %.1f fsyncs/s; memory %.0f MB, database %.1f MB",
		seconds, by(cpuSeconds)/seconds*100,
		by("etcd_network_client_grpc_sent_bytes_total")/seconds/1e3, by("etcd_network_client_grpc_received_bytes_total")/seconds/1e3,
		by("etcd_server_proposals_committed_total")/seconds, by("etcd_disk_wal_fsync_duration_seconds_count")/seconds,
		l.metrics["process_resident_memory_bytes"]/1e6, l.metrics["etcd_mvcc_db_total_size_in_use_in_bytes"]/1e6)
}

func nodeName(i int) string { return fmt.Sprintf("node%03d", i) }

// largeFleet has as many networks as nodes. Each network has ports on ten nodes.
func largeFleet(nodes, perNode int) (s model.State) {
	for i := range nodes {
		s.Nodes = append(s.Nodes, model.Node{Name: nodeName(i), Underlay: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, byte(2 + i>>8), byte(i)})}})
		s.Networks = append(s.Networks, model.Network{Name: fmt.Sprintf("n%d", i), ID: uint32(i + 1), Subnets: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16)}})
	}
	for i := range nodes * perNode {
		node := i % nodes
		network := (node + i/nodes%10*7) % nodes
		host := 2 + i/nodes*nodes + i%nodes
		s.Ports = append(s.Ports, model.Port{
			Name: fmt.Sprint("p", i), Network: fmt.Sprintf("n%d", network), Node: nodeName(node),
			MAC: model.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(network), byte(host >> 8), byte(host)})},
		})
	}
	return s
}

// simulatedAgent is an agent that keeps its tables in memory.
type simulatedAgent struct {
	*Fleet
	node    string
	watcher *Watcher
	end     func() // ends the work on changes

	mu      sync.Mutex
	changed *sync.Cond
	ids     fib.IDs
	tables  fib.Tables
	seen    map[string]time.Time // ports' first times in the copy
	inTable map[string]time.Time // and in the tables
	passes  int
}

// simulated starts an agent; without a node it only follows.
func simulated(t *testing.T, c *storetest.Cluster, node string) *simulatedAgent {
	t.Helper()
	agent := &simulatedAgent{Fleet: followWith(t, openEtcd(t, c), Options{Node: node}), node: node, seen: map[string]time.Time{}, inTable: map[string]time.Time{}}
	agent.changed = sync.NewCond(&agent.mu)
	agent.watcher = agent.Watcher()
	ctx, leave := context.WithCancel(context.Background())
	working, end := context.WithCancel(ctx)
	done := make(chan struct{})
	if node == "" {
		close(done)
	} else {
		go agent.Attend(ctx, node, Alive{Instance: node, Host: node}, func() {})
		go func() { defer close(done); agent.run(working) }()
	}
	agent.end = func() { end(); <-done }
	t.Cleanup(func() { leave(); <-done })
	return agent
}

func (a *simulatedAgent) run(ctx context.Context) {
	for {
		select {
		case <-a.watcher.C:
			a.pass(ctx, a.watcher.Take())
		case <-ctx.Done():
			return
		}
	}
}

// pass handles a change as an agent does.
func (a *simulatedAgent) pass(ctx context.Context, touched Touched) {
	var state *model.State
	now := time.Now()
	a.Look(ctx, func(v *View) {
		a.mu.Lock()
		for name := range v.ports {
			if _, known := a.seen[name]; !known && len(name) > 4 && name[:4] == "new-" {
				a.seen[name] = now
			}
		}
		a.mu.Unlock()
		concerned := touched.All
		for network := range touched.Networks {
			_, here := v.hosts[a.node][network]
			concerned = concerned || here
		}
		if concerned {
			s := v.Slice(a.node, nil).Whole().WithDefaults()
			state = &s
		}
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.changed.Broadcast()
	a.passes++
	if state == nil {
		return
	}
	way := func(source, destination netip.Addr) ([]fib.Path, int) {
		return []fib.Path{{Source: source, Destination: destination, Gateway: destination, Oif: 1}}, 1500
	}
	facts := fib.Facts{Ports: map[string]fib.PortFact{}, Way: way}
	for i, p := range state.Ports {
		if p.Node == a.node {
			facts.Ports[p.Name] = fib.PortFact{Ifindex: uint32(i + 1)}
		}
	}
	compiled, err := fib.Compile(state.Slice(a.node), a.node, facts, &a.ids, nil)
	if err != nil {
		panic(err)
	}
	tables := compiled.All()
	a.ids.Prune()
	for key, route := range tables.Routes {
		if a.tables.Routes[key] != route {
			a.tables.Routes = tables.Routes // the data path would be written
			break
		}
	}
	now = time.Now()
	for _, p := range state.Ports {
		if len(p.Name) > 4 && p.Name[:4] == "new-" && a.inTable[p.Name].IsZero() {
			a.inTable[p.Name] = now
		}
	}
}

// ready waits until the agent has its tables.
func (a *simulatedAgent) ready(t *testing.T) {
	t.Helper()
	if a.node == "" {
		return
	}
	a.await(t, func() bool { return a.tables.Routes != nil })
}

// learned returns the times at which a port was in the copies and in the tables of all agents
// with the port's network.
func (a *simulatedAgent) learned(t *testing.T, agents []*simulatedAgent, port model.Port) (seen, compiled time.Time) {
	t.Helper()
	hosts := map[string]bool{}
	a.Peek(func(v *View) {
		for _, p := range v.members[port.Network] {
			hosts[p.Node] = true
		}
	})
	for _, b := range agents {
		if hosts[b.node] {
			b.await(t, func() bool { return !b.inTable[port.Name].IsZero() })
			b.mu.Lock()
			seen, compiled = later(seen, b.seen[port.Name]), later(compiled, b.inTable[port.Name])
			b.mu.Unlock()
		}
	}
	return seen, compiled
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (a *simulatedAgent) await(t *testing.T, what func() bool) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, a.changed.Broadcast)
	defer timer.Stop()
	deadline := time.Now().Add(time.Minute)
	a.mu.Lock()
	defer a.mu.Unlock()
	for !what() {
		if time.Now().After(deadline) {
			t.Fatalf("agent of %s: it never came", a.node)
		}
		a.changed.Wait()
	}
}

func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Round(100 * time.Microsecond)
}

// heap is the memory in use, MB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}
