package ipfix

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// memory is a Store in memory. The agent's tests use the map in the kernel.
type memory map[datapath.FlowID]datapath.Report

func (m memory) Load() (map[datapath.FlowID]datapath.Report, error) {
	return map[datapath.FlowID]datapath.Report{}, nil
}

func (m memory) Save(reports map[datapath.FlowID]datapath.Report, ended []datapath.FlowID) error {
	for id, r := range reports {
		m[id] = r
	}
	for _, id := range ended {
		delete(m, id)
	}
	return nil
}

func (m memory) Close() error  { return nil }
func (m memory) Remove() error { return nil }

// collector is the UDP socket of a collector.
type collector struct{ *net.UDPConn }

func listen(t *testing.T, at string) collector {
	t.Helper()
	c := must.Get(net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(at))))(t)
	t.Cleanup(func() { c.Close() })
	must.Succeed(t, c.SetReadBuffer(1<<20))
	return collector{c}
}

func (c collector) address() netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }

// messages reads the messages that have arrived. It checks their headers, the names of networks, and that the length of
// each set is a multiple of the length of its template.
func (c collector) messages(t *testing.T, domain, sequence uint32) (records, templates int) {
	t.Helper()
	lengths := map[uint16]int{}
	b := make([]byte, 65536)
	for {
		must.Succeed(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
		n, err := c.Read(b)
		if err != nil {
			return records, templates
		}
		m := b[:n]
		if n > 1232 || binary.BigEndian.Uint16(m) != 10 || int(binary.BigEndian.Uint16(m[2:])) != n {
			t.Fatalf("a message of %d bytes has the header %x, want version 10, this length, and at most 1232 bytes", n, m[:16])
		}
		if got := binary.BigEndian.Uint32(m[8:]); got != sequence || binary.BigEndian.Uint32(m[12:]) != domain {
			t.Errorf("a message has sequence number %d and domain %d, want %d and %d", got, binary.BigEndian.Uint32(m[12:]), sequence, domain)
		}
		for m = m[16:]; len(m) > 0; {
			id, set := binary.BigEndian.Uint16(m), m[4:binary.BigEndian.Uint16(m[2:])]
			m = m[4+len(set):]
			switch {
			case id == 2 || id == 3:
				templates += readTemplates(set, int(id-2), lengths)
			case id == 260:
				sequence++
				if got, want := string(bytes.TrimRight(set[4:], "\x00")), map[uint32]string{7: "red", 8: "blue"}[binary.BigEndian.Uint32(set)]; got != want {
					t.Errorf("network %d has the name %q, want %q", binary.BigEndian.Uint32(set), got, want)
				}
			case len(set)%lengths[id] != 0 || lengths[id] == 0:
				t.Errorf("set %d has %d bytes, want a multiple of %d, the length of its template", id, len(set), lengths[id])
			default:
				records += len(set) / lengths[id]
				sequence += uint32(len(set) / lengths[id])
			}
		}
	}
}

// readTemplates adds the lengths of templates, and returns their number. options: 1 for options templates, else 0.
func readTemplates(b []byte, options int, lengths map[uint16]int) (n int) {
	for ; len(b) > 0; n++ {
		id, fields := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		b = b[4+2*options:]
		for range fields {
			lengths[id] += int(binary.BigEndian.Uint16(b[2:]))
			b = b[4:]
		}
	}
	return n
}

func exporterTo(t *testing.T, to netip.AddrPort) (*Exporter, memory) {
	t.Helper()
	e, store := New("a", func(a netip.AddrPort) (net.Conn, error) { return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a)) }), memory{}
	e.Learn(map[uint32]Port{1: {7, 3}}, map[uint32]string{7: "red", 8: "blue"})
	must.Succeed(t, e.Configure(model.FlowExport{Collector: model.Collector{AddrPort: to}, Active: model.Duration(time.Minute), Idle: model.Duration(10 * time.Second)}, func() (Store, error) { return store, nil }))
	t.Cleanup(func() { e.Close() })
	return e, store
}

// key returns the key of a flow by a number.
func key(n int, protocol uint8, v6 bool) datapath.FlowKey {
	local, remote := netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("10.0.0.4")
	if v6 {
		local, remote = netip.MustParseAddr("fd00::3"), netip.MustParseAddr("fd00::4")
	}
	return datapath.FlowKey{Vif: 1, Protocol: protocol, Local: netip.AddrPortFrom(local, uint16(n)), Remote: netip.AddrPortFrom(remote, 80)}
}

func TestMessagesMatchTheirTemplates(t *testing.T) {
	c := listen(t, "127.0.0.1:0")
	e, _ := exporterTo(t, c.address())
	now := time.Now()
	for range 2 {
		sequence := e.sequence
		watch := e.Begin(now, true)
		for n := range 200 {
			for _, protocol := range []uint8{6, 17, 1, 58} {
				k := key(n, protocol, protocol == 58 || n%2 == 0)
				f := datapath.Flow{Created: uint64(now.Unix()), Packets: [2]uint64{3, 2}, Bytes: [2]uint64{300, 200}}
				if n%3 == 0 {
					f.Pool = k.Remote
				}
				watch(k, f, datapath.FlowStays)
			}
		}
		must.Succeed(t, e.End())
		if records, templates := c.messages(t, e.domain, sequence); records != 1600 || templates != 9 {
			t.Errorf("%d records and %d templates, want 1600 and 9", records, templates)
		}
		now = now.Add(templateTime) // the next round has other flows, and sends the templates again
	}
}

func TestAFlowIsExportedWhenItIsDue(t *testing.T) {
	second := time.Second
	for name, c := range map[string]struct {
		flow datapath.Flow
		end  datapath.FlowEnd
		want Reason
	}{
		"young":                        {datapath.Flow{Age: 50 * second}, datapath.FlowStays, 0},
		"long":                         {datapath.Flow{Age: 70 * second}, datapath.FlowStays, ActiveTimeout},
		"idle":                         {datapath.Flow{Age: 50 * second, Idle: 11 * second}, datapath.FlowStays, IdleTimeout},
		"closed less than minIdle ago": {datapath.Flow{Closed: true}, datapath.FlowStays, 0},
		"closed":                       {datapath.Flow{Closed: true, Idle: 2 * second}, datapath.FlowStays, EndOfFlow},
		"closed and deleted":           {datapath.Flow{Closed: true}, datapath.FlowExpired, EndOfFlow},
		"idle and deleted":             {datapath.Flow{}, datapath.FlowExpired, IdleTimeout},
		"evicted":                      {datapath.Flow{}, datapath.FlowEvicted, LackOfResources},
		"of a deleted port":            {datapath.Flow{}, datapath.FlowOrphan, ForcedEnd},
		"to a service":                 {datapath.Flow{Age: 70 * second, Service: true}, datapath.FlowStays, 0},
	} {
		e, store := exporterTo(t, listen(t, "127.0.0.1:0").address())
		c.flow.Packets, c.flow.Bytes = [2]uint64{0, 2}, [2]uint64{0, 200}
		e.Begin(time.Now(), false)(key(1, 17, false), c.flow, c.end)
		var reasons, want []Reason
		for _, r := range e.queue {
			reasons = append(reasons, r.Reason)
			if r.Packets != 2 || r.Bytes != 200-2*14 || !r.ToWorkload || r.Source.Port() != 80 || r.VRF != 7 || r.Interface != 3 {
				t.Errorf("%s: record %+v, want 2 packets of 172 bytes to the workload, from port 80, network 7, interface 3", name, r)
			}
		}
		if c.want != 0 {
			want = []Reason{c.want}
		}
		must.Succeed(t, e.End())
		if stays := c.want != 0 && c.end == datapath.FlowStays; !slices.Equal(reasons, want) || (len(store) == 1) != stays {
			t.Errorf("%s: records with the reasons %v, want %v; the store has %d reports, want one (%v) if the flow stays", name, reasons, want, len(store), stays)
		}
	}
}

func TestTheStoreForgetsFlowsThatEnd(t *testing.T) {
	e, store := exporterTo(t, listen(t, "127.0.0.1:0").address())
	flow := datapath.Flow{Packets: [2]uint64{3, 0}, Bytes: [2]uint64{300, 0}}
	expect := func(end datapath.FlowEnd, reports int) {
		t.Helper()
		e.Begin(time.Now(), true)(key(1, 17, false), flow, end)
		must.Succeed(t, e.End())
		must.Equal(t, reports, len(store))
	}
	expect(datapath.FlowStays, 1)
	expect(datapath.FlowExpired, 0)
}

// While no collector listens, records wait. Each record counts the packets since the previous record of the flow.
func TestRecordsWaitForTheCollector(t *testing.T) {
	c := listen(t, "127.0.0.1:0")
	at := c.address()
	must.Succeed(t, c.Close())
	e, store := exporterTo(t, at)
	f := datapath.Flow{Packets: [2]uint64{10, 0}, Bytes: [2]uint64{1000, 0}}
	for round := uint64(1); e.Problem() == "" && round < 100; round++ { // the kernel reports the refusal of a message at the next one
		f.Packets[0], f.Bytes[0] = 10*round, 1000*round
		e.Begin(time.Now(), true)(key(1, 17, false), f, datapath.FlowStays)
		must.Succeed(t, e.End())
	}
	waiting := len(e.queue)
	if e.Problem() == "" || e.Counts().Failed == 0 || waiting == 0 || e.queue[0].Packets != 10 || e.queue[0].Bytes != 1000-10*14 {
		t.Fatalf("problem %q, counts %+v, queue %+v; want a problem, and a waiting record of 10 packets", e.Problem(), e.Counts(), e.queue)
	}
	c = listen(t, at.String())
	e.Begin(time.Now(), false)
	must.Succeed(t, e.End())
	if records, _ := c.messages(t, e.domain, 0); records != waiting || e.Problem() != "" || len(store) != 1 {
		t.Errorf("the collector got %d records, problem %q, the store has %d reports; want %d records, no problem, one report", records, e.Problem(), len(store), waiting)
	}
}

// field returns the bytes of an information element of a record.
func (r *Record) field(t *testing.T, element uint16) []byte {
	t.Helper()
	b := r.encode()
	for _, f := range templates()[r.set()] {
		if f.element == element {
			return b[:f.length]
		}
		b = b[f.length:]
	}
	t.Fatalf("the template of set %d has no element %d", r.set(), element)
	return nil
}

// Both directions of a translated flow have the addresses and ports as they are before and after NAT.
func TestRecordsHaveTheAddressesAfterNAT(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		elements, pool := []uint16{8, 12, 225, 226}, netip.MustParseAddrPort("203.0.113.8:5000")
		if v6 {
			elements, pool = []uint16{27, 28, 281, 282}, netip.MustParseAddrPort("[2001:db8:77::8]:5000")
		}
		for _, protocol := range []uint8{6, map[bool]uint8{false: 1, true: 58}[v6]} {
			k := key(53, protocol, v6) // the outside is the local end of the flow
			for direction, want := range [][4]netip.AddrPort{{k.Local, pool, k.Local, k.Remote}, {k.Remote, k.Local, pool, k.Local}} {
				r := record(k, &datapath.Flow{Pool: pool}, &datapath.Report{}, direction, IdleTimeout, time.Now(), Port{})
				for i, element := range elements {
					if got, _ := netip.AddrFromSlice(r.field(t, element)); got != want[i].Addr() {
						t.Errorf("protocol %d, direction %d: element %d is %s, want %s", protocol, direction, element, got, want[i].Addr())
					}
					if ports := []uint16{7, 11, 227, 228}; protocol == 6 && binary.BigEndian.Uint16(r.field(t, ports[i])) != want[i].Port() {
						t.Errorf("direction %d: element %d is %x, want port %d", direction, ports[i], r.field(t, ports[i]), want[i].Port())
					}
				}
			}
		}
	}
}
