package reconcile

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// newSound returns a node whose ports are in force.
func newSound(t *testing.T) *faulty {
	t.Helper()
	n := newFaulty(t)
	t.Cleanup(n.Close)
	for _, f := range n.faults {
		f.set(t, false)
	}
	n.adopt(t)
	return n
}

// A pass after an event about the device of one port repairs that port and looks at no other.
func TestAnEventOfADeviceChecksOnlyItsPort(t *testing.T) {
	n := newSound(t)
	must.Eventually(t, "all ports", n.settled)
	port := n.state.Ports[0].Name
	l := n.Last.Devices[port].Link
	index := l.Attrs().Index

	n.Notice(netdev.Event{Links: map[int]netdev.LinkEvent{index: netdev.LinkChanged}})
	repairs := n.Repairs
	n.Pass(Noticing)
	if got := len(n.Last.left); !n.Last.narrow || got != len(n.Last.Devices) || n.Repairs != repairs {
		t.Errorf("an event without a change: narrow %v, %d of %d ports left as they are, %d repairs", n.Last.narrow, got, len(n.Last.Devices), n.Repairs-repairs)
	}

	for what, do := range map[string]func(netlink.Link) error{
		"down":  n.fabric.Links.LinkSetDown,
		"small": func(l netlink.Link) error { return n.fabric.Links.LinkSetMTU(l, 1300) },
		"gone":  n.fabric.Links.LinkDel,
	} {
		must.Succeed(t, do(n.Last.Devices[port].Link))
		event := netdev.LinkChanged
		if what == "gone" {
			event = netdev.LinkDeleted
		}
		n.Notice(netdev.Event{Links: map[int]netdev.LinkEvent{n.Last.Devices[port].Index(): event}})
		repairs := n.Repairs
		n.Pass(Noticing)
		if got := len(n.Last.left); !n.Last.narrow || got != len(n.Last.Devices)-1 || n.Repairs <= repairs || len(n.Last.Failures) > 0 {
			t.Errorf("device %s: narrow %v, %d of %d ports left as they are, %d repairs, failures %v", what, n.Last.narrow, got, len(n.Last.Devices), n.Repairs-repairs, n.Last.Failures)
		}
	}

	for what, e := range map[string]netdev.Event{
		"a fabric device": {Links: map[int]netdev.LinkEvent{n.Last.Fabric[0].Link.Attrs().Index: netdev.LinkChanged}},
		"a route":         {Other: true},
	} {
		n.Notice(e)
		n.Pass(Noticing)
		if n.Last.narrow || len(n.Last.left) > 0 {
			t.Errorf("after an event of %s the pass left %d ports as they are", what, len(n.Last.left))
		}
	}
}

// A pass for a request finds a device before the kernel's event about it is handled.
func TestARequestFindsADeviceThatIsNew(t *testing.T) {
	n := newSound(t)
	for i := range 3 {
		name := fmt.Sprint("new", i)
		device(t, n.fabric, name, true)
		n.addPort(name, model.Attachment{Device: name})
		n.state.Ports = append(n.state.Ports, n.ports[len(n.ports)-1])
		n.adopt(t)
		if d := n.Last.Devices[name]; d == nil || len(n.Last.left) < len(n.Last.Devices)-1 {
			t.Errorf("port %s has device %v; %d of %d ports left as they are", name, d, len(n.Last.left), len(n.Last.Devices))
		}
		device(t, n.fabric, name, true) // another with the same name
		n.Notice(netdev.Event{Links: map[int]netdev.LinkEvent{n.Last.Devices[name].Index(): netdev.LinkDeleted, agenttest.LinkIn(t, n.fabric, name).Attrs().Index: netdev.LinkChanged}})
		n.Pass(Noticing)
		if got, want := n.Last.Devices[name], agenttest.LinkIn(t, n.fabric, name).Attrs().Index; got == nil || got.Index() != want || len(n.Last.Failures) > 0 {
			t.Errorf("port %s has device %v, want %d; failures %v", name, got, want, n.Last.Failures)
		}
	}
}

// A device that is deleted and created again with its old ifindex has lost its program.
func TestADeviceThatTakesANumberAgainGetsTheProgram(t *testing.T) {
	n := newFaulty(t)
	defer func() { n.Close() }()
	n.addPort("again", model.Attachment{Device: "again0"})
	n.state.Ports = append(n.state.Ports, n.ports[len(n.ports)-1])
	device(t, n.fabric, "again0", true)
	n.adopt(t)
	index := n.Last.Devices["again"].Index()
	must.Succeed(t, n.fabric.Links.LinkDel(n.Last.Devices["again"].Link))
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Index = "again0", index
	must.Succeed(t, n.fabric.Links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "again0p"}))
	n.Notice(netdev.Event{Links: map[int]netdev.LinkEvent{index: netdev.LinkDeleted | netdev.LinkChanged}})
	n.Pass(Noticing)
	all := must.Get(n.Plane().Attached())(t)
	if !n.Last.narrow || !slices.ContainsFunc(all, func(a datapath.Attachment) bool { return a.Ifindex == index && a.Current }) {
		t.Errorf("narrow %v; programs are on the devices %+v, want also on %d", n.Last.narrow, all, index)
	}
}

// No kind of pass finds a device by its alternative name.
func TestAnAlternativeNameFindsNoDevice(t *testing.T) {
	n := newFaulty(t)
	defer func() { n.Close() }()
	device(t, n.fabric, "plain0", true)
	must.Succeed(t, n.fabric.Links.LinkAddAltName(agenttest.LinkIn(t, n.fabric, "plain0"), "other0"))
	n.adopt(t)
	n.addPort("alt", model.Attachment{Device: "other0"})
	n.state.Ports = append(n.state.Ports, n.ports[len(n.ports)-1])
	n.adopt(t)
	for _, cause := range []Cause{Retrying, Looking} {
		if d := n.Last.Devices["alt"]; d != nil || !n.Last.failed(portObject("alt")) {
			t.Errorf("before the pass for cause %s the port has device %v", cause, d)
		}
		n.Pass(cause)
	}
}

// A pass that failed may have lost an event of a route. So the next pass looks the routes up.
func TestRoutesAreLookedUpAfterAPassThatFailed(t *testing.T) {
	n := newFaulty(t)
	defer func() { n.Close() }()
	far := n.ports[slices.IndexFunc(n.ports, func(p model.Port) bool { return p.Node == "b" })]
	n.state.Ports = append(n.state.Ports, far)
	n.adopt(t)
	there := netip.MustParseAddr("172.31.0.2")
	mtu := func() int {
		for at, w := range n.Last.facts.ways {
			if at.destination == there {
				return w.MTU
			}
		}
		return 0
	}
	before := mtu()
	if before < 1000 {
		t.Fatalf("the MTU to the other node is %d", before)
	}
	route := &netlink.Route{Dst: netdev.IPNet(netip.PrefixFrom(there, 32)), LinkIndex: n.Last.Fabric[0].Link.Attrs().Index, Scope: netlink.SCOPE_LINK, MTU: before - 100}
	must.Succeed(t, n.fabric.Links.RouteAdd(route))
	n.Pass(Retrying)
	if got := mtu(); got != before {
		t.Fatalf("without an event a retry finds MTU %d, want the former %d: the test does not test", got, before)
	}
	n.Last.compiled = false // as after a pass that could not list the devices
	n.Pass(Retrying)
	if got := mtu(); got != before-100 {
		t.Errorf("after a pass that failed, the MTU to the other node is %d, want %d", got, before-100)
	}
}

// Changes postpone a check of all ports, which makes requests wait, by at most maxPostponed intervals.
func TestChangesPostponeACheckForDrift(t *testing.T) {
	now := time.Now()
	r := &Reconciler{config: config.Config{RepairInterval: 5 * time.Second}}
	for _, c := range []struct {
		what            string
		looked, adopted time.Duration // ago
		least, most     time.Duration
	}{
		{"no check is due", time.Second, 0, 3 * time.Second, 4 * time.Second},
		{"a check is due, without changes", 6 * time.Second, 2 * time.Second, -time.Minute, 0},
		{"a check is due just after a change", 6 * time.Second, 0, quietTime / 2, quietTime},
		{"changes have postponed a check for long", 31 * time.Second, 0, -time.Minute, 0},
	} {
		r.looked, r.adopted = now.Add(-c.looked), now.Add(-c.adopted)
		if next := r.NextPass(); next < c.least || next > c.most {
			t.Errorf("%s: the next check begins in %v, want %v to %v", c.what, next, c.least, c.most)
		}
	}
}

// A busy machine can stop a check for seconds. The next check must not come 20 times later because of this.
func TestOneSlowCheckDoesNotPostponeTheNextOne(t *testing.T) {
	r := &Reconciler{config: config.Config{RepairInterval: time.Second}, looked: time.Now()}
	for _, durations := range []*durations{&r.wholeTook, &r.Comparison.took} {
		for _, c := range []struct {
			took      time.Duration
			postponed bool
		}{{time.Millisecond, false}, {10 * time.Second, false}, {9 * time.Second, true}, {time.Millisecond, false}} {
			durations.add(c.took)
			if next := r.NextPass(); (next > time.Minute) != c.postponed {
				t.Errorf("after a check of %s the next one begins in %s; postponed: want %v", c.took, next, c.postponed)
			}
		}
	}
}
