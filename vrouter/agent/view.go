package agent

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// view is the result of the last pass, for readers outside the loop. It is immutable.
// It maps ids to names, but does not have the contents of the kernel's maps.
type view struct {
	want     *desired
	pins     pins
	fabric   []fabricDevice
	devices  map[string]*device // by port
	nexthops map[uint32]string  // names by id
	vifs     map[uint32]string  // ports' names by vif id
	indexes  map[uint32]string  // devices' names by ifindex
	networks map[uint32]model.Network
	problems []string
	warnings []string
	routes   int
	repairs  uint64
	synced   time.Time
	ports    int
	refused  string
	leaving  []string
}

// publish replaces the view.
func (a *agent) publish() {
	p := a.last
	v := &view{
		want: p.want, pins: a.pins, fabric: p.fabric, devices: p.devices, warnings: slices.Concat(p.warnings, a.pins.warning()),
		nexthops: make(map[uint32]string, len(p.tables.Nexthops)), vifs: map[uint32]string{}, indexes: map[uint32]string{},
		networks: map[uint32]model.Network{},
		routes:   len(p.tables.Routes), repairs: a.repairs, synced: a.synced, ports: len(p.want.ports),
		leaving: slices.Clone(a.own.Leaving),
	}
	if a.unfit != nil {
		v.refused = notInForce(a.unfit)
	}
	for id, n := range p.tables.Nexthops {
		v.nexthops[id] = n.Name
	}
	for _, vif := range p.tables.Vifs {
		v.vifs[vif.ID] = vif.Name
	}
	for _, d := range p.devices {
		v.indexes[uint32(d.index())] = d.link.Attrs().Name
	}
	for _, f := range p.fabric {
		v.indexes[uint32(f.link.Attrs().Index)] = f.link.Attrs().Name
	}
	for _, n := range p.want.state.Networks {
		v.networks[n.ID] = n
	}
	for _, q := range p.problems {
		v.problems = append(v.problems, q.text)
	}
	a.shared.Peek(func(f *fleet.View) { v.problems = append(v.problems, f.Problems()...) })
	slices.Sort(v.problems)
	v.problems = slices.Compact(v.problems)
	a.view.Store(v)
}

// status returns the state of the agent.
func (a *agent) status(v *view) api.Status {
	s := api.Status{
		Node: a.config.Node, Version: a.version, PID: os.Getpid(), Started: a.started, Synced: v.synced,
		Problems: append(slices.Clone(v.problems), v.warnings...), Repairs: v.repairs, Routes: v.routes, Ports: v.ports,
		Store: a.storeStatus(v),
	}
	for _, f := range v.fabric {
		s.Fabric = append(s.Fabric, api.Fabric{Device: f.link.Attrs().Name, Mode: f.Mode, Why: f.Why, MTU: f.link.Attrs().MTU})
	}
	// Warn at 80 % of what one network may have, which is half of the table.
	if n, limit := a.flowCount.Load(), int64(a.limits.Flows); n*5 >= limit*2 {
		s.Problems = append(s.Problems, fmt.Sprintf("the flow table has %d of at most %d flows, and one network may have half of them; raise limits.flows, or see `vrouter flow list` for the ports with many flows", n, limit))
	}
	slices.SortFunc(s.Fabric, func(a, b api.Fabric) int { return strings.Compare(a.Device, b.Device) })
	return s
}

// device is the name of a vif's device; "": the fabric.
func (v *view) device(vif uint32, ifindex uint32) string {
	if name := v.indexes[ifindex]; name != "" {
		return name
	}
	if d := v.devices[v.vifs[vif]]; d != nil {
		return d.link.Attrs().Name
	}
	return ""
}

// tableSizes returns the number of entries and the limit of each table.
func tableSizes(t fib.Tables, flows int, l datapath.Limits) []tableSize {
	hosts4, hosts6, prefixes4, prefixes6 := 0, 0, 0, 0
	for k := range t.Routes {
		switch four, host := k.Prefix.Addr().Is4(), k.Prefix.IsSingleIP(); {
		case four && host:
			hosts4++
		case host:
			hosts6++
		case four:
			prefixes4++
		default:
			prefixes6++
		}
	}
	return []tableSize{
		{"hosts4", hosts4, l.Routes}, {"hosts6", hosts6, l.Routes},
		{"prefixes4", prefixes4, l.Prefixes}, {"prefixes6", prefixes6, l.Prefixes},
		{"bridge", len(t.Bridge), l.Bridge}, {"nexthops", len(t.Nexthops), l.Nexthops},
		{"vifs", len(t.Vifs), l.Vifs}, {"labels", len(t.ILM), l.Labels}, {"vnis", len(t.VNIs), l.Labels},
		{"remotes", len(t.Remotes), l.Remotes}, {"senders", len(t.Senders), l.Prefixes}, {"flows", flows, l.Flows},
	}
}

type tableSize struct {
	name    string
	entries int
	limit   uint32
}
