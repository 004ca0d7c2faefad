package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

// foreign adds a filter that does not belong to vrouter to a device's egress, and a
// clsact hook if there is none.
func foreign(t *testing.T, s *netdev.Space, device string) {
	t.Helper()
	l := agenttest.LinkIn(t, s, device)
	hook := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
	if err := s.Links.QdiscAdd(&netlink.Clsact{QdiscAttrs: hook}); err != nil && !errors.Is(err, unix.EEXIST) {
		t.Fatal(err)
	}
	const goOn = -1 // TC_ACT_UNSPEC
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, goOn), asm.Return()},
	})
	must.Succeed(t, err)
	defer p.Close()
	must.Succeed(t, s.Links.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          p.FD(), Name: "theirs", DirectAction: true,
	}))
}

// foreignStays reports whether the filter of foreign still exists.
func foreignStays(t *testing.T, s *netdev.Space, device string) bool {
	t.Helper()
	filters := must.Get(s.Links.FilterList(agenttest.LinkIn(t, s, device), netlink.HANDLE_MIN_EGRESS))(t)
	return slices.ContainsFunc(filters, func(f netlink.Filter) bool {
		b, ok := f.(*netlink.BpfFilter)
		return ok && b.Name == "theirs"
	})
}

// hooked reports whether a device has a clsact hook.
func hooked(t *testing.T, s *netdev.Space, device string) bool {
	t.Helper()
	all := must.Get(s.Links.QdiscList(agenttest.LinkIn(t, s, device)))(t)
	return slices.ContainsFunc(all, func(q netlink.Qdisc) bool { return q.Type() == "clsact" })
}

func classic(c *config.Config) { c.TCX = config.Off }

// leftovers lists everything of a node that still exists.
func leftovers(t *testing.T, b *bed, c config.Config, device string) []string {
	t.Helper()
	var left []string
	for _, path := range []string{c.StateDir, c.Socket, c.LockPath(), c.NodeDir()} {
		if exists(path) {
			left = append(left, path)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	must.Succeed(t, err)
	if strings.Contains(string(mounts), c.NodeDir()) {
		left = append(left, "a mount below "+c.NodeDir())
	}
	all := must.Get(netdev.Links(b.A.Links))(t)
	for _, l := range all {
		attrs := l.Attrs()
		if strings.HasPrefix(attrs.Name, netdev.HostPrefix) {
			left = append(left, "device "+attrs.Name)
		}
		if attrs.Xdp != nil && attrs.Xdp.Attached {
			left = append(left, "XDP on "+attrs.Name)
		}
		left = append(left, programsOn(t, b.A, l)...)
	}
	for name := range map[string]bool{"a1": true, "a2": true} {
		if l, err := b.workloads[name].Link("eth0"); err != nil || l != nil {
			left = append(left, "eth0 of "+name)
		}
	}
	if l, err := b.A.Link(device); err != nil || l == nil {
		left = append(left, "nothing of "+device+", which is somebody else's")
	}
	managed, _, err := (&netdev.Neighbours{Space: b.A}).List()
	must.Succeed(t, err)
	for k := range managed {
		left = append(left, "neighbour "+k.Address.String())
	}
	return left
}

// programsOn lists tcx programs and ingress filters of a device, and hooks
// without any filter.
func programsOn(t *testing.T, s *netdev.Space, l netlink.Link) (left []string) {
	t.Helper()
	name := l.Attrs().Name
	must.Succeed(t, s.Do(func() error {
		result, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: ebpf.AttachTCXIngress})
		if err == nil && len(result.Programs) > 0 {
			left = append(left, "tcx on "+name)
		}
		return nil // kernels before 6.6 have none
	}))
	filters, err := s.Links.FilterList(l, netlink.HANDLE_MIN_INGRESS)
	if err == nil && len(filters) > 0 {
		left = append(left, "filters on "+name)
	}
	return left
}

// TestRemoveLeavesNothingBehind removes nodes in every state of the agent and with
// every attach mode. Filters of other programs must stay.
func TestRemoveLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		change func(*config.Config)
		end    func(t *testing.T, r *running)
	}{
		{"the agent runs", nil, nil},
		{"the agent runs, with classic filters", classic, nil},
		{"the agent runs, with classic filters alone", classic, nil},
		{"the agent has ended", nil, func(t *testing.T, r *running) { r.stop(t) }},
		{"the agent has ended, with classic filters alone", classic, func(t *testing.T, r *running) { r.stop(t) }},
		{"the agent was killed", nil, func(t *testing.T, r *running) {
			r.stop(t)
			cmd := process(t, written(t, r.config))
			answers(t, r)
			killed(t, cmd)
		}},
		{"the state cannot be read any more", nil, func(t *testing.T, r *running) {
			r.stop(t)
			must.Succeed(t, os.WriteFile(filepath.Join(r.config.StateDir, "node.json"), []byte("{"), 0o600))
			// Whom to resolve is in it: those stay with the kernel until the device goes.
			neighboursForgotten(t, r)
		}},
		{"the pins are unmounted", nil, func(t *testing.T, r *running) {
			r.stop(t)
			must.Succeed(t, unix.Unmount(r.config.PinsDir(), unix.MNT_DETACH))
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			nodes := []string{"a"}
			if c.end == nil && c.change == nil { // beside another one's
				nodes = []string{"a", "b"}
			}
			b := newBedOf(t, func(config *config.Config) {
				if c.change != nil && config.Node == "a" {
					c.change(config)
				}
			}, nodes...)
			a := b.nodes["a"]
			alone := strings.HasSuffix(c.what, "alone")
			if !alone {
				foreign(t, b.A, "fab0")
			}
			if a.config.TCX == config.Off {
				if mode := fabricMode(t, a); mode != "xdp+clsact" || !hooked(t, b.A, "fab0") {
					t.Errorf("the fabric is served by %s", mode)
				}
			}
			if left := leftovers(t, b, a.config, "fab0"); len(left) < 10 {
				t.Fatalf("of a node that works only this is seen: %q", left)
			}
			if c.end != nil {
				c.end(t, a)
			}
			removed(t, a.config)
			if left := leftovers(t, b, a.config, "fab0"); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if !alone && !foreignStays(t, b.A, "fab0") {
				t.Error("somebody else's filter is gone")
			}
			if alone && hooked(t, b.A, "fab0") {
				t.Error("the hook of the filters is left")
			}
			if err := Remove(t.Context(), a.config, false, RemoveTimeout); err != nil {
				t.Errorf("removing again: %v", err)
			}
			if exists(a.config.LockPath()) || exists(a.config.NodeDir()) {
				t.Error("removing again left something")
			}
			if other := b.nodes["b"]; other != nil {
				must.Succeed(t, other.onItsOwn())
				removed(t, other.config)
			}
			if exists(a.config.RunDir) {
				t.Errorf("%s is left", a.config.RunDir)
			}
		})
	}
}

// onItsOwn returns nil if the agent answers and forwards for its port.
func (r *running) onItsOwn() error {
	rows, err := r.client.Vifs(context.Background(), 0)
	if err == nil && !slices.ContainsFunc(rows, func(v inspect.Vif) bool { return v.Port == "b1" }) {
		err = fmt.Errorf("vifs are %+v", rows)
	}
	return err
}

func fabricMode(t *testing.T, r *running) string {
	t.Helper()
	s := must.Get(r.client.Status(context.Background()))(t)
	if len(s.Fabric) != 1 {
		t.Fatalf("fabric devices: %+v", s.Fabric)
	}
	return s.Fabric[0].Mode
}

func neighboursForgotten(t *testing.T, r *running) {
	t.Helper()
	s, err := netdev.Open(r.config.Netns)
	must.Succeed(t, err)
	defer s.Close()
	n := &netdev.Neighbours{Space: s}
	managed, _, err := n.List()
	must.Succeed(t, err)
	n.Kept = managed
	must.Succeed(t, n.Keep(nil))
}

// TestANodeWhoseNamespaceIsDeletedCanBeRemoved removes a node after its namespace, with
// all its devices, was deleted.
func TestANodeWhoseNamespaceIsDeletedCanBeRemoved(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	must.Get(a.client.PutState(context.Background(), f.State(nil)))(t)
	a.stop(t)
	agenttest.DeleteSpace(f.A.Name)
	removed(t, a.config)
	for _, path := range []string{a.config.NodeDir(), a.config.StateDir, a.config.LockPath()} {
		if exists(path) {
			t.Errorf("%s is left", path)
		}
	}
}

// TestRemovalDeletesTheMergingDeviceToo checks that removal deletes the VXLAN device for
// GRO.
func TestRemovalDeletesTheMergingDeviceToo(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	s := f.State(nil, model.VXLAN)
	must.Get(a.client.PutState(context.Background(), s))(t)
	agenttest.LinkIn(t, f.A, netdev.GRODevice)
	removed(t, a.config)
	if l, err := f.A.Link(netdev.GRODevice); err != nil || l != nil {
		t.Errorf("after the removal device %s still exists (error %v)", netdev.GRODevice, err)
	}
}

// TestNoLimitStaysOnADevice checks that the bandwidth limit is removed from an existing device (a tap) when the port or
// the node is removed.
func TestNoLimitStaysOnADevice(t *testing.T) {
	t.Parallel()
	b := newBedOf(t, nil, "a")
	a := b.nodes["a"]
	agenttest.Joined(t, b.A, agenttest.NewSpace(t, "guest"), "tap0", "eth0", 1500)
	limited := func() bool {
		all := must.Get(b.A.Links.QdiscList(agenttest.LinkIn(t, b.A, "tap0")))(t)
		return slices.ContainsFunc(all, func(q netlink.Qdisc) bool { return q.Type() == "tbf" })
	}
	add := func() {
		t.Helper()
		must.Get(a.client.AddPort(t.Context(), model.PortRequest{Port: model.Port{
			Name: "guest", Network: "red", Attach: model.Attachment{Device: "tap0"}, Bandwidth: model.Bandwidth{Ingress: 40e6},
		}}))(t)
		must.Equal(t, true, limited())
	}
	add()
	must.Get(a.client.DeletePort(t.Context(), "guest"))(t)
	must.Equal(t, false, limited())

	for _, stopped := range []bool{false, true} {
		add()
		if stopped {
			a.stop(t)
		}
		removed(t, a.config)
		must.Equal(t, false, limited())
		a = start(t, a.config)
		b.nodes["a"] = a
		b.apply(t, "a", b.state)
	}
}

// TestRemovalDoesNotWaitForAHungAgent stops the process of an agent by a signal. The error of
// Remove must contain the process number and a remedy.
func TestRemovalDoesNotWaitForAHungAgent(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	c := f.Config("a")
	t.Cleanup(func() { removed(t, c) })
	cmd := process(t, written(t, c))
	answers(t, &running{client: api.Dial(c.Socket)})
	must.Succeed(t, cmd.Process.Signal(unix.SIGSTOP))
	err := Remove(t.Context(), c, false, 200*time.Millisecond)
	must.Fail(t, err, "remove node a: the agent (process ", "did not answer within 200ms", "--timeout", "kill the process and retry")
	killed(t, cmd)
}

// TestARequestDuringARemovalIsAnswered sends requests while the node is being removed. The first ones return rows, later ones
// the error that the node is being removed, and the last ones the error that no agent runs. No request reads closed maps.
func TestARequestDuringARemovalIsAnswered(t *testing.T) {
	t.Parallel()
	b := newBedOf(t, nil, "a")
	a := b.nodes["a"]
	asked := map[string]func(context.Context) error{
		"metrics": func(ctx context.Context) error { _, err := a.client.Metrics(ctx); return err },
		"routes":  func(ctx context.Context) error { _, err := a.client.Routes(ctx, 0); return err },
		"doctor":  func(ctx context.Context) error { _, err := a.client.Doctor(ctx); return err },
	}
	answered := map[string]*atomic.Int32{"metrics": {}, "routes": {}, "doctor": {}}
	type outcome struct {
		what string
		last error
	}
	ends := make(chan outcome)
	for what, ask := range asked {
		go func() {
			o := outcome{what: what}
			for o.last == nil {
				o.last = ask(t.Context())
				answered[what].Add(1)
			}
			ends <- o
		}()
	}
	must.Eventually(t, "answers to all", func() error {
		must.Succeed(t, b.traffic())
		for what, n := range answered {
			if n.Load() < 2 {
				return fmt.Errorf("%s was answered %d times", what, n.Load())
			}
		}
		return nil
	})
	removed(t, a.config)
	for range asked {
		o := <-ends
		var gone *api.Unreachable
		if !errors.As(o.last, &gone) && !strings.Contains(o.last.Error(), "is being removed") {
			t.Errorf("%s ended with: %v", o.what, o.last)
		}
	}
	if left := leftovers(t, b, a.config, "fab0"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
