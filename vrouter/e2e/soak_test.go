package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// soakVariable is an environment variable: for how many seconds the clients make changes.
const soakVariable = "VROUTER_SOAK"

const (
	soakRate    = 50               // changes per second
	soakClients = 16               // clients that make changes at the same time, half of them on each node
	soakKill    = 20 * time.Second // between two kills
)

// On two nodes clients add, change and delete networks, policies, ports and routes, 50 times per
// second. Meanwhile the agent of the second node is killed again and again, each time together
// with another member of the store. Two ports that no client changes send each other packets, and
// no packet is lost. When the clients have deleted their objects, there are as many table
// entries, devices and keys in the store as before. The agent of the first node, which is never
// killed, uses no more memory.
func TestFaultsUnderSteadyChangesLeaveNothing(t *testing.T) {
	must.Long(t)
	length := time.Duration(number(t, soakVariable, 5)) * time.Second
	f := newFaultyFleet(t)
	a, c := f.nodes[0], f.nodes[1]
	a.run("network", "create", "red", "--subnet", "10.1.0.0/16")
	x, y := f.connected("x", "red", 0), f.connected("y", "red", 1)
	f.ports["x"], f.ports["y"] = x, y
	for _, n := range f.nodes {
		f.namespace("soak-" + n.name)
	}
	soon(t, "the ports reach each other", func() error { return datagram(x, y, 4, 64) })
	f.converge(t)
	before := f.counts(t)
	descriptors := openFiles(t, a.agent.Process.Pid)

	traffic := count(t, x, y)
	traffic.stream(x, y)
	var made atomic.Int64
	turns := make(chan struct{}, 10*soakRate)
	var clients sync.WaitGroup
	errs := make([]error, soakClients)
	for i := range soakClients {
		s := newSoakClient(f.nodes[i%2], i)
		defer s.Close()
		clients.Go(func() { errs[i] = s.run(turns, &made) })
	}
	began := time.Now()
	go func() {
		defer close(turns)
		for range time.Tick(time.Second / soakRate) {
			if time.Since(began) > length {
				return
			}
			select {
			case turns <- struct{}{}:
			default:
			}
		}
	}()
	var memory []uint64
	look := func() {
		status, _ := processOf(t, a)
		memory = append(memory, status.VmRSS)
	}
	kills := 0
	for ; time.Since(began) < length; kills++ {
		member := kills % len(f.etcd.Members)
		f.etcd.Kill(member)
		c.kill(syscall.SIGKILL)
		time.Sleep(500 * time.Millisecond)
		f.etcd.StartMember(member)
		c.start()
		for last := time.Now(); time.Since(last) < soakKill && time.Since(began) < length; time.Sleep(time.Second) {
			look()
		}
	}
	took := time.Since(began)
	look() // so there is at least one reading, even if the kill took the whole time
	clients.Wait()
	must.Succeed(t, errors.Join(errs...))
	traffic.lost(t)
	t.Logf("%d changes in %v, %d agents and members killed", made.Load(), took.Round(time.Second), kills)

	f.converge(t)
	soon(t, "what the clients added is gone", func() error {
		after := f.counts(t)
		if length < time.Minute { // agents delete the keys of empty places after a minute
			after[places] = before[places]
		}
		if !maps.Equal(before, after) {
			return fmt.Errorf("%v before, %v after", before, after)
		}
		return nil
	})
	if now := openFiles(t, a.agent.Process.Pid); now > descriptors+10 {
		t.Errorf("the agent of the first node has %d open files after the changes, and had %d before; at most 10 more are allowed", now, descriptors)
	}
	quarter := len(memory) / 4
	early, late := median(memory[quarter:2*quarter+1]), median(memory[3*quarter:])
	t.Logf("memory of the agent: median of the second quarter %.1f MB, of the last %.1f MB", float64(early)/1e6, float64(late)/1e6)
	if length >= 5*time.Minute && late > early*11/10 {
		t.Errorf("the agent of the first node used %d bytes in the second quarter of the time, and %d in the last: more than 10 %% more", early, late)
	}
}

func median(all []uint64) uint64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must.Succeed(t, err)
	return len(entries)
}

// counts returns the number of table entries and devices of each node, and of keys of the store.
func (f *faultyFleet) counts(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	ctx := t.Context()
	for _, n := range f.nodes {
		client := api.Dial(n.config["socket"].(string))
		defer client.Close()
		for name, list := range map[string]func() (int, error){
			"vifs":     func() (int, error) { all, err := client.Vifs(ctx, 0); return len(all), err },
			"nexthops": func() (int, error) { all, err := client.Nexthops(ctx, 0); return len(all), err },
			"routes":   func() (int, error) { all, err := client.Routes(ctx, 0); return len(all), err },
			"bridge":   func() (int, error) { all, err := client.Bridge(ctx, 0); return len(all), err },
			"labels":   func() (int, error) { all, err := client.Labels(ctx, 0); return len(all), err },
			"vnis":     func() (int, error) { all, err := client.VNIs(ctx, 0); return len(all), err },
			"devices":  func() (int, error) { all, err := f.handle(n.ns).LinkList(); return len(all), err },
		} {
			number, err := list()
			f.must(err)
			counts[n.name+" "+name] = number
		}
	}
	address, err := store.ParseAddress("etcd+insecure://" + f.etcd.Endpoints())
	f.must(err)
	s, err := store.OpenEtcd(address, store.TLS{}, f.etcd.Dial)
	f.must(err)
	defer s.Close()
	image, err := s.Read(ctx, 0, store.All, store.Under(store.Unique))
	f.must(err)
	for _, e := range image.Entries {
		if strings.HasPrefix(e.Key, "hosts/") || strings.HasSuffix(e.Key, "/last") {
			counts[places]++
		} else {
			counts["keys"]++
		}
	}
	return counts
}

// places is the name of the count of the store's keys that say which networks have ports on
// which nodes, and which addresses were allocated there last.
const places = "places"

// soakClient adds, changes and deletes its own objects, again and again.
type soakClient struct {
	*api.Client
	changes []soakChange
}

type soakChange struct {
	make func(context.Context) error
	// done is called with the error of a repeated attempt. It reports whether the error means that
	// an earlier attempt, which seemed to fail, has made the change. nil: a repeated change never
	// gives such an error
	done func(error) bool
}

func newSoakClient(n *node, number int) *soakClient {
	c := api.Dial(n.config["socket"].(string)).Within(30 * time.Second)
	name := fmt.Sprint("soak", number)
	port := func(network string, policies ...string) model.Port {
		return model.Port{Name: name + "-" + network, Network: network, Policies: policies, Attach: model.Attachment{
			Netns: n.bed.name + "-soak-" + n.name, Interface: fmt.Sprintf("%.3s%d", network, number),
		}}
	}
	policy := func(ports string) model.Policy {
		return model.Policy{Name: name, Rules: []model.Rule{{Direction: model.Ingress, Action: model.Allow, Protocol: "tcp", Ports: ports}}}
	}
	inRed, inOwn := port("red", name), port(name)
	route := model.Route{Network: "red", Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 168, byte(number), 0}), 24), Via: []model.Via{{Port: inRed.Name}}}
	network := model.Network{Name: name, Subnets: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(100 + number), 0, 0}), 24)}}
	return &soakClient{c, []soakChange{
		{func(ctx context.Context) error { _, err := c.AddNetwork(ctx, network); return err }, api.IsConflict},
		{func(ctx context.Context) error { return c.PutPolicy(ctx, policy("80")) }, nil},
		{func(ctx context.Context) error { _, err := c.AddPort(ctx, model.PortRequest{Port: inRed}); return err }, api.IsConflict},
		{func(ctx context.Context) error { _, err := c.AddPort(ctx, model.PortRequest{Port: inOwn}); return err }, api.IsConflict},
		{func(ctx context.Context) error { return c.PutRoute(ctx, route) }, nil},
		{func(ctx context.Context) error { return c.PutPolicy(ctx, policy("443")) }, nil},
		{func(ctx context.Context) error {
			_, err := c.ChangePort(ctx, inRed.Name, api.PortChange{Policies: &[]string{}})
			return err
		}, nil},
		{func(ctx context.Context) error { return c.DeleteRoute(ctx, route.Network, route.Prefix) }, api.IsNotFound},
		{func(ctx context.Context) error { _, err := c.DeletePort(ctx, inOwn.Name); return err }, api.IsNotFound},
		{func(ctx context.Context) error { _, err := c.DeletePort(ctx, inRed.Name); return err }, api.IsNotFound},
		{func(ctx context.Context) error { return c.DeletePolicy(ctx, name) }, api.IsNotFound},
		{func(ctx context.Context) error { return c.DeleteNetwork(ctx, name) }, api.IsNotFound},
	}}
}

// run waits for a value of turns before each change. When turns is closed, it makes the rest of
// the changes, the last of which delete its objects.
func (s *soakClient) run(turns <-chan struct{}, made *atomic.Int64) error {
	for {
		for i, change := range s.changes {
			if _, more := <-turns; !more && i == 0 {
				return nil
			}
			if err := change.patiently(); err != nil {
				return fmt.Errorf("change %d of the client at %s: %w", i, s.Socket(), err)
			}
			made.Add(1)
		}
	}
}

// patiently makes the change. After an error it tries again for up to a minute, because the agent
// or the store may have been killed.
func (s soakChange) patiently() (first error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := s.make(context.Background())
		if err == nil || first != nil && s.done != nil && s.done(err) {
			return nil
		}
		if first == nil {
			first = err
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("the last attempt: %w; the first attempt: %w", err, first)
		}
	}
}
