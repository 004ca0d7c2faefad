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

// Causes of a pass.
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
	cause    Cause
	Want     *Desired
	links    []netlink.Link // the node's devices, once they are listed
	wire     *netdev.Wire
	under    *netdev.Underlay
	ethernet []netdev.EthernetLink     // for direct
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
	p := &Pass{r: r, cause: why, Want: r.Want, links: links, Devices: map[string]*netdev.Device{}, left: map[string]bool{}, gen: r.Generation}
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
	p.receiveLabels()
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
	if p.ethernet, err = netdev.EthernetLinks(p.r.space, self, links); err != nil {
		p.fail("", err)
	}
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
	p.facts.links = p.testLinks()
	if last != nil && last.compiled && last.gen == p.gen && p.facts.equal(last.facts) {
		p.Tables, p.Warnings, p.compiled, p.reused = last.Tables, last.Warnings, true, true
		p.failRefused()
		return
	}
	tables, warnings, err := p.facts.compile(p.Want, p.r.config, numbers(p.r.Limits), true)
	if err != nil {
		p.fail("", err)
		if IsLimit(err) {
			p.limit = err
		}
		p.keepTables()
		return
	}
	p.Tables, p.Warnings, p.compiled = tables, warnings, true
	p.failRefused()
}

// failRefused reports the errors that concern single networks and objects.
func (p *Pass) failRefused() {
	for _, r := range p.Tables.Refused {
		p.fail("", r.Err)
	}
	if p.Want.wrong != nil {
		p.fail("", p.Want.wrong)
	}
}

func (p *Pass) keepTables() {
	if l := p.r.Last; l != nil {
		p.Tables, p.Warnings = l.Tables, l.Warnings
	}
}

// apply makes the maps equal to the tables.
func (p *Pass) apply() {
	if !p.compiled || p.cause == Noticing && p.reused && !p.renewed && p.r.Last.Problems == nil {
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
