package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// fault is a reason why an object cannot be in force, which the test can start and end.
type fault struct {
	object Object
	set    func(t *testing.T, on bool)
	on     bool
}

// faulty is a node with one faulty port for each kind of fault, and other ports.
type faulty struct {
	*writer
	state  model.State
	faults []*fault
	ports  []model.Port // all ports that the state can have
}

// maxPrograms is the number of programs that the kernel attaches to a tcx hook: BPF_MPROG_MAX - 1.
const maxPrograms = 63

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	w := newWriter(t, agenttest.TestLimits.Routes)
	w.publish = func() {}
	w.config.RepairInterval = time.Minute // the test makes the passes
	n := &faulty{writer: w, state: model.State{
		Settings: model.Settings{VXLANPort: 4789},
		Nodes: []model.Node{
			{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.1")}, Encapsulations: []model.Encapsulation{model.Direct, model.VXLAN}, Locator: netip.MustParsePrefix("fd00:0:0:17::/64")},
			{Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.2")}},
		},
		Networks: []model.Network{{Name: "red", ID: 7, Subnets: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/16")}}},
	}}
	home := agenttest.NewSpace(t, "w")
	for i := range 12 {
		n.addPort(fmt.Sprint("p", i), model.Attachment{Netns: home.Name, Interface: fmt.Sprint("p", i)})
	}
	for i := range 8 { // on the other node
		n.addPort(fmt.Sprint("far", i), model.Attachment{})
		n.ports[len(n.ports)-1].Node = "b"
	}
	gone := home.Name + "-gone"
	n.addFault("gone", model.Attachment{Netns: gone}, func(t *testing.T, on bool) {
		if agenttest.DeleteSpace(gone); !on {
			must.Succeed(t, agenttest.NamedSpace(t, gone).Close())
		}
	})
	n.addFault("taken", model.Attachment{Netns: home.Name, Interface: "taken0"}, func(t *testing.T, on bool) { device(t, home, "taken0", on) })
	n.addFault("none", model.Attachment{Device: "none0"}, func(t *testing.T, on bool) { device(t, n.fabric, "none0", !on) })
	device(t, n.fabric, "full0", true) // up: a device that is down would get a filter
	must.Succeed(t, n.fabric.Links.LinkSetUp(agenttest.LinkIn(t, n.fabric, "full0")))
	n.addFault("full", model.Attachment{Device: "full0"}, fullHook(t, n.fabric, "full0"))
	n.faults = append(n.faults, &fault{object: theLocator, set: func(t *testing.T, on bool) {
		must.Succeed(t, n.fabric.Do(func() error {
			return os.WriteFile("/proc/sys/net/ipv6/conf/lo/disable_ipv6", []byte(map[bool]string{true: "1", false: "0"}[on]), 0)
		}))
	}})
	n.Want = nil
	return n
}

// addPort adds a port to the ports that the state can have.
func (n *faulty) addPort(name string, attach model.Attachment) {
	i := byte(len(n.ports) + 2)
	n.ports = append(n.ports, model.Port{Name: name, Network: "red", Node: "a", MAC: model.MAC{2, 0, 0, 0, 7, i}, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 7, 0, i})}, Attach: attach})
}

// addFault adds a port that cannot be in force while set(true) is in effect.
func (n *faulty) addFault(port string, attach model.Attachment, set func(t *testing.T, on bool)) {
	n.addPort(port, attach)
	n.state.Ports = append(n.state.Ports, n.ports[len(n.ports)-1])
	n.faults = append(n.faults, &fault{object: portObject(port), set: set})
}

// device creates or deletes a device. It deletes another device with the same name.
func device(t *testing.T, s *netdev.Space, name string, exists bool) {
	t.Helper()
	l := must.Get(s.Link(name))(t)
	if l != nil {
		must.Succeed(t, s.Links.LinkDel(l))
	}
	if exists {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		must.Succeed(t, s.Links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name + "p"}))
	}
}

// fullHook attaches programs to a device until the kernel accepts no more, except the last,
// which set attaches and detaches.
func fullHook(t *testing.T, s *netdev.Space, device string) (set func(t *testing.T, on bool)) {
	t.Helper()
	index := agenttest.LinkIn(t, s, device).Attrs().Index
	attach := func() (l ebpflink.Link) {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
		must.Succeed(t, err)
		defer p.Close()
		must.Succeed(t, s.Do(func() (err error) {
			l, err = ebpflink.AttachTCX(ebpflink.TCXOptions{Interface: index, Program: p, Attach: ebpf.AttachTCXIngress})
			return err
		}))
		t.Cleanup(func() { l.Close() })
		return l
	}
	for range maxPrograms - 1 {
		attach()
	}
	var last ebpflink.Link
	return func(t *testing.T, on bool) {
		if on {
			// The program of the port may have the last place.
			must.Succeed(t, s.Do(func() error { return detachOurs(index) }))
			last = attach()
		} else if last != nil {
			must.Succeed(t, last.Close())
			last = nil
		}
	}
}

// detachOurs removes the vrouter's link from a device.
func detachOurs(index int) error {
	all, err := ebpflink.QueryPrograms(ebpflink.QueryOptions{Target: index, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return err
	}
	var errs []error
	for _, each := range all.Programs {
		p, err := ebpf.NewProgramFromID(each.ID)
		if err != nil {
			return err
		}
		info, err := p.Info()
		errs = append(errs, err, p.Close())
		id, known := each.LinkID()
		if err != nil || !known || info.Name != "from_workload" {
			continue
		}
		l, err := ebpflink.NewFromID(id)
		if err != nil {
			return err
		}
		errs = append(errs, l.Detach(), l.Close())
	}
	return errors.Join(errs...)
}

func (n *faulty) adopt(t *testing.T) {
	t.Helper()
	s := n.state.WithDefaults()
	must.Succeed(t, s.Validate())
	if n.Want == nil {
		n.Want = NewDesired("a", model.Slice{}, &fib.IDs{}, nil)
		n.IDs = &fib.IDs{}
	}
	must.Succeed(t, n.Adopt(NewDesired("a", s.Slice("a"), n.IDs, n.Want)))
}

// startAgain makes the reconciler that of an agent that has just started.
func (n *faulty) startAgain() {
	old := n.Reconciler
	old.Close()
	n.Reconciler = New(old.config, old.log, old.space, old.Programs, old.Want, old.IDs, old.publish)
	n.Pass(Starting)
}

// change changes one thing of the desired state.
func (n *faulty) change(t *testing.T, r *rand.Rand) {
	t.Helper()
	n.state.Ports = slices.Clone(n.state.Ports)
	has := map[string]int{}
	for i, p := range n.state.Ports {
		has[p.Name] = i
	}
	which := r.IntN(len(n.ports))
	p := n.ports[which]
	switch at, is := has[p.Name]; {
	case !is:
		n.state.Ports = append(n.state.Ports, p)
	case r.IntN(2) == 0 && p.Attach.Device == "": // a fault needs its port
		n.state.Ports[at].IPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 7, byte(1 + r.IntN(200)), byte(which + 1)})} // no other port gets it
	case strings.HasPrefix(p.Name, "p") || strings.HasPrefix(p.Name, "far"):
		n.state.Ports = slices.Delete(n.state.Ports, at, at+1)
	}
	n.adopt(t)
}

// check compares the maps with tables that are compiled without an earlier result.
func (n *faulty) check(t *testing.T) {
	t.Helper()
	f := n.Last.facts
	compiled := must.Get(f.compile(n.Want, numbers(n.Limits), true, nil))(t)
	got := must.Get(n.Plane().Dump())(t)
	if d := cmp.Diff(nameless(compiled.All()), got, sameAddresses); d != "" {
		t.Fatalf("the maps are not the tables (-want +got):\n%s", d)
	}
}

// settled attempts again the objects whose next attempt is due. It returns nil if all objects
// with a fault have failed, and no others.
func (n *faulty) settled() error {
	n.RetrySoon()
	if wait, due := n.NextRetry(); due {
		time.Sleep(wait)
		n.Pass(Retrying)
	}
	want, got := map[Object]bool{}, map[Object]bool{}
	for _, f := range n.faults {
		if f.on {
			want[f.object] = true
		}
	}
	for o := range n.Last.Failures {
		got[o] = true
	}
	if !maps.Equal(want, got) {
		return fmt.Errorf("failures are %v, want %v", n.Last.Failures, want)
	}
	for _, p := range n.Want.Ports {
		if d := n.Last.Devices[p.Name]; d == nil && !got[portObject(p.Name)] {
			return fmt.Errorf("port %s has no device", p.Name)
		}
	}
	return nil
}

// TestFailuresOfSingleObjectsDoNotAffectTheOthers starts and ends faults at random, between
// single changes, passes and restarts. After each step the maps must be equal to the tables of
// the desired state and the present devices. When the faults no longer change, exactly the
// objects with faults must fail. At the end no object may fail.
func TestFailuresOfSingleObjectsDoNotAffectTheOthers(t *testing.T) {
	t.Parallel()
	n := newFaulty(t)
	defer func() { n.Close() }()
	for _, f := range n.faults {
		f.set(t, false)
	}
	n.adopt(t)
	r := rand.New(rand.NewPCG(3, 5))
	failed, partial := map[Object]bool{}, 0
	for i := range statesWanted(t, 100) {
		switch step := r.IntN(10); {
		case step < 3:
			f := n.faults[r.IntN(len(n.faults))]
			f.on = !f.on
			f.set(t, f.on)
		case step < 7:
			n.change(t, r)
		case step < 8:
			n.startAgain()
		default:
			n.Pass([]Cause{Retrying, Noticing, Looking}[r.IntN(3)])
			if n.Comparison.running {
				n.Compared(<-n.Comparison.Done)
			}
		}
		if n.check(t); i%10 == 0 {
			n.Pass(Noticing) // a fault that starts is an event of the kernel
			must.Eventually(t, fmt.Sprintf("step %d", i), n.settled)
			n.check(t)
			partial += len(n.Last.left)
			for o := range n.Last.Failures {
				failed[o] = true
			}
		}
	}
	for _, f := range n.faults {
		if !failed[f.object] {
			t.Errorf("%v never failed", f.object)
		}
		f.set(t, false)
		f.on = false
	}
	must.Eventually(t, "all objects in force", n.settled)
	n.check(t)
	if partial == 0 {
		t.Error("no retry left the other ports alone")
	}
}

// TestARetryChecksOnlyTheFailedObject has 12 ports of which one fails. The waits between the
// attempts must grow, and the attempts must not check the other ports. A change of another port
// must not try the failed port again before its time.
func TestARetryChecksOnlyTheFailedObject(t *testing.T) {
	t.Parallel()
	n := newFaulty(t)
	defer func() { n.Close() }()
	n.state.Ports = append(slices.Clone(n.ports[:11]), n.state.Ports[0])
	gone := portObject("gone")
	n.adopt(t)
	for tries := 1; tries < 5; tries++ {
		f := n.Last.Failures[gone]
		wait := firstRetry << (f.Tries - 1) // on a busy machine, changes may have made more attempts than retries
		if left := f.Next.Sub(f.tried); f.Tries < tries || left < wait/2 || left > wait || len(n.Last.Failures) != 1 {
			t.Fatalf("after %d attempts the next one is in %v, want %v to %v: %+v", tries, left, wait/2, wait, n.Last.Failures)
		}
		if due, is := n.NextRetry(); !is || due > wait {
			t.Errorf("the next pass for retries is in %v (%v), want at most %v", due, is, wait)
		}
		n.Pass(Retrying)
		n.state.Ports = slices.Clone(n.state.Ports)
		n.state.Ports[0].IPs = []netip.Addr{netip.AddrFrom4([4]byte{10, 7, 1, byte(tries)})}
		n.adopt(t)
		if again := n.Last.Failures[gone]; time.Now().Before(f.Next) && again.Tries != f.Tries {
			t.Errorf("the port was tried again before its time: %+v", again)
		}
		time.Sleep(time.Until(f.Next))
		n.Pass(Retrying)
		must.Equal(t, 11, len(n.Last.left))
	}
	n.faults[0].set(t, false)
	n.RetrySoon()
	must.Eventually(t, "the port in its namespace", n.settled)
	must.Equal(t, 0, n.Repairs)
	if err := n.Last.Unfit("gone"); err != nil {
		t.Error(err)
	}
}

// A node asks for the next attempt after each request. The time left must become shorter, also
// while the pause after an attempt lasts: else frequent requests would delay the attempt forever.
func TestTheNextAttemptComesNearerWhileRequestsArrive(t *testing.T) {
	due := Failure{Tries: 5, Next: time.Now().Add(-time.Second)}
	r := &Reconciler{Last: &Pass{Failures: map[Object]Failure{portObject("p"): due}}, retryFrom: time.Now().Add(100 * time.Millisecond)}
	for last := time.Hour; last > 0; {
		wait, is := r.NextRetry()
		if !is || wait >= last {
			t.Fatalf("the next attempt is due in %v (%v), before it was %v", wait, is, last)
		}
		last = wait
		time.Sleep(10 * time.Millisecond)
	}
}

// An attempt that is not due can come from any pass: of a request, of an event, of a check. If it
// fails, the next attempt must stay due at its time, and the wait after it must not grow.
func TestAnEarlyAttemptDoesNotPostponeTheNextOne(t *testing.T) {
	o := portObject("p")
	due := Failure{Tries: 3, Next: time.Now().Add(time.Hour)}
	r := &Reconciler{Last: &Pass{Failures: map[Object]Failure{o: due}}}
	r.config.RepairInterval = 24 * time.Hour
	for cause, waits := range map[Cause]bool{asked: true, Retrying: true, Noticing: false, Looking: false, Starting: false} {
		p := &Pass{r: r, scope: scope{cause: cause}, Failures: map[Object]Failure{}}
		if p.waits(o) != waits {
			t.Errorf("a pass for %q waits for the next attempt: %t, want %t", cause, !waits, waits)
		}
		if !waits {
			p.fail(o, errors.New("still"))
		}
		if f := p.Failures[o]; f.Tries != due.Tries || !f.Next.Equal(due.Next) {
			t.Errorf("after a pass for %q the failure is %+v, want the tries and the next attempt of %+v", cause, f, due)
		}
	}
}

// TestACorrectedPortIsInForceAtOnce attaches a port to a device that does not exist. After some
// failed attempts the port gets an existing device. The port must not wait for the next attempt
// of the former device, and must not keep its failure.
func TestACorrectedPortIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	n := newFaulty(t)
	defer func() { n.Close() }()
	n.state.Ports = slices.DeleteFunc(n.state.Ports, func(p model.Port) bool { return p.Name != "none" })
	n.adopt(t)
	for range 3 {
		time.Sleep(time.Until(n.Last.Failures[portObject("none")].Next))
		n.Pass(Retrying)
	}
	if f := n.Last.Failures[portObject("none")]; f.Tries != 4 {
		t.Fatalf("after 4 attempts the failure is %+v", f)
	}
	device(t, n.fabric, "right0", true)
	n.state.Ports = slices.Clone(n.state.Ports)
	n.state.Ports[0].Attach.Device = "right0"
	n.adopt(t)
	if err := n.Last.Unfit("none"); err != nil {
		t.Error(err)
	}
	d := n.Last.Devices["none"]
	if d == nil || d.Link.Attrs().Name != "right0" || !n.Last.attached[d.Index()].Current {
		t.Errorf("the port has device %+v with programs %+v, want right0 with the current program", d, n.Last.attached)
	}
	if agenttest.LinkIn(t, n.fabric, "right0").Attrs().Flags&net.FlagUp == 0 {
		t.Error("device right0 is down")
	}
}
