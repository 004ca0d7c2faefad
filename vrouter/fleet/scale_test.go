package fleet

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store/storetest"
)

// scaleVariable is the number of nodes in the simulated fleet; each has 100 ports.
const scaleVariable = "VROUTER_FLEET"

// TestAllNodesSoonHaveANewPort simulates the agents of a fleet over one real
// etcd. Each follows the store, takes its slice, compiles its tables and compares
// them with the previous ones: all work of an agent except the kernel's part.
// Ports are added one after another. A port concerns the agents whose nodes have ports in its
// network. The test measures the time until all these agents have the port in their copies and
// in their tables. Then the agents follow the store, but do not compile tables. The test adds
// ports without a wait between them, and measures the work of etcd.
func TestAllNodesSoonHaveANewPort(t *testing.T) {
	wanted, calm := 20, 100*time.Millisecond
	nodes, large := setting(t, scaleVariable, 8)
	if large {
		wanted, calm = 200, 20*time.Second
	}
	c := storetest.Start(t, 1, nil)
	first := simulated(t, c, "", false)
	agents := append([]*simulatedAgent{first}, simulatedFleet(t, c, first.Fleet, nodes, large)...)

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
		p, _, err := first.AddPort(ctx(t), model.PortRequest{Port: model.Port{Name: fmt.Sprint("new-", i), Network: fmt.Sprintf("n%d", at), Node: nodeName(at), Origin: model.Added}})
		must.Succeed(t, err)
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

// rateVariable is the numbers of changes per second in TestAFleetUnderSteadyChanges, separated
// by commas.
const rateVariable = "VROUTER_RATE"

// TestAFleetUnderSteadyChanges simulates the agents of a fleet as TestAllNodesSoonHaveANewPort
// does. Of manyAgents every twentieth compiles tables. Each port is added by the agent
// of its node, at a time that does not depend on the other ports. Every tenth port is the first
// of its network on its node. The test measures the time from the planned time of each port
// until all agents of its network have it.
func TestAFleetUnderSteadyChanges(t *testing.T) {
	nodes, large := setting(t, scaleVariable, 12)
	if nodes <= 10 || nodes%7 == 0 {
		t.Fatalf("%s=%d: the number must be larger than 10 and no multiple of 7, so that each network is on ten nodes", scaleVariable, nodes)
	}
	rates, length := "50", time.Second
	if large {
		rates, length = cmp.Or(os.Getenv(rateVariable), rates), 20*time.Second
	}
	c := storetest.Start(t, 1, nil)
	agents := simulatedFleet(t, c, follow(t, openEtcd(t, c)), nodes, large)
	for text := range strings.SplitSeq(rates, ",") {
		rate, err := strconv.Atoi(text)
		if err != nil || rate < 1 {
			t.Fatalf("%s: %q is not a positive number", rateVariable, text)
		}
		addSteadily(t, c, agents, rate, length)
	}
}

// plannedPort is a port that is added at a planned time.
type plannedPort struct {
	name       string // "": AddPort has failed
	due, added time.Time
	agents     []*simulatedAgent // of the nodes with ports in the port's network
}

// addSteadily adds a number of ports in each second, and logs how long they took.
func addSteadily(t *testing.T, c *storetest.Cluster, agents []*simulatedAgent, rate int, length time.Duration) {
	t.Helper()
	before, own := loadOf(c), cpuTime(t)
	start := time.Now()
	ports := make([]plannedPort, int(length.Seconds())*rate)
	var adding sync.WaitGroup
	for i := range ports {
		p := &ports[i]
		network := rand.IntN(len(agents))
		for j := range 10 {
			p.agents = append(p.agents, agents[(network+j*(len(agents)-7))%len(agents)])
		}
		on := p.agents[rand.IntN(10)]
		if i%10 == 9 {
			for slices.Contains(p.agents, on) {
				on = agents[rand.IntN(len(agents))]
			}
			p.agents = append(p.agents, on)
		}
		p.due = start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(p.due))
		adding.Go(func() {
			made, _, err := on.AddPort(ctx(t), model.PortRequest{Port: model.Port{Name: fmt.Sprintf("new-%d-%d", rate, i), Network: fmt.Sprintf("n%d", network), Node: on.node, Origin: model.Added}})
			if err != nil {
				t.Errorf("add port %d: %v", i, err)
			}
			p.name, p.added = made.Name, time.Now()
		})
	}
	adding.Wait()
	now, spent := loadOf(c), cpuTime(t)-own
	var added, copies, tables []time.Duration
	for _, p := range slices.DeleteFunc(ports, func(p plannedPort) bool { return p.name == "" }) {
		var seen, compiled time.Time
		for _, a := range p.agents {
			a.await(t, func() bool {
				if !a.knows(p.name) {
					return false
				}
				seen, compiled = later(seen, a.seen[p.name]), later(compiled, a.inTable[p.name])
				return true
			})
		}
		added, copies = append(added, p.added.Sub(p.due)), append(copies, seen.Sub(p.due))
		if !compiled.IsZero() {
			tables = append(tables, compiled.Sub(p.due))
		}
	}
	t.Logf("%d ports per second; etcd: %s; all agents together: %.1f %% of a CPU", rate, now.since(before), spent.Seconds()/now.at.Sub(before.at).Seconds()*100)
	for _, figure := range []struct {
		what string
		took []time.Duration
	}{{"AddPort returns", added}, {"the ports are in the copies", copies}, {"the ports are in the tables", tables}} {
		if len(figure.took) == 0 {
			t.Fatalf("%s: none", figure.what)
		}
		t.Logf("%s: %d, after p50 %v, p99 %v, at most %v", figure.what, len(figure.took), quantile(figure.took, 0.5), quantile(figure.took, 0.99), quantile(figure.took, 1))
	}
}

// setting returns a number from the environment.
func setting(t testing.TB, variable string, without int) (n int, set bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return without, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a positive number", variable, text)
	}
	return n, true
}

// cpuTime is the CPU time of this process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	must.Succeed(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// manyAgents are too many agents for one machine to compile the tables of all.
const manyAgents = 500

// simulatedFleet writes a fleet and starts an agent for each of its nodes. It returns when all
// agents have their tables.
func simulatedFleet(t *testing.T, c *storetest.Cluster, f *Fleet, nodes int, large bool) (agents []*simulatedAgent) {
	t.Helper()
	perNode := 50
	if large {
		perNode = 100
	}
	writing, end := context.WithTimeout(context.Background(), 2*time.Minute)
	defer end()
	began := time.Now()
	must.Succeed(t, f.Apply(writing, largeFleet(nodes, perNode)))
	t.Logf("%d ports applied in %v", nodes*perNode, time.Since(began).Round(time.Millisecond))
	without := memory()
	began = time.Now()
	for i := range nodes {
		agents = append(agents, simulated(t, c, nodeName(i), !large || nodes < manyAgents || i%20 == 0))
		if i%20 == 19 || i == nodes-1 {
			for _, a := range agents {
				a.ready(t)
			}
		}
	}
	t.Logf("%d agents know their ports of %d after %v; %.1f MB each", nodes, nodes*perNode, time.Since(began).Round(time.Millisecond), (memory()-without)/float64(nodes))
	return agents
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

// largeFleet has as many networks as nodes, at most 4,096. Each network has ports on ten nodes.
func largeFleet(nodes, perNode int) (s model.State) {
	address := func(network, host int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(network >> 4), byte(network<<4 | host>>8), byte(host)})
	}
	for i := range nodes {
		s.Nodes = append(s.Nodes, model.Node{Name: nodeName(i), Underlay: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, byte(2 + i>>8), byte(i)})}})
		s.Networks = append(s.Networks, model.Network{Name: fmt.Sprintf("n%d", i), ID: uint32(i + 1), Subnets: []netip.Prefix{netip.PrefixFrom(address(i, 0), 20)}})
	}
	for i := range nodes * perNode {
		node, n := i%nodes, i/nodes
		network := (node + n%10*7) % nodes
		s.Ports = append(s.Ports, model.Port{
			Name: fmt.Sprint("p", i), Network: fmt.Sprintf("n%d", network), Node: nodeName(node),
			MAC: model.MAC{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}, IPs: []netip.Addr{address(network, 2+n)},
		})
	}
	return s
}

// simulatedAgent is an agent that keeps its tables in memory.
type simulatedAgent struct {
	*Fleet
	node     string
	compiles bool // makes tables
	watcher  *Watcher
	end      func() // ends the work on changes

	mu      sync.Mutex
	changed *sync.Cond
	ids     fib.IDs
	slice   model.Slice
	tables  *fib.Compiled
	passes  int
	seen    map[string]time.Time // ports' first times in the copy
	inTable map[string]time.Time // and in the tables
}

// simulated starts an agent; without a node it only follows.
func simulated(t *testing.T, c *storetest.Cluster, node string, compiles bool) *simulatedAgent {
	t.Helper()
	agent := &simulatedAgent{Fleet: followWith(t, openEtcd(t, c), Options{Node: node}), node: node, compiles: compiles, seen: map[string]time.Time{}, inTable: map[string]time.Time{}}
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

// pass handles a change as an agent does, without the checks of the slice.
func (a *simulatedAgent) pass(ctx context.Context, touched Touched) {
	began := time.Now()
	concerned := touched.All
	var slice model.Slice
	a.Look(ctx, func(v *View) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for network := range touched.Networks {
			if v.hosts[a.node][network] == 0 {
				continue
			}
			concerned = true
			for _, p := range v.members[network] {
				if strings.HasPrefix(p.Name, "new-") && a.seen[p.Name].IsZero() {
					a.seen[p.Name] = began
				}
			}
		}
		if concerned && a.compiles {
			slice = v.Slice(a.node, nil)
		}
	})
	if concerned && a.compiles && ctx.Err() == nil {
		a.compile(slice)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.passes++
	a.changed.Broadcast()
}

// compile makes the tables of a slice.
func (a *simulatedAgent) compile(slice model.Slice) {
	slice.State = slice.State.WithDefaults()
	facts := fib.Facts{Ports: map[string]fib.PortFact{}, Way: func(source, destination netip.Addr) ([]layout.Path, int) {
		return []layout.Path{layout.PathOf(source, destination, destination, 1)}, 1500
	}}
	for _, n := range slice.Networks {
		for _, p := range slice.On(n.Name, a.node) {
			slice.Ports = append(slice.Ports, p.Port())
			facts.Ports[p.Name] = fib.PortFact{Ifindex: uint32(len(slice.Ports))}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	compiled, err := fib.Compile(slice, a.node, facts, &a.ids, a.tables)
	if err != nil {
		panic(err)
	}
	if a.tables != nil {
		compiled.Since(a.tables) // the entries that the data path would write
	}
	a.ids.Prune()
	now := time.Now()
	model.DiffPorts(a.slice.All, slice.All, func(was, is *model.CompactPort) {
		if was == nil && strings.HasPrefix(is.Name, "new-") {
			a.inTable[is.Name] = now
		}
	})
	a.slice, a.tables = slice, compiled
}

// ready waits until the agent has its copy and its tables.
func (a *simulatedAgent) ready(t *testing.T) {
	t.Helper()
	if a.node == "" {
		return
	}
	a.await(t, func() bool { return a.passes > 0 })
}

// knows reports whether a port is in the copy and in the tables of an agent. The caller holds mu.
func (a *simulatedAgent) knows(port string) bool {
	return !a.seen[port].IsZero() && (!a.compiles || !a.inTable[port].IsZero())
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
			b.await(t, func() bool { return b.knows(port.Name) })
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

// memory is the memory that heap and stacks use, MB.
func memory() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc+m.StackInuse) / 1e6
}
