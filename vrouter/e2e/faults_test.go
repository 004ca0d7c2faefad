package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/store/storetest"
)

// TestFaults runs tests in parallel that mostly wait, for example for the end of a lease. No
// other test runs at the same time: some of these tests count lost packets, and a busy
// machine loses packets too.
func TestFaults(t *testing.T) {
	must.Long(t)
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{ // the longest first
		{"AFleetForwardsAndConvergesAfterKills", aFleetForwardsAndConvergesAfterKills},
		{"AKilledNodeIsRemovedAfterItsLeaseAndReturnsAtOnce", aKilledNodeIsRemovedAfterItsLeaseAndReturnsAtOnce},
		{"TheStoreIsUnreachable", theStoreIsUnreachable},
		{"NoPacketIsLostWhileTheAgentIsKilledAndRestarted", noPacketIsLostWhileTheAgentIsKilledAndRestarted},
		{"AStoppedAgentDoesNotBlockACommand", aStoppedAgentDoesNotBlockACommand},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t)
		})
	}
}

// How often an agent is killed, and for how many seconds nobody reaches the
// store.
const (
	killsVariable = "VROUTER_KILLS"
	awayVariable  = "VROUTER_AWAY"
)

// faultyFleet is two nodes with a store of three members, and what ports there
// should be.
type faultyFleet struct {
	*bed
	etcd   *storetest.Cluster
	ports  map[string]*workload // that should be there, by name
	spaces map[string]*workload // all that ever were
}

func newFaultyFleet(t *testing.T) *faultyFleet {
	t.Helper()
	f := &faultyFleet{etcd: storetest.Start(t, 3, nil), ports: map[string]*workload{}, spaces: map[string]*workload{}}
	f.bed = newBed(t, options{})
	for _, n := range f.nodes {
		f.etcd.Connect(n.ns)
		n.config["store"], n.config["underlay"] = "etcd+insecure://"+f.etcd.Endpoints(), []string{n.v4.String()}
	}
	t.Cleanup(f.down)
	for _, n := range f.nodes {
		n.start()
	}
	return f
}

// patiently tries as a person would who is told that the store does not answer.
func patiently(t *testing.T, what string, try func() error) {
	t.Helper()
	soon(t, what, try)
}

// toggle adds a port on a node, or deletes it where it is there.
func (f *faultyFleet) toggle(t *testing.T, n *node, name string) {
	t.Helper()
	if w := f.ports[name]; w != nil {
		patiently(t, "delete "+name, func() error {
			_, err := n.try("port", "delete", name)
			if err != nil && strings.Contains(err.Error(), "there is no port") {
				err = nil // an attempt before this one did it
			}
			return err
		})
		delete(f.ports, name)
		return
	}
	w := f.spaces[name]
	if w == nil {
		w = &workload{bed: f.bed, ns: f.namespace(name)}
		f.spaces[name] = w
	}
	patiently(t, "add "+name, func() error {
		out, err := n.try("port", "add", "--name", name, "--network", "red", "--netns", f.name+"-"+name, "-o", "json")
		if err != nil {
			return err
		}
		var p api.Port
		decode(t, out, &p)
		w.port = p.Port
		return nil
	})
	f.ports[name] = w
}

// converged is nil when a node knows, and forwards by, exactly the ports that
// there should be.
func (f *faultyFleet) converged(n *node) error {
	status := answer(n, (*api.Client).Status)
	if status.Store.Problem != "" || status.Store.Refused != "" || status.Store.WentBack != "" || len(status.Store.Waiting)+len(status.Problems) > 0 {
		return fmt.Errorf("node %s: %+v, problems %v", n.name, status.Store, status.Problems)
	}
	var known []string
	for _, p := range answer(n, (*api.Client).State).Ports {
		known = append(known, p.Name)
	}
	want := slices.Sorted(maps.Keys(f.ports))
	if slices.Sort(known); !slices.Equal(known, want) {
		return fmt.Errorf("node %s knows %v, want %v", n.name, known, want)
	}
	routes := map[netip.Addr]bool{}
	for _, r := range table(n, (*api.Client).Routes) {
		if r.Network == "red" && r.Destination.IsSingleIP() && r.Nexthop != 0 {
			routes[r.Destination.Addr()] = true
		}
	}
	for name, w := range f.ports {
		if !routes[w.ip(4)] {
			return fmt.Errorf("node %s has no route to %s, %s", n.name, name, w.ip(4))
		}
	}
	return nil
}

func (f *faultyFleet) converge(t *testing.T) {
	t.Helper()
	for _, n := range f.nodes {
		soon(t, "what is there is what should be", func() error { return f.converged(n) })
	}
}

// Agents are killed, and the store's members in turn, while ports come and go;
// then nobody reaches the store for a while. A stream and 10,000 datagrams a
// second pass meanwhile: none is lost, and after each fault every node works to
// what was asked for.
func aFleetForwardsAndConvergesAfterKills(t *testing.T) {
	kills, away := number(t, killsVariable, 4), time.Duration(number(t, awayVariable, 3))*time.Second
	f := newFaultyFleet(t)
	a, c := f.nodes[0], f.nodes[1]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	x, y := f.connected("x", "red", 0), f.connected("y", "red", 1)
	f.ports["x"], f.ports["y"] = x, y
	soon(t, "the ports reach each other", func() error { return datagram(x, y, 4, 64) })
	traffic := load(t, x, y)

	began := time.Now()
	for i := range kills {
		victim, other, member := f.nodes[i%2], f.nodes[1-i%2], i%len(f.etcd.Members)
		f.etcd.Kill(member)
		victim.kill(syscall.SIGKILL)
		f.toggle(t, other, fmt.Sprintf("p%d", i%5))
		victim.start()
		f.etcd.StartMember(member)
		f.converge(t)
	}
	t.Logf("%d agents and members killed in %v", kills, time.Since(began).Round(time.Second))

	f.etcd.CutOff(-1)
	gone := time.Now()
	soon(t, "it is noticed", func() error {
		for _, n := range f.nodes {
			if s := answer(n, (*api.Client).Status); s.Store.Problem == "" {
				return errors.New("node " + n.name + " still hears of the store")
			}
		}
		return nil
	})
	t.Logf("noticed after %v", time.Since(gone).Round(time.Millisecond))
	if _, err := a.try("port", "add", "--network", "red", "--netns", f.name+"-x", "--interface", "eth1"); err == nil {
		t.Error("a port was added without a store")
	}
	time.Sleep(away - time.Since(gone))
	for _, n := range f.nodes { // they may start anew meanwhile
		n.kill(syscall.SIGKILL)
		f.must(n.launch())
	}
	for _, n := range f.nodes {
		n.await()
	}
	f.etcd.Rejoin(-1)
	back := time.Now()
	f.toggle(t, c, "late")
	f.converge(t)
	t.Logf("%v after the store was back a port was added, and known everywhere", time.Since(back).Round(time.Millisecond))
	soon(t, "it is reached", func() error { return datagram(x, f.ports["late"], 4, 64) })
	traffic.lost(t)
}
