package agent

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// cause is why a pass is made.
type cause string

const (
	starting cause = "start"
	asked    cause = "request" // the desired state changed
	noticing cause = "event"   // the kernel said that something changed
	looking  cause = "timer"   // for drift, and to try again what failed
)

// pass is one walk from the desired state to the kernel's: each step makes
// equal what differs and leaves the rest. What fails is noted and tried again
// by the next; it keeps nothing else from being done.
type pass struct {
	a        *agent
	cause    cause
	want     *desired
	links    []netlink.Link // the node's devices, once they are listed
	wire     *wire
	under    *underlay
	devices  map[string]*device // by port
	whole    map[string]bool    // ports that were as desired, in this pass or an earlier one of the same desired state
	left     map[string]bool    // ports that are as the last pass left them, see asLeft
	attached map[int]datapath.Attachment
	fabric   []fabricDevice
	facts    facts
	tables   fib.Tables
	warnings []string
	compiled bool // the tables are of this pass's desired state and facts
	reused   bool // and are the last pass's
	renewed  bool // the data path is a new one: its pins were lost
	renewing time.Duration
	merges   bool // groDevice is there
	changes  datapath.Changes
	problems []problem
	limit    error    // a table had no room: nothing was written
	mended   []string // drift
	gen      uint64
}

// problem is what could not be done.
type problem struct {
	port string // empty: the node's
	text string
}

// fabricDevice is an underlay device and how it is served.
type fabricDevice struct {
	link netlink.Link
	datapath.Fabric
	merged  bool // the kernel merges VXLAN before the programs see it
	guarded bool // fabric_out drops tunnel packets that the programs did not send
}

func (p *pass) fail(port string, err error) {
	text := err.Error()
	if port != "" {
		text = fmt.Sprintf("port %s: %s", port, text)
	}
	p.problems = append(p.problems, problem{port, text})
}

// failed tells whether a port has a problem.
func (p *pass) failed(port string) bool {
	return slices.ContainsFunc(p.problems, func(q problem) bool { return q.port == port })
}

// pass makes a pass over everything.
func (a *agent) pass(why cause) { a.passOver(why, nil) }

// passOver makes a pass. links are the node's devices if they were just listed,
// else nil.
func (a *agent) passOver(why cause, links []netlink.Link) *pass {
	if a.removed {
		return a.last
	}
	began := time.Now()
	p := &pass{a: a, cause: why, want: a.want, links: links, devices: map[string]*device{}, left: map[string]bool{}, gen: a.generation}
	if p.want == nil {
		p.want = newDesired(a.config.Node, model.State{}, a.own.IDs)
		p.fail("", errors.New("the store has not answered yet, and nothing is known of what it holds; what the kernel has stays as it is"))
		p.keepLast()
	} else {
		p.walk()
	}
	if why != asked {
		a.wholeTook = time.Since(began) - p.renewing // which is no measure of the next one
	}
	a.finish(p)
	return p
}

// walk takes the steps in order. What packets need on their way is there
// before what leads them on it: tables before programs, both before a new
// device comes up.
func (p *pass) walk() {
	if err := p.look(); err != nil {
		p.fail("", err)
		p.keepLast()
		return
	}
	defer p.wire.close()
	p.keepPins()
	p.connect()
	p.compile()
	p.apply()
	p.merge()
	p.attach()
	p.configure()
	p.clear()
	p.resolve()
}

// look finds the node's devices, and among them the underlay's.
func (p *pass) look() error {
	if p.links == nil {
		var err error
		if p.links, err = listLinks(p.a.space.links); err != nil {
			return err
		}
	}
	w := newWire(p.a.space, p.want.node, p.links, p.a.config.Fabric, p.changed)
	if last := p.a.last; last != nil && last.want != nil {
		// Limits are the agent's own: what it never set it need not look for.
		w.limited = func(port string) bool {
			was, _ := last.want.port(port)
			return was.Bandwidth != (model.Bandwidth{}) || !last.whole[port]
		}
	}
	self, _ := p.want.self()
	links, missing, err := fabricDevices(p.a.space, w.here, p.a.config.Fabric, self.Underlay)
	if err != nil {
		w.close()
		return err
	}
	for _, m := range missing {
		p.problems = append(p.problems, problem{"", m})
	}
	for _, l := range links {
		w.fabric[l.Attrs().Name] = true
		if l.Attrs().Flags&net.FlagUp == 0 {
			p.problems = append(p.problems, problem{"", isDown(l) + "; ip link set " + l.Attrs().Name + " up"})
		}
		p.fabric = append(p.fabric, fabricDevice{link: l})
	}
	p.wire, p.under = w, newUnderlay(p.a.space, links)
	return nil
}

func isDown(fabric netlink.Link) string { return "fabric device " + fabric.Attrs().Name + " is down" }

// keepLast stands in for what could not be looked at.
func (p *pass) keepLast() {
	if l := p.a.last; l != nil {
		p.devices, p.fabric, p.facts, p.tables, p.warnings = l.devices, l.fabric, l.facts, l.tables, l.warnings
	}
}

// connect finds or makes the ports' devices.
func (p *pass) connect() {
	for _, port := range p.want.ports {
		if d := p.asLeft(port); d != nil {
			p.devices[port.Name], p.left[port.Name] = d, true
			continue
		}
		d, err := p.wire.connect(port)
		if err != nil {
			p.fail(port.Name, err)
		}
		if d != nil {
			p.devices[port.Name] = d
		}
	}
}

// compile derives the tables, unless they are known to be the same.
func (p *pass) compile() {
	last := p.a.last
	p.facts = factsOf(p.devices, p.under)
	if last != nil && last.compiled && last.gen == p.gen && p.facts.equal(last.facts) {
		p.tables, p.warnings, p.compiled, p.reused = last.tables, last.warnings, true, true
		p.failRefused()
		return
	}
	tables, warnings, err := p.facts.compile(p.want, p.a.config, numbers(p.a.limits), true)
	if err != nil {
		p.fail("", err)
		p.keepTables()
		return
	}
	p.tables, p.warnings, p.compiled = tables, warnings, true
	p.failRefused()
}

// failRefused reports the errors that concern single networks.
func (p *pass) failRefused() {
	for _, r := range p.tables.Refused {
		p.fail("", r.Err)
	}
}

func (p *pass) keepTables() {
	if l := p.a.last; l != nil {
		p.tables, p.warnings = l.tables, l.warnings
	}
}

// apply makes the maps equal to the tables.
func (p *pass) apply() {
	if !p.compiled || p.cause == noticing && p.reused && !p.renewed && p.a.last.problems == nil {
		return // nothing that the kernel tells of changes the maps' contents
	}
	var err error
	if p.changes, err = p.a.plane().Apply(p.tables); err != nil {
		if isLimit(err) {
			p.limit = err
		}
		p.fail("", fmt.Errorf("writing the tables: %w", err))
	}
	n := p.changes.Updated + p.changes.Deleted
	p.a.pins.noteRetired()
	if n > 0 && p.reused && !p.renewed && !p.a.last.failed("") {
		p.mended = append(p.mended, fmt.Sprintf("%d entries of the tables differed", n))
	}
}

// many devices are attached in the way that is quickest.
const many = 8

// attach puts the programs where they are missing.
func (p *pass) attach() {
	p.listAttached()
	for i := range p.fabric {
		p.attachFabric(&p.fabric[i], p.attached)
	}
	var bare []string // ports whose devices lack the program
	for name, d := range p.devices {
		if has, ok := p.attached[d.index()]; !ok || has.Kind != datapath.KindVif || !has.Current {
			bare = append(bare, name)
		}
	}
	slices.Sort(bare)
	attach := p.a.plane().AttachVif
	if len(bare) > many {
		attach = p.a.plane().AttachVifOfMany
	}
	for _, name := range bare {
		index := p.devices[name].index()
		if err := attach(index); err != nil {
			p.fail(name, err)
			continue
		}
		p.attached[index] = datapath.Attachment{Ifindex: index, Kind: datapath.KindVif, Current: true}
		p.changed(name, "programs attached to "+p.devices[name].link.Attrs().Name)
	}
	p.guard()
}

// guard attaches fabric_out to the fabric devices. fabric_out drops tunnel packets
// without the programs' mark. The programs of an older agent do not set the mark. So
// guard does nothing until every port has the current program.
func (p *pass) guard() {
	for _, d := range p.devices {
		if !p.attached[d.index()].Current {
			return
		}
	}
	for i := range p.fabric {
		f := &p.fabric[i]
		index, name := f.link.Attrs().Index, f.link.Attrs().Name
		has := p.attached[index]
		if f.guarded = has.Guarded && has.Current; f.guarded {
			continue
		}
		if err := p.a.plane().GuardFabric(index); err != nil {
			p.fail("", fmt.Errorf("guard fabric device %s: %w", name, err))
			continue
		}
		f.guarded, has.Guarded = true, true
		p.attached[index] = has
		if had, known := p.lastFabric(index); known && had.guarded {
			p.mended = append(p.mended, "the guard was missing on fabric device "+name)
		}
	}
}

const noXDPWhereMerged = "the kernel merges VXLAN packets by itself (device " + groDevice + "), which XDP would come before"

// attachFabric asks for a device's programs anew only where something differs:
// a driver without XDP says no each time.
func (p *pass) attachFabric(f *fabricDevice, there map[int]datapath.Attachment) {
	index, name := f.link.Attrs().Index, f.link.Attrs().Name
	had, known := p.lastFabric(index)
	if has, ok := there[index]; ok && known && has.Current && has.Kind == datapath.KindFabric && has.Mode == had.Mode && had.merged == p.merges {
		f.Fabric, f.merged = had.Fabric, had.merged
		return
	}
	why := ""
	if p.merges {
		why = noXDPWhereMerged
	}
	now, err := p.a.plane().AttachFabric(index, why)
	if err != nil {
		p.fail("", fmt.Errorf("fabric device %s: %w", name, err))
		return
	}
	f.Fabric, f.merged = now, p.merges
	has := there[index]
	there[index] = datapath.Attachment{Ifindex: index, Kind: datapath.KindFabric, Mode: now.Mode, Current: true, Guarded: has.Guarded && has.Current}
	p.a.log.Info("fabric device served", "device", name, "mode", now.Mode, "why_no_xdp", now.Why)
	if known && had.Mode == now.Mode && had.merged == f.merged {
		p.mended = append(p.mended, "programs were missing on fabric device "+name)
	}
}

func (p *pass) lastFabric(index int) (fabricDevice, bool) {
	if p.a.last == nil {
		return fabricDevice{}, false
	}
	for _, f := range p.a.last.fabric {
		if f.link.Attrs().Index == index {
			return f, f.Mode != ""
		}
	}
	return fabricDevice{}, false
}

// configure readies the workloads' devices and brings them up.
func (p *pass) configure() {
	for _, port := range p.want.ports {
		d, connected := p.devices[port.Name]
		if !connected || p.failed(port.Name) {
			continue
		}
		vif, ok := p.tables.Vifs[uint32(d.index())]
		if !ok {
			continue // the tables could not be made: that is a problem of the node
		}
		if p.left[port.Name] && vif.MTU == p.a.last.tables.Vifs[uint32(d.index())].MTU {
			continue
		}
		network, _ := p.want.network(port.Network)
		if err := p.wire.configure(port, d, deviceConfigOf(network, port), int(vif.MTU)); err != nil {
			p.fail(port.Name, err)
		}
	}
}

// clear takes away what is not wanted (any more): pairs of ports that are gone,
// and programs on devices that are neither port nor fabric.
func (p *pass) clear() {
	wanted, used := map[string]bool{}, map[int]bool{}
	for _, port := range p.want.ports {
		wanted[port.Name] = true
	}
	for _, l := range p.wire.strays(wanted) {
		if err := p.wire.remove(l); err != nil {
			p.fail("", err)
			continue
		}
		port, _ := portOf(p.want.node, l.Attrs().Alias)
		p.a.log.Info("port changed", "port", port, "change", "pair removed: "+l.Attrs().Name)
	}
	for _, d := range p.devices {
		used[d.index()] = true
	}
	for _, f := range p.fabric {
		used[f.link.Attrs().Index] = true
	}
	for index := range p.attached {
		if used[index] {
			continue
		}
		if err := p.a.plane().Detach(index); err != nil {
			p.fail("", fmt.Errorf("take the programs off device %d: %w", index, err))
			continue
		}
		delete(p.attached, index)
	}
}

// resolve keeps the neighbours of the tunnels' paths known to the kernel.
func (p *pass) resolve() {
	want := map[neighbour]bool{}
	for _, n := range p.tables.Nexthops {
		for _, path := range n.Paths {
			if path.Oif != 0 && n.Type == fib.Tunnel {
				want[neighbour{int(path.Oif), path.Gateway}] = true
			}
		}
	}
	if err := p.a.neighbours.keep(want); err != nil {
		p.fail("", err)
	}
}

// changed is told what was set on a port's devices.
func (p *pass) changed(port, what string) {
	p.a.log.Info("port changed", "port", port, "change", what)
	last := p.a.last
	was := last != nil && last.gen == p.gen && last.whole[port]
	if was && p.cause != asked && p.cause != starting && p.sameWays() {
		p.mended = append(p.mended, "port "+port+": "+what)
	}
}

// sameWays tells whether the underlay is as it was, whose MTU is the ports'.
// Before the tables are made nothing of it shows on a port.
func (p *pass) sameWays() bool { return p.facts.ways == nil || p.facts.sameWays(p.a.last.facts) }

// noteWhole notes the ports that are as desired. What changes on one of them
// later is drift, also when a pass came upon it in the middle and failed.
func (p *pass) noteWhole() {
	p.whole = map[string]bool{}
	if last := p.a.last; last != nil && last.gen == p.gen {
		p.whole = last.whole
	}
	if !p.compiled {
		return
	}
	for port := range p.devices {
		if !p.whole[port] && !p.failed(port) {
			p.whole[port] = true
		}
	}
}

// finish keeps what a pass came to, tells of it, and publishes it.
func (a *agent) finish(p *pass) {
	p.noteWhole()
	a.tell(p)
	a.repairs += uint64(len(p.mended))
	if p.cause == asked {
		a.written.Updated += p.changes.Updated
		a.written.Deleted += p.changes.Deleted
	}
	switch {
	case len(p.problems) == 0:
		a.synced, a.retry = time.Now(), 0
	case a.retry == 0 || p.cause == asked:
		a.retry = firstRetry
	case p.cause == looking:
		a.retry = min(2*a.retry, a.config.RepairInterval)
	}
	a.last = p
	p.wire, p.under, p.links = nil, nil, nil
	a.publish()
}

// tell logs a line a change: problems when they come and go, and what was
// mended.
func (a *agent) tell(p *pass) {
	before := map[string]bool{}
	if a.last != nil {
		for _, q := range a.last.problems {
			before[q.text] = true
		}
	}
	for _, q := range p.problems {
		if !before[q.text] {
			a.log.Warn("problem", "what", q.text)
		}
		delete(before, q.text)
	}
	for text := range before {
		a.log.Info("problem solved", "what", text)
	}
	for _, m := range p.mended {
		a.log.Warn("drift repaired", "what", m)
	}
	if p.changes != (datapath.Changes{}) {
		a.log.Info("tables written", "updated", p.changes.Updated, "deleted", p.changes.Deleted, "cause", string(p.cause))
	}
}
