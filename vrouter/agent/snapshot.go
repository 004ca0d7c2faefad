package agent

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/dhcp"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// snapshot is the result of the last pass, for readers outside the loop. It is immutable.
// It maps ids to names, but does not have the contents of the kernel's maps.
type snapshot struct {
	want     *reconcile.Desired
	pins     netdev.Pins
	fabric   []reconcile.FabricDevice
	devices  map[string]*netdev.Device   // by port
	links    map[netip.Addr]direct.State // result of Pass.Links
	labels   reconcile.Labels
	small    string                           // Pass.Small
	denied   groupDenial                      // nil: ports have no groups
	names    func() *names                    // computes the names at the first call
	hosts    func() map[hostname][]netip.Addr // computes the hosts at the first call
	lease    func(port string) *dhcp.Lease    // computes a lease at each call
	vif      func(ifindex int) layout.Vif     // zero: the device has none
	networks map[uint32]model.Network
	problems []api.Problem
	warnings []fib.Problem
	ignored  map[fib.ExternalDestination]string // of the tables
	routes   int
	repairs  uint64
	passes   map[reconcile.Cause]uint64
	synced   time.Time
	inSync   bool
	ports    int
	refused  string
	leaving  []string
}

// names are the names of a node's objects by their ids in the kernel's maps.
type names struct {
	nexthops map[uint32]string
	vifs     map[uint32]string // ports
	indexes  map[uint32]string // devices, by ifindex
}

func namesOf(p *reconcile.Pass) *names {
	n := &names{nexthops: p.Tables.Names, vifs: p.Tables.Ports, indexes: make(map[uint32]string, len(p.Devices))}
	for _, d := range p.Devices {
		n.indexes[uint32(d.Index())] = d.Link.Attrs().Name
	}
	for _, f := range p.Fabric {
		n.indexes[uint32(f.Link.Attrs().Index)] = f.Link.Attrs().Name
	}
	return n
}

// publish replaces the snapshot.
func (a *agent) publish() {
	p := a.reconciler.Last
	v := &snapshot{
		want: p.Want, pins: a.reconciler.Programs.Pins, fabric: p.Fabric, devices: p.Devices, links: p.Links(), labels: p.Labels, small: p.Small, denied: a.denied, warnings: slices.Concat(p.Warnings, a.reconciler.Programs.Pins.Warning()),
		names:    sync.OnceValue(func() *names { return namesOf(p) }),
		hosts:    sync.OnceValue(func() map[hostname][]netip.Addr { return hostsOf(p.Want) }),
		lease:    func(port string) *dhcp.Lease { return leaseOf(p, port) },
		vif:      func(ifindex int) layout.Vif { return p.Tables.Vifs[uint32(ifindex)] },
		networks: map[uint32]model.Network{},
		routes:   p.RouteCount(), ignored: p.Ignored, repairs: a.reconciler.Repairs, passes: maps.Clone(a.reconciler.Passes), synced: a.reconciler.Synced, inSync: a.reconciler.InSync, ports: len(p.Want.Ports),
		leaving: slices.Clone(a.follower.Own.Leaving),
	}
	if a.follower.Unfit != nil {
		v.refused = notInForce(a.follower.Unfit)
	}
	for _, n := range p.Want.State.Networks {
		v.networks[n.ID] = n
	}
	for o, f := range p.Failures {
		v.problems = append(v.problems, api.Problem{Kind: o.Kind, Name: o.Name, Text: f.Text, Tries: f.Tries, Retry: f.Next})
	}
	a.follower.Peek(func(f *fleet.View) {
		for _, text := range f.Problems() {
			v.problems = append(v.problems, api.Problem{Text: text})
		}
	})
	slices.SortFunc(v.problems, func(a, b api.Problem) int { return strings.Compare(a.Text, b.Text) })
	v.problems = slices.CompactFunc(v.problems, func(a, b api.Problem) bool { return a.Text == b.Text })
	a.snapshot.Store(v)
	a.serveClients(p) // after the snapshot, which has the leases
	if a.reconciler.Want != nil {
		a.bgp.follow(p)
		a.configureExport(p)
	}
}

// reasons returns the texts of the problems.
func (v *snapshot) reasons() string {
	var all []string
	for _, p := range v.problems {
		all = append(all, p.Text)
	}
	return strings.Join(all, "; ")
}

// status returns the state of the agent.
func (a *agent) status(v *snapshot) api.Status {
	s := api.Status{
		Node: a.config.Node, Version: a.version, PID: os.Getpid(), Started: a.started, Synced: v.synced,
		Problems: slices.Clone(v.problems), Repairs: v.repairs, Routes: v.routes, Ports: v.ports,
		Store: a.storeStatus(v),
	}
	s.InSync = v.inSync && s.Store.Refused == "" && s.Store.Problem == ""
	for _, w := range v.warnings {
		s.Problems = append(s.Problems, api.Problem{Kind: w.Kind, Name: w.Name, Text: w.Text})
	}
	for port, why := range a.dhcp.Refusals() {
		s.Problems = append(s.Problems, api.Problem{Name: port, Text: fmt.Sprintf("port %q: a DHCP message got no answer: %s", port, why)})
	}
	for _, port := range a.follower.SilentWorkloads() {
		s.Problems = append(s.Problems, api.Problem{Kind: "port", Name: port, Text: fmt.Sprintf("port %q: its workload does not answer; routes with other next hops avoid it", port)})
	}
	if why := a.bgp.problem(); why != "" {
		s.Problems = append(s.Problems, api.Problem{Kind: "node", Name: a.config.Node, Text: why})
	}
	for _, o := range a.bgp.refused() {
		s.Problems = append(s.Problems, api.Problem{Text: fmt.Sprintf("%s connects to this node for BGP, but it is not a neighbour; add it with `vrouter bgp enable`, or remove this node from its configuration", o)})
	}
	if why := a.follower.Unregistered(); why != "" {
		s.Problems = append(s.Problems, api.Problem{Kind: "node", Name: a.config.Node, Text: why})
	}
	if why := a.exporter.Problem(); why != "" {
		s.Problems = append(s.Problems, api.Problem{Text: why})
	}
	for _, f := range v.fabric {
		s.Fabric = append(s.Fabric, api.Fabric{Device: f.Link.Attrs().Name, Mode: f.Mode, Why: f.Why, MTU: f.Link.Attrs().MTU})
	}
	// Warn at 80 % of what one network may have, which is half of the table.
	if n, limit := a.flowCount.Load(), int64(a.reconciler.Limits.Flows); n*5 >= limit*2 {
		s.Problems = append(s.Problems, api.Problem{Text: fmt.Sprintf("the flow table has %d of at most %d flows, and one network may have half of them; raise limits.flows, or see `vrouter flow list` for the ports with many flows", n, limit)})
	}
	slices.SortFunc(s.Fabric, func(a, b api.Fabric) int { return strings.Compare(a.Device, b.Device) })
	return s
}

// device is the name of a vif's device; "": the fabric.
func (v *snapshot) device(vif uint32, ifindex uint32) string {
	if d := v.devices[v.names().vifs[vif]]; d != nil {
		return d.Link.Attrs().Name
	}
	return v.names().indexes[ifindex]
}
