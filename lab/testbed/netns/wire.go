package netns

import (
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/delayline"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// wire is the fabric's namespace: a port for each NIC, a switch between the ports, and a
// clock for the work of both.
type wire struct {
	space    *space.Space
	objects  wireObjects
	links    []link.Link     // attach the programs of the clock
	unmetred string          // why the clock does not run; empty where it does
	ports    []string        // device names, for the meter
	hops     []delayline.Hop // devices of the delay lines, by link and node; empty if links have no delay
	lines    []*delayline.Process

	countPlaces bool
}

// queueLength is the number of superframes or frames that wait at a port or a NIC while the
// next ring is full. It limits the data in flight of several streams: 10,000 frames of 1,500
// bytes are 15 MB. TCP's limit (small queues) has no effect here, because clones of the
// packets wait (nic_transmit).
const queueLength = 10_000

func newWire(name string, f suite.Fabric, countPlaces bool) (*wire, error) {
	s, err := space.Create(name)
	if err != nil {
		return nil, err
	}
	w := &wire{space: s}
	if err := w.load(f, countPlaces); err != nil {
		return nil, errors.Join(err, w.close(), space.Delete(name))
	}
	return w, nil
}

func (w *wire) load(f suite.Fabric, countPlaces bool) error {
	spec, err := loadWire()
	if err != nil {
		return fmt.Errorf("read the wire's program: %w", err)
	}
	inode, err := w.space.Inode()
	if err != nil {
		return err
	}
	flag := func(b bool) (n uint32) {
		if b {
			n = 1
		}
		return n
	}
	v := spec.Variables
	if err := errors.Join(
		v[wireVarWireNetns].Set(inode),
		v[wireVarNicQueues].Set(uint32(f.Queues)), v[wireVarByAdapter].Set(flag(f.Steering == suite.ByMAC)),
		v[wireVarCountPlaces].Set(flag(countPlaces)), v[wireVarDelayed].Set(flag(f.Delay > 0)),
	); err != nil {
		return fmt.Errorf("prepare the wire's program: %w", err)
	}
	w.countPlaces = countPlaces
	err = spec.LoadAndAssign(&w.objects, nil)
	if err == nil {
		return nil
	}
	// Without the tracing programs the wire works, but its work cannot be timed.
	w.unmetred = fmt.Sprintf("this kernel refuses the programs that time it (BPF tracepoints with BTF, Linux 5.5): %v", err)
	for _, p := range []string{wireProgClockReceive, wireProgClockGro, wireProgClockDequeue, wireProgClockSoftirqEntry, wireProgClockSoftirqExit} {
		delete(spec.Programs, p)
	}
	type carrier struct {
		Wire        *ebpf.Program `ebpf:"wire"`
		Steer       *ebpf.Program `ebpf:"steer"`
		NicTransmit *ebpf.Program `ebpf:"nic_transmit"`
		NicReceive  *ebpf.Program `ebpf:"nic_receive"`
		wireMaps
	}
	var c carrier
	if err := spec.LoadAndAssign(&c, nil); err != nil {
		return fmt.Errorf("load the wire's program (needs Linux 5.4 with BPF and CAP_BPF): %w", err)
	}
	w.objects.Wire, w.objects.Steer, w.objects.NicTransmit, w.objects.NicReceive, w.objects.wireMaps = c.Wire, c.Steer, c.NicTransmit, c.NicReceive, c.wireMaps
	return nil
}

// CompleteTransmit makes a veth complete the transmission of TCP packets on the sender's CPU, as
// a NIC does, and not on the receiver's: nic_transmit in bpf/wire.c.
func CompleteTransmit(s *space.Space, device string) error {
	spec, err := loadWire()
	if err != nil {
		return fmt.Errorf("read the NIC's program: %w", err)
	}
	p, err := ebpf.NewProgram(spec.Programs[wireProgNicTransmit])
	if err != nil {
		return fmt.Errorf("load the NIC's program (needs Linux 5.4 with BPF and CAP_BPF): %w", err)
	}
	defer p.Close() // the device holds it from then on
	l, err := s.Link(device)
	if err != nil {
		return err
	}
	return attachProgram(s, l, netlink.HANDLE_MIN_EGRESS, p, wireProgNicTransmit)
}

// startClock attaches the programs that measure the time of the wire's work.
func (w *wire) startClock(f suite.Fabric) {
	if w.unmetred != "" {
		return
	}
	o := &w.objects
	programs := []*ebpf.Program{o.ClockReceive, o.ClockDequeue, o.ClockSoftirqEntry, o.ClockSoftirqExit}
	if f.Offload == suite.OffloadNone || f.Loss > 0 || w.countPlaces { // devices of the wire use NAPI only with the first two; tests count with the third
		programs = append(programs, o.ClockGro)
	}
	for _, p := range programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			w.unmetred = fmt.Sprintf("this kernel does not attach the programs that time it: %v", err)
			w.stopClock()
			return
		}
		w.links = append(w.links, l)
	}
}

func (w *wire) stopClock() {
	for _, l := range w.links {
		l.Close()
	}
	w.links = nil
}

// clock returns the CPU seconds that the wire has used, by CPU.
func (w *wire) clock() (map[int]float64, error) {
	if w.unmetred != "" {
		return nil, nil
	}
	var perCPU []wireClock
	if err := w.objects.Clocks.Lookup(uint32(0), &perCPU); err != nil {
		return nil, fmt.Errorf("read the wire's clock: %w", err)
	}
	used := make(map[int]float64, len(perCPU))
	for cpu, c := range perCPU {
		used[cpu] = (float64(c.BusyNs) - float64(c.OnLineNs)) / 1e9 // the delay lines' own CPU time includes OnLineNs
	}
	for _, p := range w.lines {
		cpu, seconds, err := p.Clock()
		if err != nil {
			return nil, err
		}
		used[cpu] += seconds
	}
	return used, nil
}

// configurePort configures a port that was made in the wire's namespace.
func (w *wire) configurePort(port string, f suite.Fabric) error {
	on, err := w.space.OffloadsOn(port)
	if err != nil {
		return err
	}
	off := testbed.NICOffloads(on, suite.OffloadNone) // so the port segments in place of the NIC
	off["tx-checksum-ip-generic"] = f.RxChecksum == suite.RxChecksumAll
	// A NIC without segmentation sends wire frames one by one. With GRO on, a veth
	// receives such frames through a ring, and a full ring stops the sender's queue.
	// Without GRO they would go through the CPU's backlog, which drops frames. The other
	// port cuts the merged frames again.
	off["rx-gro"] = f.Offload == suite.OffloadNone
	if err := w.space.Offloads(port, off); err != nil {
		return err
	}
	if err := w.space.DeviceSysctl("ipv6", port, "disable_ipv6", "1"); err != nil {
		return err
	}
	l, err := w.space.Link(port)
	if err != nil {
		return err
	}
	if err := lengthen(w.space, l); err != nil {
		return err
	}
	if err := w.queueing(l, f); err != nil {
		return err
	}
	if err := attachProgram(w.space, l, netlink.HANDLE_MIN_INGRESS, w.objects.Wire, wireProgWire); err != nil {
		return err
	}
	if f.Queues > 1 {
		if err := addFilter(w.space, l, netlink.HANDLE_MIN_EGRESS, filterPriority, w.objects.Steer, wireProgSteer); err != nil {
			return err
		}
	}
	w.ports = append(w.ports, port)
	if err := w.space.Up(port); err != nil {
		return err
	}
	if f.Offload == suite.OffloadNone && f.Queues > 1 { // it polls, too
		if err := numberQueues(w.space, l); err != nil {
			return err
		}
	}
	if f.RxChecksum == suite.RxChecksumOuter {
		if err := w.verifyOuter(l); err != nil {
			return err
		}
	}
	if f.Loss > 0 {
		if err := w.configureLoss(port, f); err != nil {
			return err
		}
	}
	if f.Delay > 0 {
		return w.configureDelay(port, f)
	}
	return nil
}

// queueing gives a transmitting veth a queue. A full ring of the peer then stops the queue
// instead of dropping (Linux 6.16, drivers/net/veth.c).
func (w *wire) queueing(l netlink.Link, f suite.Fabric) error {
	if f.Rate == 0 {
		return addQueue(w.space, l, f.Queues)
	}
	// The burst holds 4 ms at the rate, so that a timer that is late on a busy CPU
	// loses no rate: with 1 ms a link of 10 Gbit/s carried 7 to 9.7. It is never less
	// than a superframe, which TBF would else cut by itself. The queue holds 8 ms, at least
	// 256 KiB. Up to 262 Mbit/s it holds 173 frames of 1500 bytes. The limit is the send buffer of
	// a raw socket: with more than about 185 queued frames a send fails with ENOBUFS, and
	// Weave's router closes its connection.
	rate := uint64(f.Rate) / 8
	burst := max(rate/250, 64<<10+uint64(f.MTU))
	ticks := float64(burst) * 1e6 / float64(rate) * netlink.TickInUsec()
	q := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
		Rate:       rate,
		Buffer:     uint32(min(ticks, math.MaxUint32)),
		Limit:      uint32(max(2*burst, 256<<10)),
	}
	if err := w.space.Links.QdiscAdd(q); err != nil {
		return fmt.Errorf("limit %s to %d bit/s (TBF; needs CONFIG_NET_SCH_TBF): %w", l.Attrs().Name, f.Rate, err)
	}
	return nil
}

// lengthen must run before the queue is added, which takes its limit from the device.
func lengthen(s *space.Space, l netlink.Link) error {
	if err := s.Links.LinkSetTxQLen(l, queueLength); err != nil {
		return fmt.Errorf("set the queue length of %s: %w", l.Attrs().Name, err)
	}
	return nil
}

func addQueue(s *space.Space, l netlink.Link, queues int) error {
	kind := "pfifo"
	if queues > 1 {
		kind = "mq" // one queue for each ring
	}
	q := &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
		QdiscType:  kind,
	}
	if err := s.Links.QdiscAdd(q); err != nil {
		return fmt.Errorf("give %s a %s queue: %w", l.Attrs().Name, kind, err)
	}
	return nil
}

// attachProgram attaches a BPF program to a device's tc hook as a clsact filter. The
// filter stays when this process ends, unlike a tcx link. A testbed must outlive
// `windtunnel lab up`, which makes it.
func attachProgram(s *space.Space, l netlink.Link, hook uint32, p *ebpf.Program, name string) error {
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0)}}
	if err := s.Links.QdiscAdd(clsact); err != nil {
		return fmt.Errorf("add clsact to %s (needs CONFIG_NET_SCH_INGRESS): %w", l.Attrs().Name, err)
	}
	return addFilter(s, l, hook, filterPriority, p, name)
}

// Programs run in the order of their priorities: a team chooses the NIC before
// the NIC transmits, and a mark is read before the wire redirects the frame.
const (
	teamPriority   = 1
	marksPriority  = 1
	verifyPriority = 1 // of nic_receive, at the egress of a port
	filterPriority = 2
)

// addFilter attaches a program to a device that has clsact.
func addFilter(s *space.Space, l netlink.Link, hook uint32, priority uint16, p *ebpf.Program, name string) error {
	filter := &netlink.BpfFilter{
		FilterAttrs:  netlink.FilterAttrs{LinkIndex: l.Attrs().Index, Parent: hook, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: priority},
		Fd:           p.FD(),
		Name:         name,
		DirectAction: true,
	}
	if err := s.Links.FilterAdd(filter); err != nil {
		return fmt.Errorf("attach the program %s to %s (needs CONFIG_NET_CLS_BPF): %w", name, l.Attrs().Name, err)
	}
	return nil
}

const maxPorts = 64 // of one segment; MAX_PORTS in bpf/wire.c

// join lets the ports of each segment (one for each parallel link) reach each
// other.
func (w *wire) join(segments [][]string, f suite.Fabric) error {
	for seg, names := range segments {
		if len(names) > maxPorts {
			return fmt.Errorf("%d nodes on one fabric: %d is the most", len(names), maxPorts)
		}
		var indexes, ways []uint32 // ifindexes of the ports, and of the devices out of which frames to them are sent
		for _, n := range names {
			index, way, err := w.way(n, f)
			if err != nil {
				return err
			}
			indexes, ways = append(indexes, index), append(ways, way)
		}
		for i, index := range indexes {
			p := wirePort{Segment: uint32(seg), Node: uint32(i)}
			if !bonded(f) { // the NICs of a team have the same addresses on every segment
				p.Stations = uint32(seg)
			}
			if len(indexes) == 2 {
				p.Peer = ways[1-i]
			}
			if err := w.objects.Ports.Put(index, p); err != nil {
				return fmt.Errorf("tell the wire of port %s: %w", names[i], err)
			}
			if err := w.objects.Members.Put(uint32(seg*maxPorts+i), ways[i]); err != nil {
				return fmt.Errorf("tell the wire of port %s: %w", names[i], err)
			}
		}
	}
	return nil
}

// way returns the index of a port, and the index of the device to which the wire sends frames for the port. This is the
// port, or the first of the devices that delay or lose frames before it.
func (w *wire) way(port string, f suite.Fabric) (index, way uint32, err error) {
	if index, err = w.index(port); err != nil {
		return 0, 0, err
	}
	way = index
	if f.RxChecksum == suite.RxChecksumOuter {
		if way, err = w.index(cutDevice(port)); err != nil {
			return 0, 0, err
		}
	}
	if f.Loss > 0 {
		near, far := lossDevices(port)
		arrival, err := w.index(far)
		if err != nil {
			return 0, 0, err
		}
		if err := w.objects.Ports.Put(arrival, wirePort{Peer: way}); err != nil {
			return 0, 0, fmt.Errorf("tell the wire of device %s: %w", far, err)
		}
		if way, err = w.index(near); err != nil {
			return 0, 0, err
		}
	}
	if f.Delay > 0 {
		hold, _ := delayDevices(port)
		from, err := w.index(hold)
		if err != nil {
			return 0, 0, err
		}
		w.hops = append(w.hops, delayline.Hop{From: int(from), To: int(way)})
		way = from
	}
	return index, way, nil
}

func (w *wire) index(device string) (uint32, error) {
	l, err := w.space.Link(device)
	if err != nil {
		return 0, err
	}
	return uint32(l.Attrs().Index), nil
}

// cut takes the carrier from both ends of a link.
func (w *wire) cut(ports []string) error {
	for _, port := range ports {
		l, err := w.space.Link(port)
		if err != nil {
			return err
		}
		if err := w.space.Links.LinkSetDown(l); err != nil {
			return fmt.Errorf("cut the link at %s: %w", port, err)
		}
	}
	return nil
}

// close closes the handles. The namespace and the attached programs stay.
func (w *wire) close() error {
	w.stopClock()
	return errors.Join(w.objects.Close(), w.space.Close())
}
