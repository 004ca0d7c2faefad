package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// keptOpen opens a connection. The returned function sends a byte on it, and waits until the server sends it back.
func keptOpen(t *testing.T, from, to *netdev.Space, address string) func() error {
	t.Helper()
	var l net.Listener
	var c net.Conn
	must.Succeed(t, to.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	}))
	t.Cleanup(func() { l.Close() })
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	must.Succeed(t, from.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", address, 3*time.Second)
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return func() error {
		c.SetDeadline(time.Now().Add(time.Second))
		if _, err := c.Write([]byte{1}); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
}

// A group closes a port, also for connections that exist, and opens it for the addresses of an
// identity.
func TestGroupsOfPolicies(t *testing.T) {
	must.Long(t)
	b := &bed{TwoNodes: agenttest.NewFleet(t), workloads: map[string]*netdev.Space{}, nodes: map[string]*running{}}
	for _, name := range []string{"a1", "b1", "a2"} {
		b.workloads[name] = agenttest.NewSpace(t, "w"+name)
	}
	b.state = b.TwoNodes.State(b.workloads)
	var grouping atomic.Pointer[fib.Grouping]
	regroup := make(chan struct{})
	denial := func(port string, d model.Direction, remote netip.Addr, protocol uint8, destination uint16) string {
		return fmt.Sprintf("%s with %s, protocol %d, port %d: shop/closed", d, remote, protocol, destination)
	}
	for node, o := range map[string]Options{"a": {GroupDenial: denial}, "b": {GroupDenial: denial, Grouping: func(model.Slice) *fib.Grouping { return grouping.Load() }, Regroup: regroup}} {
		b.nodes[node] = startWith(t, b.Config(node), o)
		b.apply(t, node, b.state)
	}
	must.Eventually(t, "traffic between the nodes", b.traffic)
	opened := keptOpen(t, b.workloads["a1"], b.workloads["b1"], "10.7.0.11:8080")
	must.Succeed(t, opened())

	const group, friends = 5, 6
	set := func(g *fib.Grouping) {
		grouping.Store(g)
		regroup <- struct{}{}
	}
	reaches := func(from string, want bool) {
		t.Helper()
		must.Eventually(t, from+" to b1", func() error {
			err := exchange(b.workloads[from], b.workloads["b1"], "10.7.0.11")
			if want {
				return err
			}
			if err == nil {
				return errors.New("the port is open")
			}
			return nil
		})
	}
	groups := map[string]fib.Group{"b1": {Number: group, In: true}}
	set(&fib.Grouping{Revision: 1, Groups: groups})
	reaches("a1", false)
	if err := opened(); err == nil {
		t.Error("the connection from before the policy works")
	}
	must.Succeed(t, exchange(b.workloads["b1"], b.workloads["a1"], "10.7.0.10")) // the other direction
	trace := func(node, from, to string) inspect.Trace {
		t.Helper()
		got, err := b.nodes[node].client.Trace(t.Context(), api.TraceRequest{From: from, To: netip.MustParseAddr(to), Protocol: "tcp", DestinationPort: 80})
		must.Succeed(t, err)
		return got
	}
	if got, want := trace("a", "a1", "10.7.0.11").Elsewhere, "dropped on node b: policy (port b1, ingress with 10.7.0.10, protocol 6, port 80: shop/closed), unless it answers a flow of b1"; got != want {
		t.Errorf("the trace on the sender's node says %q, want %q", got, want)
	}
	log := must.Get(b.nodes["b"].client.DropLog(t.Context()))(t)
	if want := "port b1, ingress with 10.7.0.10, protocol 6, port 8080: shop/closed"; !slices.ContainsFunc(log, func(e inspect.DropEvent) bool { return e.Denied == want }) {
		t.Errorf("no drop has the words %q: %+v", want, log)
	}
	set(&fib.Grouping{Revision: 2, Groups: groups, Sets: fib.Sets{
		Identities: map[fib.RouteKey]layout.Identity{{VRF: b.state.Networks[0].ID, Prefix: netip.MustParsePrefix("10.7.0.10/32")}: {Pods: friends}},
		Allows:     map[fib.Allow]bool{{Group: group, Identity: friends, Protocol: unix.IPPROTO_TCP}: true},
	}})
	reaches("a1", true)
	reaches("a2", false)
	set(&fib.Grouping{Revision: 3, Groups: map[string]fib.Group{"b1": {Number: group, Out: true}}})
	must.Eventually(t, "a trace that names the policy", func() error {
		if got := trace("b", "b1", "10.7.0.10").Verdict; !strings.HasSuffix(got, ": port b1, egress with 10.7.0.10, protocol 6, port 80: shop/closed") {
			return errors.New(got)
		}
		return nil
	})
	// Groups that do not fit close their ports, and prevent no change of the state.
	large := map[fib.Allow]bool{}
	for i := range agenttest.TestLimits.Routes {
		large[fib.Allow{Group: group, Protocol: unix.IPPROTO_TCP, Port: uint16(i + 1), PortBits: 16}] = true
	}
	set(&fib.Grouping{Revision: 4, Groups: groups, Sets: fib.Sets{Allows: large}})
	reaches("a1", false)
	b.state.Policies = append(b.state.Policies, model.Policy{Name: "unused"})
	if done := b.apply(t, "b", b.state); !slices.ContainsFunc(done.Warnings, func(w string) bool { return strings.Contains(w, "raise limits.routes") }) {
		t.Errorf("the warnings of a change are %q, want one about limits.routes", done.Warnings)
	}
	set(nil)
	reaches("a2", true)
}
