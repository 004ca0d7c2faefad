package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/screen"
	"windtunnel/internal/setup"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/service"
)

// servedBed is a bed whose workloads reach services.
type servedBed struct {
	*bed
	options map[string]Options                // of the agents, by node
	given   map[string]chan []service.Service // services for an agent, by node
	done    chan error                        // its answers
}

func newServedBed(t *testing.T, encap model.Encapsulation) *servedBed {
	t.Helper()
	if _, err := exec.LookPath("iptables-restore"); err != nil {
		t.Skip("iptables is not installed")
	}
	b := &servedBed{&bed{TwoNodes: agenttest.NewFleet(t), workloads: map[string]*netdev.Space{}, nodes: map[string]*running{}}, map[string]Options{}, map[string]chan []service.Service{}, make(chan error)}
	for _, name := range []string{"a1", "b1", "a2"} {
		b.workloads[name] = agenttest.NewSpace(t, "w"+name)
	}
	b.state = b.TwoNodes.State(b.workloads, encap)
	b.state.Networks[0].NodeAccess = true
	for _, node := range []string{"a", "b"} {
		given := make(chan []service.Service)
		b.given[node] = given
		b.options[node] = Options{Services: func(ctx context.Context, set func([]service.Service) error) {
			for {
				select {
				case all := <-given:
					b.done <- set(all)
				case <-ctx.Done():
					return
				}
			}
		}}
		b.nodes[node] = startWith(t, b.Config(node), b.options[node])
		b.apply(t, node, b.state)
	}
	must.Eventually(t, "traffic between the nodes", b.traffic)
	return b
}

// set gives both agents the services.
func (b *servedBed) set(t *testing.T, all ...service.Service) {
	t.Helper()
	for _, given := range b.given {
		given <- all
		must.Succeed(t, <-b.done)
	}
}

// greeters starts a server in a namespace. It answers each connection with a word and the client's address.
func greeters(t *testing.T, s *netdev.Space, word string, at ...string) {
	t.Helper()
	for _, address := range at {
		var l net.Listener
		must.Succeed(t, s.Do(func() (err error) {
			l, err = net.Listen("tcp", address)
			return err
		}))
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
				c.Write([]byte(word + " " + from.String()))
				c.Close()
			}
		}()
	}
}

// greeting connects to an address, and returns the server's answer.
func greeting(from *netdev.Space, address string) (said string, err error) {
	err = from.Do(func() error {
		c, err := net.DialTimeout("tcp", address, 3*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		buffer := make([]byte, 64)
		n, err := c.Read(buffer)
		said = string(buffer[:n])
		return err
	})
	return said, err
}

// survivors opens connections of a1 to services with a backend on b1, and restarts the agent of a1's node: on
// the same maps, on maps of other sizes, and on those of another layout. No agent is told of the services.
func (b *servedBed) survivors(t *testing.T) (all []*conversation) {
	t.Helper()
	connect := func() {
		t.Helper()
		for address, backend := range map[string]string{"10.96.0.10:80": "10.7.0.11:8080", "[fd96::10]:80": "[fd07::11]:8080"} {
			all = append(all, converseAt(t, b.workloads["a1"], b.workloads["b1"], address, backend))
		}
		for _, talk := range all {
			must.Succeed(t, talk.say())
		}
	}
	connect()
	c := b.nodes["a"].config
	again := func(meanwhile func()) {
		t.Helper()
		b.nodes["a"].stop(t)
		meanwhile()
		b.nodes["a"] = startWith(t, c, b.options["a"])
		connect()
	}
	again(func() {})
	again(func() { c.Limits.Routes += 1000 })
	must.Succeed(t, b.nodes["a"].healthy())
	again(func() {
		old := filepath.Dir(pinned(t, c, "g*/services")[0])
		_, size, _ := strings.Cut(filepath.Base(old), "-")
		must.Succeed(t, os.Rename(old, filepath.Join(filepath.Dir(old), "g13-"+size))) // its flows and services have this layout
	})
	return all
}

// By the address of a service, a workload reaches backends on its node and on the other node, and itself as a
// backend. Each change of a service is in force at once. Connections survive a restart of the agent, and new maps.
func TestWorkloadsReachServices(t *testing.T) {
	for _, encap := range []model.Encapsulation{model.Direct, model.VXLAN} {
		t.Run(string(encap), func(t *testing.T) {
			b := newServedBed(t, encap)
			set := func(backends ...string) {
				t.Helper()
				b.set(t, served(unix.IPPROTO_TCP, 0, backends...)...)
			}
			set("10.7.0.11:8080", "[fd07::11]:8080")
			talks := b.survivors(t)
			for name, at := range map[string][]string{"a1": {"10.7.0.10:8080", "[fd07::10]:8080"}, "b1": {"10.7.0.11:8080", "[fd07::11]:8080"}} {
				greeters(t, b.workloads[name], name, at...)
			}
			says := func(from, want4, want6 string) {
				t.Helper()
				for address, want := range map[string]string{"10.96.0.10:80": want4, "[fd96::10]:80": want6} {
					if said, err := greeting(b.workloads[from], address); err != nil || said != want {
						t.Errorf("%s at %s: %q %v, want %q", from, address, said, err, want)
					}
				}
			}
			says("a1", "b1 10.7.0.10", "b1 fd07::10")  // the other node; the source address stays
			says("b1", "b1 10.96.0.10", "b1 fd96::10") // itself
			rows := must.Get(b.nodes["a"].client.Services(t.Context()))(t)
			if text := inspect.ServiceTable(rows).Render(screen.Terminal{}); len(rows) != 2 || !regexp.MustCompile(`tcp +10.96.0.10:80 +- +10.7.0.11:8080`).MatchString(text) {
				t.Errorf("%d services:\n%s", len(rows), text)
			}
			set("10.7.0.10:8080", "[fd07::10]:8080")
			for _, talk := range talks {
				must.Succeed(t, talk.say())
			}
			says("a2", "a1 10.7.0.12", "a1 fd07::12") // the same node
			says("b1", "a1 10.7.0.11", "a1 fd07::11")
			set()
			for _, address := range []string{"10.96.0.10:80", "[fd96::10]:80"} {
				if _, err := greeting(b.workloads["a1"], address); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("without a backend, a1 at %s: %v, want a refusal", address, err)
				}
			}
		})
	}
}

// Policies see a backend in place of the service, so a trace judges the packet with the backend.
func TestATraceToAServiceIsJudgedWithTheBackend(t *testing.T) {
	must.Long(t)
	b := newServedBed(t, model.VXLAN)
	o := b.options["a"]
	closed := fib.Grouping{Revision: 1, Groups: map[string]fib.Group{"a1": {Number: 5, Out: true}}}
	o.Grouping = func(model.Slice) *fib.Grouping { return &closed }
	o.GroupDenial = func(port string, d model.Direction, remote netip.Addr, protocol uint8, destination uint16) string {
		return fmt.Sprintf("%s with %s, protocol %d, port %d", d, remote, protocol, destination)
	}
	b.nodes["a"].stop(t)
	b.nodes["a"] = startWith(t, b.nodes["a"].config, o)
	b.set(t, served(unix.IPPROTO_TCP, 0, "10.7.0.11:8080", "10.7.0.11:8082", "[fd07::11]:8081")...)
	want := map[string]bool{"10.7.0.11, protocol 6, port 8080": true, "10.7.0.11, protocol 6, port 8082": true, "fd07::11, protocol 6, port 8081": true}
	got := map[string]bool{}
	for range 40 { // the data path chooses a random backend
		for _, to := range []string{"10.96.0.10", "fd96::10"} {
			trace, err := b.nodes["a"].client.Trace(t.Context(), api.TraceRequest{From: "a1", To: netip.MustParseAddr(to), Protocol: "tcp", DestinationPort: 80})
			must.Succeed(t, err)
			_, with, _ := strings.Cut(trace.Verdict, ": port a1, egress with ")
			got[with] = true
		}
	}
	must.Equal(t, want, got)
}

// If the services cannot be written to new maps, the agent tries again.
func TestServicesReachNewMapsAtALaterAttempt(t *testing.T) {
	f := agenttest.NewFleet(t)
	c, log := f.Config("a"), slog.New(slog.DiscardHandler)
	t.Cleanup(func() { removed(t, c) })
	p := must.Get(netdev.OpenPrograms(c, log, f.A, func(datapath.DropEvent) {}))(t)
	t.Cleanup(func() { p.Close() })
	a := &agent{log: log, reconciler: &reconcile.Reconciler{Programs: p}}
	all := []service.Service{{Key: service.Key{Address: netip.MustParseAddr("10.96.0.10"), Port: 80, Protocol: unix.IPPROTO_TCP}}}
	must.Succeed(t, a.setServices(all))
	renew := func() {
		t.Helper()
		must.Succeed(t, os.RemoveAll(filepath.Dir(pinned(t, c, "g*/services")[0])))
		must.Succeed(t, p.Renew())
	}
	renew()
	must.Succeed(t, p.Plane().Close())
	a.renewServices() // fails
	renew()
	must.Eventually(t, "the services in the new maps", func() error {
		a.renewServices()
		have, err := p.Plane().Services()
		if err == nil && len(have) != 1 {
			err = fmt.Errorf("%d services", len(have))
		}
		return err
	})
}

// An agent writes rules for the node's kernel if it has to, and deletes them when it is told otherwise or removed.
func TestTheNodesKernelHasRulesOfServices(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("nft is not installed; get it with: " + setup.Command("nftables"))
	}
	b := newServedBed(t, model.Direct)
	all := served(unix.IPPROTO_TCP, 0, "10.7.0.11:8080", "[fd07::11]:8080")
	for i := range all {
		all[i].Name = "shop/web"
	}
	tables := func() (n int) {
		t.Helper()
		must.Succeed(t, b.A.Once(func() error {
			out, err := exec.Command(nft, "list", "tables").Output()
			n = strings.Count(string(out), service.RulesTable)
			return err
		}))
		return n
	}
	expect := func(when string, want int) {
		t.Helper()
		if n := tables(); n != want {
			t.Errorf("%s: %d tables of services, want %d", when, n, want)
		}
	}
	restart := func(rules bool) {
		t.Helper()
		b.nodes["a"].stop(t)
		o := b.options["a"]
		o.ServiceRules = rules
		b.nodes["a"] = startWith(t, b.Config("a"), o)
		b.given["a"] <- all
		must.Succeed(t, <-b.done)
	}
	b.set(t, all...)
	expect("with kube-proxy", 0)
	restart(true)
	expect("without kube-proxy", 2)
	must.Succeed(t, b.A.Once(exec.Command(nft, "flush", "ruleset").Run))
	must.EventuallyTrue(t, "the tables come back", func() bool { return tables() == 2 })
	restart(false)
	expect("with kube-proxy again", 0)
	restart(true)
	must.Succeed(t, Remove(t.Context(), b.Config("a"), false, RemoveTimeout))
	expect("without the agent", 0)
}
