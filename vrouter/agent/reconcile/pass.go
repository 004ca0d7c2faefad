package reconcile

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Cause is why a pass is made.
type Cause string

const (
	Starting Cause = "start"
	asked    Cause = "request" // the desired state changed
	Noticing Cause = "event"   // the kernel said that something changed
	Looking  Cause = "timer"   // for drift, and to try again what failed
)

// Times of passes.
const (
	firstRetry  = 100 * time.Millisecond // wait after the first failure; it doubles with each further failure
	passesShare = 20                     // passes that check for drift use at most 1/20 of a CPU
)

// Pass is one walk from the desired state to the kernel's: each step makes
// equal what differs and leaves the rest. What fails is noted and tried again
// by the next; it keeps nothing else from being done.
type Pass struct {
	r        *Reconciler
	Cause    Cause
	Want     *Desired
	links    []netlink.Link // the node's devices, once they are listed
	wire     *netdev.Wire
	under    *netdev.Underlay
	Devices  map[string]*netdev.Device // by port
	whole    map[string]bool           // ports that were as desired, in this pass or an earlier one of the same desired state
	left     map[string]bool           // ports that are as the last pass left them, see asLeft
	attached map[int]datapath.Attachment
	Fabric   []FabricDevice
	facts    facts
	Tables   fib.Tables
	Warnings []string
	compiled bool // the tables are of this pass's desired state and facts
	reused   bool // and are the last pass's
	renewed  bool // the data path is a new one: its pins were lost
	renewing time.Duration
	merges   bool // GRODevice is there
	changes  datapath.Changes
	Problems []Problem
	limit    error    // a table had no room: nothing was written
	mended   []string // drift
	gen      uint64
}

// Problem is what could not be done.
type Problem struct {
	port string // empty: the node's
	Text string
}

// FabricDevice is an underlay device and how it is served.
type FabricDevice struct {
	Link netlink.Link
	datapath.Fabric
	Merged  bool // the kernel merges VXLAN before the programs see it
	guarded bool // fabric_out drops tunnel packets that the programs did not send
}

func (p *Pass) fail(port string, err error) {
	text := err.Error()
	if port != "" {
		text = fmt.Sprintf("port %s: %s", port, text)
	}
	p.Problems = append(p.Problems, Problem{port, text})
}

// failed tells whether a port has a problem.
func (p *Pass) failed(port string) bool {
	return slices.ContainsFunc(p.Problems, func(q Problem) bool { return q.port == port })
}

// Unfit returns the reason why a port does not forward; nil: it forwards.
func (p *Pass) Unfit(port string) error {
	for _, q := range p.Problems {
		if q.port == port {
			return errors.New(q.Text)
		}
	}
	d := p.Devices[port]
	if d == nil {
		return fmt.Errorf("connect port %s: %s", port, p.reasons())
	}
	if _, ok := p.Tables.Vifs[uint32(d.Index())]; !ok || !p.compiled {
		return fmt.Errorf("write the tables of port %s: %s", port, p.reasons())
	}
	return nil
}

func (p *Pass) reasons() string {
	var all []error
	for _, q := range p.Problems {
		all = append(all, errors.New(q.Text))
	}
	if len(all) == 0 {
		return "unknown reason; see the agent's log"
	}
	return errors.Join(all...).Error()
}

// Pass makes a pass over everything.
func (r *Reconciler) Pass(why Cause) { r.passOver(why, nil) }

// passOver makes a pass. links are the node's devices if they were just listed,
// else nil.
func (r *Reconciler) passOver(why Cause, links []netlink.Link) *Pass {
	if r.ended {
		return r.Last
	}
	began := time.Now()
	p := &Pass{r: r, Cause: why, Want: r.Want, links: links, Devices: map[string]*netdev.Device{}, left: map[string]bool{}, gen: r.Generation}
	if p.Want == nil {
		p.Want = NewDesired(r.config.Node, model.State{}, r.IDs)
		p.fail("", errors.New("the store has not answered yet, and nothing is known of what it holds; what the kernel has stays as it is"))
		p.keepLast()
	} else {
		p.walk()
	}
	if why != asked {
		r.WholeTook = time.Since(began) - p.renewing // which is no measure of the next one
	}
	r.finish(p)
	return p
}

// walk takes the steps in order. What packets need on their way is there
// before what leads them on it: tables before programs, both before a new
// device comes up.
func (p *Pass) walk() {
	if err := p.look(); err != nil {
		p.fail("", err)
		p.keepLast()
		return
	}
	defer p.wire.Close()
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
func (p *Pass) look() error {
	if p.links == nil {
		var err error
		if p.links, err = netdev.Links(p.r.space.Links); err != nil {
			return err
		}
	}
	w := netdev.NewWire(p.r.space, p.Want.Node, p.links, p.r.config.Fabric, p.changed)
	if last := p.r.Last; last != nil && last.Want != nil {
		// Limits are the agent's own: what it never set it need not look for.
		w.Limited = func(port string) bool {
			was, _ := last.Want.Port(port)
			return was.Bandwidth != (model.Bandwidth{}) || !last.whole[port]
		}
	}
	self, _ := p.Want.Self()
	links, missing, err := netdev.FabricDevices(p.r.space, w.Here, p.r.config.Fabric, self.Underlay)
	if err != nil {
		w.Close()
		return err
	}
	for _, m := range missing {
		p.Problems = append(p.Problems, Problem{"", m})
	}
	for _, l := range links {
		w.Fabric[l.Attrs().Name] = true
		if l.Attrs().Flags&net.FlagUp == 0 {
			p.Problems = append(p.Problems, Problem{"", isDown(l) + "; ip link set " + l.Attrs().Name + " up"})
		}
		p.Fabric = append(p.Fabric, FabricDevice{Link: l})
	}
	p.wire, p.under = w, netdev.NewUnderlay(p.r.space, links)
	return nil
}

func isDown(fabric netlink.Link) string { return "fabric device " + fabric.Attrs().Name + " is down" }

// keepLast stands in for what could not be looked at.
func (p *Pass) keepLast() {
	if l := p.r.Last; l != nil {
		p.Devices, p.Fabric, p.facts, p.Tables, p.Warnings = l.Devices, l.Fabric, l.facts, l.Tables, l.Warnings
	}
}

// connect finds or makes the ports' devices.
func (p *Pass) connect() {
	for _, port := range p.Want.Ports {
		if d := p.asLeft(port); d != nil {
			p.Devices[port.Name], p.left[port.Name] = d, true
			continue
		}
		d, err := p.wire.Connect(port)
		if err != nil {
			p.fail(port.Name, err)
		}
		if d != nil {
			p.Devices[port.Name] = d
		}
	}
}

// compile derives the tables, unless they are known to be the same.
func (p *Pass) compile() {
	last := p.r.Last
	p.facts = factsOf(p.Devices, p.under)
	if last != nil && last.compiled && last.gen == p.gen && p.facts.equal(last.facts) {
		p.Tables, p.Warnings, p.compiled, p.reused = last.Tables, last.Warnings, true, true
		p.failRefused()
		return
	}
	tables, warnings, err := p.facts.compile(p.Want, p.r.config, numbers(p.r.Limits), true)
	if err != nil {
		p.fail("", err)
		p.keepTables()
		return
	}
	p.Tables, p.Warnings, p.compiled = tables, warnings, true
	p.failRefused()
}

// failRefused reports the errors that concern single networks.
func (p *Pass) failRefused() {
	for _, r := range p.Tables.Refused {
		p.fail("", r.Err)
	}
}

func (p *Pass) keepTables() {
	if l := p.r.Last; l != nil {
		p.Tables, p.Warnings = l.Tables, l.Warnings
	}
}

// apply makes the maps equal to the tables.
func (p *Pass) apply() {
	if !p.compiled || p.Cause == Noticing && p.reused && !p.renewed && p.r.Last.Problems == nil {
		return // nothing that the kernel tells of changes the maps' contents
	}
	var err error
	if p.changes, err = p.r.Programs.Plane().Apply(p.Tables); err != nil {
		if IsLimit(err) {
			p.limit = err
		}
		p.fail("", fmt.Errorf("writing the tables: %w", err))
	}
	n := p.changes.Updated + p.changes.Deleted
	p.r.Programs.Pins.NoteRetired()
	if n > 0 && p.reused && !p.renewed && !p.r.Last.failed("") {
		p.mended = append(p.mended, fmt.Sprintf("%d entries of the tables differed", n))
	}
}

// many devices are attached in the way that is quickest.
const many = 8

// attach puts the programs where they are missing.
func (p *Pass) attach() {
	p.listAttached()
	for i := range p.Fabric {
		p.attachFabric(&p.Fabric[i], p.attached)
	}
	var bare []string // ports whose devices lack the program
	for name, d := range p.Devices {
		if has, ok := p.attached[d.Index()]; !ok || has.Kind != datapath.KindVif || !has.Current {
			bare = append(bare, name)
		}
	}
	slices.Sort(bare)
	attach := p.r.Programs.Plane().AttachVif
	if len(bare) > many {
		attach = p.r.Programs.Plane().AttachVifOfMany
	}
	for _, name := range bare {
		index := p.Devices[name].Index()
		if err := attach(index); err != nil {
			p.fail(name, err)
			continue
		}
		p.attached[index] = datapath.Attachment{Ifindex: index, Kind: datapath.KindVif, Current: true}
		p.changed(name, "programs attached to "+p.Devices[name].Link.Attrs().Name)
	}
	p.guard()
}

// guard attaches fabric_out to the fabric devices. fabric_out drops tunnel packets
// without the programs' mark. The programs of an older agent do not set the mark. So
// guard does nothing until every port has the current program.
func (p *Pass) guard() {
	for _, d := range p.Devices {
		if !p.attached[d.Index()].Current {
			return
		}
	}
	for i := range p.Fabric {
		f := &p.Fabric[i]
		index, name := f.Link.Attrs().Index, f.Link.Attrs().Name
		has := p.attached[index]
		if f.guarded = has.Guarded && has.Current; f.guarded {
			continue
		}
		if err := p.r.Programs.Plane().GuardFabric(index); err != nil {
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

const noXDPWhereMerged = "the kernel merges VXLAN packets by itself (device " + netdev.GRODevice + "), which XDP would come before"

// attachFabric asks for a device's programs anew only where something differs:
// a driver without XDP says no each time.
func (p *Pass) attachFabric(f *FabricDevice, there map[int]datapath.Attachment) {
	index, name := f.Link.Attrs().Index, f.Link.Attrs().Name
	had, known := p.lastFabric(index)
	if has, ok := there[index]; ok && known && has.Current && has.Kind == datapath.KindFabric && has.Mode == had.Mode && had.Merged == p.merges {
		f.Fabric, f.Merged = had.Fabric, had.Merged
		return
	}
	why := ""
	if p.merges {
		why = noXDPWhereMerged
	}
	now, err := p.r.Programs.Plane().AttachFabric(index, why)
	if err != nil {
		p.fail("", fmt.Errorf("fabric device %s: %w", name, err))
		return
	}
	f.Fabric, f.Merged = now, p.merges
	has := there[index]
	there[index] = datapath.Attachment{Ifindex: index, Kind: datapath.KindFabric, Mode: now.Mode, Current: true, Guarded: has.Guarded && has.Current}
	p.r.log.Info("fabric device served", "device", name, "mode", now.Mode, "why_no_xdp", now.Why)
	if known && had.Mode == now.Mode && had.Merged == f.Merged {
		p.mended = append(p.mended, "programs were missing on fabric device "+name)
	}
}

func (p *Pass) lastFabric(index int) (FabricDevice, bool) {
	if p.r.Last == nil {
		return FabricDevice{}, false
	}
	for _, f := range p.r.Last.Fabric {
		if f.Link.Attrs().Index == index {
			return f, f.Mode != ""
		}
	}
	return FabricDevice{}, false
}

// configure readies the workloads' devices and brings them up.
func (p *Pass) configure() {
	for _, port := range p.Want.Ports {
		d, connected := p.Devices[port.Name]
		if !connected || p.failed(port.Name) {
			continue
		}
		vif, ok := p.Tables.Vifs[uint32(d.Index())]
		if !ok {
			continue // the tables could not be made: that is a problem of the node
		}
		if p.left[port.Name] && vif.MTU == p.r.Last.Tables.Vifs[uint32(d.Index())].MTU {
			continue
		}
		network, _ := p.Want.Network(port.Network)
		if err := p.wire.Configure(port, d, netdev.DeviceConfigOf(network, port), int(vif.MTU)); err != nil {
			p.fail(port.Name, err)
		}
	}
}

// clear takes away what is not wanted (any more): pairs of ports that are gone,
// and programs on devices that are neither port nor fabric.
func (p *Pass) clear() {
	wanted, used := map[string]bool{}, map[int]bool{}
	for _, port := range p.Want.Ports {
		wanted[port.Name] = true
	}
	for _, l := range p.wire.Strays(wanted) {
		if err := p.wire.Remove(l); err != nil {
			p.fail("", err)
			continue
		}
		port, _ := netdev.PortOf(p.Want.Node, l.Attrs().Alias)
		p.r.log.Info("port changed", "port", port, "change", "pair removed: "+l.Attrs().Name)
	}
	for _, d := range p.Devices {
		used[d.Index()] = true
	}
	for _, f := range p.Fabric {
		used[f.Link.Attrs().Index] = true
	}
	for index := range p.attached {
		if used[index] {
			continue
		}
		if err := p.r.Programs.Plane().Detach(index); err != nil {
			p.fail("", fmt.Errorf("take the programs off device %d: %w", index, err))
			continue
		}
		delete(p.attached, index)
	}
}

// resolve keeps the neighbours of the tunnels' paths known to the kernel.
func (p *Pass) resolve() {
	want := map[netdev.Neighbour]bool{}
	for _, n := range p.Tables.Nexthops {
		for _, path := range n.Paths {
			if path.Oif != 0 && n.Type == fib.Tunnel {
				want[netdev.Neighbour{OIF: int(path.Oif), Address: path.Gateway}] = true
			}
		}
	}
	if err := p.r.neighbours.Keep(want); err != nil {
		p.fail("", err)
	}
}

// changed is told what was set on a port's devices.
func (p *Pass) changed(port, what string) {
	p.r.log.Info("port changed", "port", port, "change", what)
	last := p.r.Last
	was := last != nil && last.gen == p.gen && last.whole[port]
	if was && p.Cause != asked && p.Cause != Starting && p.sameWays() {
		p.mended = append(p.mended, "port "+port+": "+what)
	}
}

// sameWays tells whether the underlay is as it was, whose MTU is the ports'.
// Before the tables are made nothing of it shows on a port.
func (p *Pass) sameWays() bool { return p.facts.ways == nil || p.facts.sameWays(p.r.Last.facts) }

// noteWhole notes the ports that are as desired. What changes on one of them
// later is drift, also when a pass came upon it in the middle and failed.
func (p *Pass) noteWhole() {
	p.whole = map[string]bool{}
	if last := p.r.Last; last != nil && last.gen == p.gen {
		p.whole = last.whole
	}
	if !p.compiled {
		return
	}
	for port := range p.Devices {
		if !p.whole[port] && !p.failed(port) {
			p.whole[port] = true
		}
	}
}

// finish keeps what a pass came to, tells of it, and publishes it.
func (r *Reconciler) finish(p *Pass) {
	p.noteWhole()
	r.tell(p)
	r.Repairs += uint64(len(p.mended))
	if p.Cause == asked {
		r.Written.Updated += p.changes.Updated
		r.Written.Deleted += p.changes.Deleted
	}
	switch {
	case len(p.Problems) == 0:
		r.Synced, r.retry = time.Now(), 0
	case r.retry == 0 || p.Cause == asked:
		r.retry = firstRetry
	case p.Cause == Looking:
		r.retry = min(2*r.retry, r.config.RepairInterval)
	}
	r.Last = p
	p.wire, p.under, p.links = nil, nil, nil
	r.publish()
}

// tell logs a line a change: problems when they come and go, and what was
// mended.
func (r *Reconciler) tell(p *Pass) {
	before := map[string]bool{}
	if r.Last != nil {
		for _, q := range r.Last.Problems {
			before[q.Text] = true
		}
	}
	for _, q := range p.Problems {
		if !before[q.Text] {
			r.log.Warn("problem", "what", q.Text)
		}
		delete(before, q.Text)
	}
	for text := range before {
		r.log.Info("problem solved", "what", text)
	}
	for _, m := range p.mended {
		r.log.Warn("drift repaired", "what", m)
	}
	if p.changes != (datapath.Changes{}) {
		r.log.Info("tables written", "updated", p.changes.Updated, "deleted", p.changes.Deleted, "cause", string(p.Cause))
	}
}
