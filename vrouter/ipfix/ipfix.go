// Package ipfix sends the flows of a node to a collector (IPFIX, RFC 7011, over UDP). Each direction of a flow has separate
// records. A record counts the packets since the previous record. The exporter makes a record when the flow is idle,
// closed or deleted, or when the active time has passed since the previous record.
package ipfix

import (
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// Exporter makes records of flows and sends them. Only one goroutine may call its methods, except Counts and Problem.
type Exporter struct {
	dial     func(collector netip.AddrPort) (net.Conn, error)
	settings model.FlowExport
	store    Store
	conn     net.Conn // nil: not connected
	domain   uint32
	sequence uint32
	resend   time.Time // when to send the templates again
	now      time.Time // of the pass
	all      bool      // export all flows in this pass

	ports    map[uint32]Port   // by vif id; with deleted ports, whose flows may still end
	networks map[uint32]string // by VRF
	reports  map[datapath.FlowID]datapath.Report
	changed  map[datapath.FlowID]datapath.Report // not yet saved in the store
	ended    []datapath.FlowID                   // not yet deleted from the store
	queue    []Record

	sent, failed, lost atomic.Uint64
	problem            atomic.Pointer[string]
}

// Store keeps the reports when no agent runs.
type Store interface {
	Load() (map[datapath.FlowID]datapath.Report, error)
	Save(reports map[datapath.FlowID]datapath.Report, ended []datapath.FlowID) error
	Close() error
	Remove() error // deletes the stored reports, and closes
}

// Port has the fields of a port that records contain.
type Port struct{ VRF, Interface uint32 }

// Counts are numbers since the start of the exporter.
type Counts struct {
	Sent   uint64 // records
	Failed uint64 // failed attempts to send; the records stay in the queue
	Lost   uint64 // records that were deleted because the queue was full
}

const (
	templateTime = 30 * time.Second // templates are sent again after this time
	maxQueue     = 1 << 16          // records
	maxWait      = 5 * time.Second
	minIdle      = time.Second // a closed flow is exported after this time without packets
	ethernet     = 14          // bytes of an Ethernet header
)

// New makes an exporter. Its observation domain is a hash of the node's name. dial connects to the collector over UDP.
func New(node string, dial func(netip.AddrPort) (net.Conn, error)) *Exporter {
	h := fnv.New32a()
	h.Write([]byte(node))
	return &Exporter{domain: h.Sum32() | 1, dial: dial, ports: map[uint32]Port{}} // not 0, which stands for the whole device
}

// Learn sets the names of the networks, by VRF, and adds ports by vif id.
func (e *Exporter) Learn(ports map[uint32]Port, networks map[uint32]string) {
	maps.Copy(e.ports, ports)
	e.networks = networks
}

// Settings returns the current settings.
func (e *Exporter) Settings() model.FlowExport { return e.settings }

// Configure starts, changes or stops the export. open opens the store.
func (e *Exporter) Configure(settings model.FlowExport, open func() (Store, error)) error {
	e.disconnect()
	if e.settings = settings; !settings.IsOn() {
		err := e.store.Remove()
		e.store, e.reports, e.queue, e.changed, e.ended = nil, nil, nil, nil, nil
		e.problem.Store(nil)
		return err
	}
	if e.store != nil {
		return nil
	}
	store, err := open()
	if err != nil {
		e.settings = model.FlowExport{}
		return fmt.Errorf("export flows: %w", err)
	}
	e.store, e.changed = store, map[datapath.FlowID]datapath.Report{}
	e.reports, err = store.Load()
	return err
}

// Wait returns the time between two passes over the flows; 0: flows are not exported.
func (e *Exporter) Wait() time.Duration {
	return min(time.Duration(min(e.settings.Active, e.settings.Idle))/2, maxWait)
}

// Begin starts a pass over the flow table. all: export all flows. It returns the function to call for each flow; nil: the
// export is off.
func (e *Exporter) Begin(now time.Time, all bool) datapath.FlowWatch {
	if !e.settings.IsOn() {
		return nil
	}
	e.now, e.all = now, all
	return e.flow
}

// flow queues records of a flow if it is time to export it.
func (e *Exporter) flow(k datapath.FlowKey, f datapath.Flow, end datapath.FlowEnd) {
	if f.Service {
		return
	}
	if end != datapath.FlowStays {
		e.now = time.Now() // Apply deletes flows, too, outside a pass
	}
	id := datapath.FlowID{Key: k, Created: f.Created}
	last, reported := e.reports[id]
	if reason := e.due(&f, last.Until, end); reason != 0 && f.Packets != last.Packets {
		next := datapath.Report{Packets: f.Packets, Bytes: f.Bytes, Until: e.now.Add(-f.Idle).UnixMilli()}
		for direction := range 2 {
			if f.Packets[direction] != last.Packets[direction] {
				e.push(record(k, &f, &last, direction, reason, e.now, e.ports[k.Vif]))
			}
		}
		if end == datapath.FlowStays {
			e.reports[id], e.changed[id] = next, next
		}
	}
	if reported && end != datapath.FlowStays {
		delete(e.reports, id)
		delete(e.changed, id)
		e.ended = append(e.ended, id)
	}
}

// due returns the reason to export a flow now; 0: do not export it. until: Report.Until; 0: the flow was never exported.
func (e *Exporter) due(f *datapath.Flow, until int64, end datapath.FlowEnd) Reason {
	age := f.Age
	if until != 0 {
		age = e.now.Sub(time.UnixMilli(until))
	}
	switch {
	case end == datapath.FlowEvicted:
		return LackOfResources
	case end == datapath.FlowOrphan:
		return ForcedEnd
	case f.Closed && (end == datapath.FlowExpired || f.Idle >= minIdle):
		return EndOfFlow
	case end == datapath.FlowExpired, f.Idle >= time.Duration(e.settings.Idle):
		return IdleTimeout
	case age >= time.Duration(e.settings.Active):
		return ActiveTimeout
	case e.all:
		return ForcedEnd
	}
	return 0
}

func (e *Exporter) push(r Record) {
	if len(e.queue) >= maxQueue {
		e.queue = e.queue[1:]
		e.lost.Add(1)
	}
	e.queue = append(e.queue, r)
}

// record returns the record of one direction of a flow since its last report. direction: index of Flow.Packets.
func record(k datapath.FlowKey, f *datapath.Flow, last *datapath.Report, direction int, reason Reason, now time.Time, p Port) Record {
	r := Record{
		Source: k.Local, Destination: k.Remote, Protocol: k.Protocol, ToWorkload: direction == 1,
		Packets: f.Packets[direction] - last.Packets[direction], Bytes: f.Bytes[direction] - last.Bytes[direction],
		Start: now.Add(-f.Age), End: now.Add(-f.Idle), Reason: reason, Interface: p.Interface, VRF: p.VRF, Dropped: f.Drop,
		ICMP: f.ICMP,
	}
	r.Bytes -= ethernet * r.Packets
	if last.Until != 0 {
		r.Start = time.UnixMilli(last.Until)
	}
	if r.Start.After(r.End) {
		r.Start = r.End
	}
	if r.ToWorkload {
		r.Source, r.Destination = k.Remote, k.Local
	}
	if f.Pool.IsValid() { // the vif connects the node: to its "workload" is out of the network
		r.PostSource, r.PostDestination = r.Source, r.Destination
		if r.ToWorkload {
			r.PostSource = f.Pool
		} else {
			r.Destination = f.Pool
		}
	}
	if answer, has := icmpAnswers[f.ICMP]; has && f.Reply != r.ToWorkload {
		r.ICMP = answer
	}
	for flag, set := range map[uint8]bool{1: f.FIN, 2: f.SYN, 4: f.RST, 16: f.Established} {
		if set {
			r.TCP |= flag
		}
	}
	return r
}

// icmpAnswers are the types of ICMP and ICMPv6 replies, by the type of the request.
var icmpAnswers = map[uint8]uint8{8: 0, 13: 14, 15: 16, 17: 18, 128: 129}

// End ends a pass: it sends the queue, and then saves the reports.
func (e *Exporter) End() error {
	if !e.settings.IsOn() {
		return nil
	}
	if err := e.send(); err != nil {
		e.failed.Add(1)
		text := fmt.Sprintf("send flows to the collector %s: %v; check settings.flow_export and the route to the collector", e.settings.Collector, err)
		e.problem.Store(&text)
		e.disconnect()
		return nil // the next pass sends the queue again
	}
	e.problem.Store(nil)
	err := e.store.Save(e.changed, e.ended)
	clear(e.changed)
	e.ended = nil
	return err
}

// send sends the queue. If a message fails, its records and the later ones stay in the queue.
func (e *Exporter) send() (err error) {
	if len(e.queue) > 0 && e.conn == nil {
		if e.conn, err = e.dial(e.settings.Collector.AddrPort); err != nil {
			e.conn = nil
			return err
		}
		e.sequence, e.resend = 0, time.Time{}
	}
	for len(e.queue) > 0 {
		if !e.now.Before(e.resend) {
			if err := e.sendTemplates(); err != nil {
				return err
			}
		}
		var m message
		n := 0
		for n < len(e.queue) && m.add(e.queue[n].set(), e.queue[n].encode()) {
			n++
		}
		if err := e.write(&m); err != nil {
			return err
		}
		e.sent.Add(uint64(n))
		e.queue = e.queue[n:]
	}
	e.queue = nil
	return nil
}

// sendTemplates sends the templates and the names of the networks.
func (e *Exporter) sendTemplates() error {
	var m message
	m.addTemplates()
	for vrf, name := range e.networks {
		if m.add(namesSet, nameOf(vrf, name)) {
			continue
		}
		if err := e.write(&m); err != nil {
			return err
		}
		m = message{}
		m.add(namesSet, nameOf(vrf, name))
	}
	if err := e.write(&m); err != nil {
		return err
	}
	e.resend = e.now.Add(templateTime)
	return nil
}

func (e *Exporter) write(m *message) error {
	if _, err := e.conn.Write(m.finish(e.domain, e.sequence, e.now)); err != nil {
		return err
	}
	e.sequence += m.records
	return nil
}

func (e *Exporter) disconnect() {
	if e.conn != nil {
		e.conn.Close()
		e.conn = nil
	}
}

// Close closes the connection and the store. The reports remain for the next exporter.
func (e *Exporter) Close() error {
	e.disconnect()
	if e.store == nil {
		return nil
	}
	return e.store.Close()
}

// Counts returns the numbers since the start.
func (e *Exporter) Counts() Counts { return Counts{e.sent.Load(), e.failed.Load(), e.lost.Load()} }

// Problem returns the error of the last pass; "": none.
func (e *Exporter) Problem() string {
	if p := e.problem.Load(); p != nil {
		return *p
	}
	return ""
}
