package reconcile

import (
	"maps"
	"net/netip"
	"slices"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// facts are the inputs of the tables that are not in the desired state: the ports'
// devices, the links, and the kernel's routes between underlay addresses.
type facts struct {
	ports map[string]fib.PortFact
	mtu   int                 // smallest MTU of the fabric devices
	ways  map[pair]netdev.Way // results of way
	known map[pair]netdev.Way // earlier results that way may use
	links map[netip.Addr]link // result of testLinks
	under *netdev.Underlay

	refusal   string                  // why the kernel does not accept this node's locator, so that the node cannot translate; empty: it does
	foreign   map[string]string       // other nodes whose locators are not used, with the reasons (findForeign)
	handovers map[string]fib.Handover // changes of encapsulations that are under way, by other node
	lastLabel uint32                  // Labels.Last
	silent    map[netip.Addr]bool     // Reconciler.Silent
	services  bool                    // Reconciler.Services
	grouping  *fib.Grouping           // result of Reconciler.Grouping
	external  *fib.External           // result of Reconciler.External
}

// pair has the two addresses of an underlay path.
type pair struct{ source, destination netip.Addr }

// find sets the facts about the ports' devices and the underlay devices.
func (f *facts) find(devices map[string]*netdev.Device, under *netdev.Underlay) {
	f.ports, f.mtu, f.under = make(map[string]fib.PortFact, len(devices)), under.MTU(), under
	for name, d := range devices {
		f.ports[name] = fib.PortFact{Ifindex: uint32(d.Index()), Peer: d.Peer, Netkit: d.IsNetkit()}
	}
}

// way returns the route between two underlay addresses. It asks the kernel only once for
// each pair.
func (f *facts) way(source, destination netip.Addr) netdev.Way {
	key := pair{source, destination}
	w, ok := f.ways[key]
	if !ok {
		if w, ok = f.known[key]; !ok {
			w = f.under.Way(source, destination)
		}
		f.ways[key] = w
	}
	return w
}

// equal reports whether these facts give the same tables as older facts. It looks up
// the routes of the same pairs of addresses again.
func (f *facts) equal(older facts) bool {
	return maps.Equal(f.ports, older.ports) && f.equalButPorts(older)
}

// equalButPorts is like equal, but the devices of the ports may differ.
func (f *facts) equalButPorts(older facts) bool {
	f.ways = make(map[pair]netdev.Way, len(older.ways))
	for key := range older.ways {
		f.way(key.source, key.destination)
	}
	return f.sameWays(older)
}

// sameWays reports whether MTU, links and routes equal those of older facts.
func (f *facts) sameWays(older facts) bool {
	if f.grouping != older.grouping || f.external != older.external || f.mtu != older.mtu || f.refusal != older.refusal || !maps.Equal(f.foreign, older.foreign) || f.lastLabel != older.lastLabel || !maps.Equal(f.silent, older.silent) || !f.sameHandovers(older) || !maps.Equal(f.links, older.links) || len(f.ways) != len(older.ways) {
		return false
	}
	for key, w := range f.ways {
		o, ok := older.ways[key]
		if !ok || o.MTU != w.MTU || o.Why != w.Why || !slices.Equal(o.Paths, w.Paths) {
			return false
		}
	}
	return true
}

// compile derives the tables of a desired state. If the state is empty, the tables
// forward nothing. partial sets fib.Facts.Partial. last, which can be nil, is an earlier result.
func (f *facts) compile(want *Desired, limits fib.Limits, partial bool, last *fib.Compiled) (*fib.Compiled, error) {
	f.ways = map[pair]netdev.Way{}
	if want.isEmpty() {
		return &fib.Compiled{Tables: fib.Tables{Settings: layout.NodeSettings{Flags: layout.SettingsStrict}}}, nil
	}
	state := want.Slice
	if f.refusal != "" || len(f.foreign) > 0 || len(f.handovers) > 0 {
		state.Nodes = f.nodes(want)
	}
	compiled, err := fib.Compile(state, want.Node, fib.Facts{
		Ports: f.ports, MTU: f.mtu, Handovers: f.handovers, Silent: f.silent, Limits: limits, Partial: partial,
		Way: func(source, destination netip.Addr) ([]layout.Path, int) {
			w := f.way(source, destination)
			return w.Paths, w.MTU
		},
		Link: func(a netip.Addr, oif uint32) fib.Link {
			l := f.links[a]
			if oif != 0 && int(oif) != l.ifindex {
				return fib.NoLink
			}
			return l.state
		},
		LastLabel: f.lastLabel, Services: f.services, Grouping: f.grouping, External: f.external,
		LabelsOf: func(a netip.Addr) uint32 {
			if l, tested := f.links[a]; tested {
				return l.last
			}
			return direct.AllLabels
		},
	}, want.ids, last)
	if err == nil {
		for _, text := range f.unreachableReasons() {
			compiled.Warnings = append(compiled.Warnings, fib.Problem{Kind: theUnderlay.Kind, Name: theUnderlay.Name, Text: text})
		}
	}
	return compiled, err
}

// unreachable returns why the underlay has no path from the node to an address; "": it has one, or the
// node has no address of this family.
func (f *facts) unreachable(node model.Node, a netip.Addr) (why string) {
	for _, source := range node.Underlay {
		if source.Is4() != a.Is4() {
			continue
		}
		w := f.under.Way(source, a)
		if len(w.Paths) > 0 {
			return ""
		}
		why = w.Why
	}
	return why
}

// unreachableReasons returns the reasons why pairs of addresses have no path, sorted.
func (f *facts) unreachableReasons() []string {
	var all []string
	for _, w := range f.ways {
		if w.Why != "" {
			all = append(all, w.Why)
		}
	}
	slices.Sort(all)
	return all
}

// numbers returns the limits of ids. Compile allocates the smallest free id, so an id
// exceeds its limit only if there are too many objects. The exception: a freed id cannot
// be used until fib.IDs.Prune.
func numbers(l datapath.Limits) fib.Limits {
	return fib.Limits{Nexthops: l.Nexthops, Vifs: l.Vifs, Sets: l.Sets()}
}
