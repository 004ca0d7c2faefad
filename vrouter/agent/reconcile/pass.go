package reconcile

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Times of passes.
const (
	passesShare  = 20          // passes that check for drift use at most 1/20 of a CPU
	retriesShare = 3           // passes for retries use at most 1/4 of a CPU
	quietTime    = time.Second // time without a change after which a check for drift begins
	maxPostponed = 5           // a check for drift is postponed by at most this number of its intervals
)

// durations has the durations of the last two runs of a task.
type durations [2]time.Duration

func (d *durations) add(took time.Duration) { d[0], d[1] = d[1], took }

// shorter returns the shorter of the two: a busy machine can stop one run for seconds.
func (d durations) shorter() time.Duration { return min(d[0], d[1]) }

// Pass makes the kernel's state equal to the desired state once. Each step changes only
// differences. An object that fails does not affect the others.
type Pass struct {
	r *Reconciler
	scope
	Want     *Desired
	wire     *netdev.Wire
	under    *netdev.Underlay
	node     model.Node                // this node, with encapsulations that it offered until a short time ago
	ethernet []netdev.EthernetLink     // for direct
	locator  netip.Prefix              // locator of this node; zero: none
	Labels   Labels                    // networks whose labels the node receives
	Devices  map[string]*netdev.Device // by port
	attached map[int]datapath.Attachment
	Fabric   []FabricDevice
	facts    facts
	*fib.Compiled
	tried    *trial // nil: try was not called for the desired state
	compiled bool   // Compiled belongs to the desired state and facts of this pass
	renewing time.Duration
	merges   bool // GRODevice exists
	changes  datapath.Changes
	Took     time.Duration // without the recreation of the data path, which the next pass does not repeat
	Failures map[Object]Failure
	limit    error    // a table would exceed its limit, so nothing was written
	mended   []string // repaired drift
	gen      uint64
	// Small is the reason why superpackets are limited to 64 KiB; empty: the limit is BigSuperpacket.
	Small      string
	forwarding string        // result of netdev.ForwardingRefusesBig
	access     netdev.Access // of the networks with node_access that this node is connected to
}

// Unfit returns the reason why a port does not forward; nil: it forwards.
func (p *Pass) Unfit(port string) error {
	if f, failed := p.Failures[portObject(port)]; failed {
		return errors.New(f.Text)
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
	var all []string
	for _, f := range p.Failures {
		all = append(all, f.Text)
	}
	if len(all) == 0 {
		return "the reason is unknown; see the agent's log"
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// Pass makes a pass.
func (r *Reconciler) Pass(why Cause) { r.passOver(why, nil) }

// passOver makes a pass and returns it. tried is the result of try for the desired state, or nil if try was not called.
func (r *Reconciler) passOver(why Cause, tried *trial) *Pass {
	if r.ended {
		r.looked = time.Now()
		return r.Last
	}
	began := time.Now()
	ports := 0
	if r.Last != nil {
		ports = len(r.Last.Devices)
	}
	p := &Pass{r: r, scope: scope{cause: why, left: make(map[string]bool, ports), deleted: map[int]bool{}}, Want: r.Want, Devices: make(map[string]*netdev.Device, ports), tried: tried, gen: r.Generation, Compiled: &fib.Compiled{}, Failures: map[Object]Failure{}}
	if r.Last != nil {
		p.Small, p.forwarding = r.Last.Small, r.Last.forwarding
	}
	if p.Want == nil {
		p.Want = NewDesired(r.config.Node, model.Slice{}, r.IDs, nil)
		p.block(theState, "the store has not answered yet, so the desired state is unknown; the kernel's tables stay as they are")
		p.keepLast()
	} else {
		r.space.Do(func() error { p.walk(); return nil }) // on one thread: to change between threads takes longer than most steps for a port
	}
	p.Took = time.Since(began) - p.renewing
	switch {
	case why == Retrying:
		r.retryFrom = time.Now().Add(retriesShare * p.Took)
	case !p.isPartial():
		r.wholeTook.add(p.Took)
	}
	if why == Looking || why == Starting {
		r.looked = time.Now()
	}
	r.finish(p)
	return p
}

// walk runs the steps in order. It writes the tables before it attaches the programs that
// read them. It does both before a new device is up and sends packets.
func (p *Pass) walk() {
	p.handOver()
	p.findForeign()
	if err := p.look(); err != nil {
		p.keepLast()
		p.fail(theDevices, err)
		return
	}
	defer p.wire.Close()
	p.keepPins()
	p.connect()
	p.keepLocator()
	p.findLabels()
	p.compile()
	p.judgeSuperpackets()
	p.lowerFabric()   // before the tables, which may have a tunnel
	p.receiveLabels() // before the tables: with them, the programs answer tests of links and announce labels
	p.apply()
	p.merge()
	p.attach()
	p.retire()
	p.configure()
	p.raiseFabric()
	p.clear()
	p.keepAccess()
	p.resolve()
	p.announce()
}

// look finds the node's devices and its underlay devices. A partial pass looks up only the
// devices that it needs, and those that events have named.
func (p *Pass) look() error {
	p.r.devices.Expire()
	p.narrow = p.isNarrow()
	var err error
	if p.isPartial() && !p.r.Last.failed(theDevices) {
		err = p.lookAtNoticed()
	} else {
		err = p.r.devices.List()
	}
	if err != nil {
		return err
	}
	w := netdev.NewWire(p.r.devices, p.Want.Node, p.r.config, p.changed)
	if last := p.r.Last; last != nil && last.Want != nil {
		// The kernel reports no change of a sysctl, so a pass because of an event need not check them.
		w.Checked = func(port string) bool { return p.cause == Noticing && last.whole[port] }
		// Only the agent sets bandwidth limits, so a port that never had a limit needs no check.
		w.Limited = func(port string) bool {
			was, _ := last.Want.Port(port)
			return was.Bandwidth != (model.Bandwidth{}) || !last.whole[port]
		}
	}
	p.node = p.self()
	links, missing, err := p.r.fabric(p.r.devices, p.node, p.isPartial())
	if err != nil {
		w.Close()
		return err
	}
	for _, m := range missing {
		p.block(theUnderlay, m)
	}
	for _, l := range links {
		w.Fabric[l.Attrs().Name] = true
		if why, remedy := netdev.Unusable(l); why != "" {
			p.block(Object{kindDevice, l.Attrs().Name}, fmt.Sprintf("fabric device %s %s; %s", l.Attrs().Name, why, remedy))
		}
		p.Fabric = append(p.Fabric, FabricDevice{Link: l})
	}
	p.wire, p.under = w, netdev.NewUnderlay(p.r.space, links)
	if p.isPartial() && p.r.Last.hasUnderlayOf(p.node) {
		p.ethernet = p.r.Last.ethernet
	} else if p.ethernet, err = netdev.EthernetLinks(p.r.space, p.node, links); err != nil {
		p.fail(theUnderlay, err)
	}
	if p.narrow || !p.isPartial() {
		p.r.noticed = nil
	}
	return nil
}

// keepLast copies the results of the last pass, because this pass could not list the
// devices.
func (p *Pass) keepLast() {
	if l := p.r.Last; l != nil {
		p.Devices, p.Fabric, p.facts, p.Compiled = l.Devices, l.Fabric, l.facts, l.Compiled
		p.locator, p.Labels, p.access = l.locator, l.Labels, l.access
		for o, f := range l.Failures {
			if f.Next = (time.Time{}); o != theDevices { // nothing can be tried without the devices
				p.Failures[o] = f
			}
		}
	}
}

// connect finds or creates the ports' devices.
func (p *Pass) connect() {
	for _, port := range p.Want.Ports {
		d, unchanged := p.unchanged(port)
		switch {
		case unchanged && p.waits(portObject(port.Name)):
		case unchanged && p.isWhole(port, d):
			p.left[port.Name] = true
		default:
			var err error
			if d, err = p.wire.Connect(port); err != nil {
				p.fail(portObject(port.Name), err)
			}
		}
		if d != nil {
			p.Devices[port.Name] = d
		}
	}
}

// compile derives the tables from the desired state and the facts. If both are unchanged,
// it reuses the tables of the last pass. If try has compiled this state from the same facts, it reuses the tables of try.
func (p *Pass) compile() {
	last := p.r.Last
	p.facts.find(p.Devices, p.under)
	p.facts.links, p.facts.lastLabel, p.facts.silent, p.facts.services = p.testLinks(), p.Labels.Last, p.r.Silent, p.r.Services
	if p.r.Grouping != nil {
		p.facts.grouping = p.r.Grouping(p.Want.Slice)
	}
	if p.r.External != nil {
		p.facts.external = p.r.External(p.Want.Slice, func(a netip.Addr) string { return p.facts.unreachable(p.self(), a) })
	}
	if last != nil {
		p.Compiled = last.Compiled
		if last.compiled && (p.cause == Retrying || p.narrow) { // the kernel reports changes of its routes
			p.facts.known = last.facts.ways
		}
		if last.compiled && last.gen == p.gen && p.facts.equal(last.facts) {
			p.compiled, p.reused = true, true
			p.failRefused()
			return
		}
		if last.compiled && p.cause == asked {
			p.facts.known = last.facts.ways
		}
		if t := p.tried; t != nil && p.facts.equalButPorts(*t.facts) && t.Reconnect(t.facts.ports, p.facts.ports, numbers(p.r.Limits)) {
			p.Compiled, p.compiled = t.Compiled, true
			p.failRefused()
			return
		}
	}
	compiled, err := p.facts.compile(p.Want, numbers(p.r.Limits), true, p.Compiled)
	if err != nil {
		p.block(theTables, err.Error())
		if IsLimit(err) {
			p.limit = err
		}
		return
	}
	p.Compiled, p.compiled = compiled, true
	p.failRefused()
}

// failRefused reports the errors that concern single networks and objects.
func (p *Pass) failRefused() {
	for _, r := range p.Tables.Refused {
		p.block(Object{kindNetwork, r.Network}, r.Err.Error())
	}
	if p.Want.wrong != nil {
		p.block(theState, p.Want.wrong.Error())
	}
}

// apply makes the maps equal to the tables. It writes only the differences from the tables
// that it wrote last. It reads the maps only if their contents are not known. A pass that
// looks for drift starts a comparison of the maps in the background.
func (p *Pass) apply() {
	plane, written := p.r.Programs.Plane(), p.r.written
	switch {
	case !p.compiled, p.cause == Retrying && p.reused && p.waits(theTables):
		return
	case p.reused && written == p.Compiled && !p.renewed:
		if p.cause == Looking {
			p.r.compare()
		}
		return // no event of the kernel changes the contents of the maps
	}
	p.r.written = nil
	err := errUnknown
	if written != nil && !p.renewed {
		p.changes, err = plane.Update(p.Since(written))
	}
	unknown := err != nil // the maps' contents
	if unknown {
		before := p.changes
		p.changes, err = plane.Apply(p.All())
		p.changes.Updated += before.Updated
		p.changes.Deleted += before.Deleted
	}
	switch {
	case err == nil && p.reused:
		p.r.written = p.Compiled
	case err == nil:
		p.r.wrote(p.Compiled, p.Want.ids)
	default:
		if IsLimit(err) {
			p.limit = err
		}
		p.fail(theTables, fmt.Errorf("write the tables: %w", err))
	}
	n := p.changes.Updated + p.changes.Deleted
	if n > 0 && p.reused && !p.renewed && !p.r.Last.failed(theTables) {
		p.mended = append(p.mended, fmt.Sprintf("%d table entries differed", n))
	}
	if p.cause == Looking && !unknown {
		p.r.compare() // this pass did not read the entries that it did not write
	}
}

// retire removes older maps if no program uses them. It must not wait for a check for drift, which
// may come late after a slow start.
func (p *Pass) retire() {
	if p.isPartial() || !p.compiled || p.failed(theTables) {
		return
	}
	if err := p.r.Programs.Plane().Retire(); err != nil {
		p.fail(theTables, fmt.Errorf("remove older maps: %w", err))
	}
	p.r.Programs.Pins.NoteRetired()
}

// wrote notes that the maps have the tables, and frees the ids of objects that are not in the
// tables any more. Before, entries of the maps may have referred to these ids.
func (r *Reconciler) wrote(tables *fib.Compiled, ids *fib.IDs) {
	r.written = tables
	ids.Prune()
}

// errUnknown: the contents of the maps are not known.
var errUnknown = errors.New("the contents of the maps are not known")

// configure configures the workloads' devices and sets them up.
func (p *Pass) configure() {
	for _, port := range p.Want.Ports {
		d, connected := p.Devices[port.Name]
		if !connected || p.failed(portObject(port.Name)) {
			continue
		}
		vif, ok := p.Tables.Vifs[uint32(d.Index())]
		if !ok {
			continue // compile failed, and has recorded a problem of the node
		}
		if p.left[port.Name] && vif.MTU == p.r.Last.Tables.Vifs[uint32(d.Index())].MTU && (p.Small == "") == (p.r.Last.Small == "") {
			continue
		}
		network, _ := p.Want.Network(port.Network)
		if err := p.wire.Configure(port, d, netdev.DeviceConfigOf(network, port), int(vif.MTU)); err != nil {
			p.fail(portObject(port.Name), err)
		}
	}
}

// clear deletes the device pairs of deleted ports. It detaches the programs and removes the
// bandwidth limits from devices that are neither a port's device nor a fabric device.
func (p *Pass) clear() {
	used := make(map[int]bool, len(p.Devices))
	for _, d := range p.Devices {
		used[d.Index()] = true
	}
	isWanted := func(port string) bool {
		_, is := p.Want.Port(port)
		return is
	}
	for _, l := range p.wire.Strays(used, isWanted) {
		stray := Object{kindDevice, l.Attrs().Name}
		if p.waits(stray) {
			continue
		}
		if err := p.wire.Remove(l); err != nil {
			p.fail(stray, err)
			continue
		}
		port, _ := netdev.PortOf(p.Want.Node, l.Attrs().Alias)
		p.r.log.Info("port changed", "port", port, "change", "device pair removed: "+l.Attrs().Name)
	}
	for _, f := range p.Fabric {
		used[f.Link.Attrs().Index] = true
	}
	for index := range p.attached {
		device := Object{kindDevice, strconv.Itoa(index)}
		if used[index] || p.waits(device) {
			continue
		}
		if err := p.wire.RemoveLimit(index); err != nil {
			p.fail(device, err)
			continue
		}
		if err := p.r.Programs.Plane().Detach(index); err != nil {
			p.fail(device, fmt.Errorf("detach the programs from device %d: %w", index, err))
			continue
		}
		delete(p.attached, index)
	}
}

// resolve makes the kernel keep the MAC addresses of the tunnels' next hops resolved.
func (p *Pass) resolve() {
	want := map[netdev.Neighbour]bool{}
	for _, n := range p.Tables.Nexthops {
		for _, path := range n.Ways() {
			want[netdev.Neighbour{OIF: int(path.Oif), Address: path.Gateway.Addr()}] = true
		}
	}
	if err := p.r.neighbours.Keep(want); err != nil {
		p.fail(theNeighbours, err)
	}
}
