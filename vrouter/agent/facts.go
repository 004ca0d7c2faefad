package agent

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// facts are what the tables depend on beside the desired state: the ports'
// devices, and the kernel's routes between underlay addresses.
type facts struct {
	ports map[string]fib.PortFact
	mtu   int          // of the fabric
	ways  map[pair]way // those that were asked for
	under *underlay
}

// etherMTU is what is assumed of a fabric whose devices are not there.
const etherMTU = 1500

// pair is two ends of a way through the underlay.
type pair struct{ source, destination netip.Addr }

func factsOf(devices map[string]*device, under *underlay) facts {
	f := facts{ports: map[string]fib.PortFact{}, mtu: under.mtu(), under: under}
	for name, d := range devices {
		attrs := d.link.Attrs()
		f.ports[name] = fib.PortFact{Ifindex: uint32(attrs.Index), Device: attrs.Name, Peer: d.peer}
	}
	return f
}

// way asks the kernel once for each pair.
func (f *facts) way(source, destination netip.Addr) way {
	key := pair{source, destination}
	w, ok := f.ways[key]
	if !ok {
		w = f.under.way(source, destination)
		f.ways[key] = w
	}
	return w
}

// equal tells whether the tables made of older facts would be made of these: it
// asks for the same ways again.
func (f *facts) equal(older facts) bool {
	if f.mtu != older.mtu || !maps.Equal(f.ports, older.ports) {
		return false
	}
	f.ways = make(map[pair]way, len(older.ways))
	for key := range older.ways {
		f.way(key.source, key.destination)
	}
	return f.sameWays(older)
}

// sameWays tells whether the ways are older facts'.
func (f *facts) sameWays(older facts) bool {
	if f.mtu != older.mtu || len(f.ways) != len(older.ways) {
		return false
	}
	for key, w := range f.ways {
		o, ok := older.ways[key]
		if !ok || o.mtu != w.mtu || o.why != w.why || !slices.Equal(o.paths, w.paths) {
			return false
		}
	}
	return true
}

// compile derives the tables of a desired state. An agent to which nothing was
// applied yet forwards nothing. partial: as fib.Facts.
func (f *facts) compile(want *desired, c Config, limits fib.Limits, partial bool) (fib.Tables, []string, error) {
	idle, closed := uint32(c.FlowIdle/time.Second), uint32(c.FlowClosed/time.Second)
	f.ways = map[pair]way{}
	if want.isEmpty() {
		return fib.Tables{Settings: fib.Settings{Strict: true, VXLANPort: model.DefaultVXLANPort, FlowIdle: idle, FlowClosed: closed}}, nil, nil
	}
	t, warnings, err := fib.Compile(want.state, want.node, fib.Facts{
		Ports: f.ports, MTU: f.mtu, Limits: limits, FlowIdle: idle, FlowClosed: closed, Partial: partial,
		Way: func(source, destination netip.Addr) ([]fib.Path, int) {
			w := f.way(source, destination)
			return w.paths, w.mtu
		},
	}, want.ids)
	return t, append(warnings, f.whys()...), err
}

// whys are the reasons for ways that are none, in a stable order.
func (f *facts) whys() []string {
	var all []string
	for _, w := range f.ways {
		if w.why != "" {
			all = append(all, w.why)
		}
	}
	slices.Sort(all)
	return all
}

// numbers are the limits of ids. Numbers are given from the least free on, so
// that what fits by its count fits by its numbers, but for a while after many
// were given back.
func numbers(l datapath.Limits) fib.Limits {
	return fib.Limits{Nexthops: l.Nexthops, Vifs: l.Vifs}
}

// roomFor tells whether every table has room.
func roomFor(t fib.Tables, l datapath.Limits) error {
	for _, s := range tableSizes(t, 0, l) {
		if s.entries > int(s.limit) {
			return &datapath.LimitError{Table: s.name, Want: s.entries, Limit: s.limit}
		}
	}
	return nil
}

// assumedDevice is the first number of devices that are not there yet; the
// kernel's are far below.
const assumedDevice = 1 << 30

// assume are the facts as if every port had its device. links are the node's.
func (a *agent) assume(want *desired, links []netlink.Link) (*facts, error) {
	self, _ := want.self()
	fabric, _, err := fabricDevices(a.space, byName(links), a.config.Fabric, self.Underlay)
	if err != nil {
		return nil, err
	}
	f := factsOf(a.last.devices, newUnderlay(a.space, fabric))
	for i, p := range want.ports {
		if _, has := f.ports[p.Name]; !has {
			f.ports[p.Name] = fib.PortFact{Ifindex: uint32(assumedDevice + i), Device: fmt.Sprintf("port %s's", p.Name)}
		}
	}
	return &f, nil
}
