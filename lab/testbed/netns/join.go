package netns

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"windtunnel/lab/space"
	"windtunnel/lab/testbed"
)

// offload applies the profile to a NIC.
func (n *node) offload(device string, gro bool) error {
	features, err := n.space.OffloadsOn(device)
	if err != nil {
		return err
	}
	want := testbed.NICOffloads(features, n.fabric.Offload)
	want["rx-gro"] = gro
	return n.space.Offloads(device, want)
}

// joinByWire puts a wire between the nodes, and sets up both ends of every cable. line is the
// command of a delay line.
func (tb *Testbed) joinByWire(line []string) error {
	w, err := newWire(wireSpace(tb.id), tb.spec.Fabric, tb.countPlaces)
	if err != nil {
		return err
	}
	tb.wire = w
	f := tb.spec.Fabric
	if bonded(f) {
		for _, n := range tb.nodes {
			if err := n.newTeam(); err != nil {
				return err
			}
		}
	}
	segments := make([][]string, f.Links)
	for l := range f.Links {
		for i, n := range tb.nodes {
			nic, port := fabricDevice(i, l), portDevice(i, l)
			v := space.Veth{Name: port, PeerName: nic, MTU: f.MTU, Queues: f.Queues, MAC: mac('p', i, l), PeerMAC: n.nicMAC(l)}
			if err := w.space.Pair(v, n.space); err != nil {
				return err
			}
			if err := w.configurePort(port, f); err != nil {
				return err
			}
			if err := n.readyNIC(nic, l, w.objects.NicTransmit); err != nil {
				return err
			}
			steered := tb.wireCPUs(i)
			if f.Unpinned && len(tb.layout.Wire) == 0 {
				steered = nil // the wire has no CPUs: each sending CPU also does the wire's work
			}
			if err := w.space.SteerReceive(port, f.Queues, steered); err != nil {
				return err
			}
			segments[l] = append(segments[l], port)
		}
	}
	for _, n := range tb.nodes {
		if n.team != nil && !n.team.kernel {
			if err := n.team.spread(n.space, f.Cut > 0); err != nil {
				return err
			}
		}
	}
	if err := w.join(segments, f); err != nil {
		return err
	}
	if tb.spec.Marks {
		if err := tb.watchMarks(); err != nil {
			return err
		}
	}
	w.startClock(f)
	return tb.startLines(line)
}

// wireCPUs returns the CPUs that do the wire's work for frames from node i: the wire's CPUs
// if there are any, else the sender's CPUs. There the work is part of sending, and its time
// is subtracted from the sender's figures. On the receiver's CPUs the work would wait in the
// backlog behind the receiver's threads, and the backlog drops at 1,000 frames.
func (tb *Testbed) wireCPUs(i int) []int {
	if len(tb.layout.Wire) > 0 {
		return tb.layout.Wire
	}
	return tb.layout.Nodes[i]
}

// readyNIC makes the node's end behave as a NIC: offload profile, GRO in a
// NAPI thread on the node's CPUs, interrupt coalescing, a queue that can be
// stopped. link is the NIC's number from 0.
func (n *node) readyNIC(nic string, link int, transmit *ebpf.Program) error {
	if err := n.offload(nic, true); err != nil {
		return err
	}
	if n.team != nil && n.team.kernel { // a bond takes a device that is down, and sets it up
		if err := n.space.Enslave(nic, n.team.device); err != nil {
			return err
		}
	}
	l, err := n.space.Link(nic)
	if err != nil {
		return err
	}
	if err := lengthen(n.space, l); err != nil {
		return err
	}
	if err := addQueue(n.space, l, n.fabric.Queues); err != nil {
		return err
	}
	if err := attachProgram(n.space, l, netlink.HANDLE_MIN_EGRESS, transmit, wireProgNicTransmit); err != nil {
		return err
	}
	// A veth has NAPI instances only while it is up with GRO on.
	if err := n.space.Up(nic); err != nil {
		return err
	}
	if n.fabric.Queues > 1 {
		if err := numberQueues(n.space, l); err != nil {
			return err
		}
	}
	c := coalescingOf(n.fabric)
	for _, kv := range [][2]string{
		{"threaded", "1"},
		{"napi_defer_hard_irqs", strconv.Itoa(c.emptyPolls)},
		{"gro_flush_timeout", strconv.FormatInt(c.flush.Nanoseconds(), 10)},
	} {
		if err := n.space.Sysfs(nic+"/"+kv[0], kv[1]); err != nil {
			return err
		}
	}
	n.space.Note(nic+"/napi nice", strconv.Itoa(napiNice))
	return readyNAPI(n.space, nic, n.queueCPUs(link))
}

// queueCPUs returns the sets of CPUs for the receive queues of the NIC on a link. Each set is
// one CPU of the node. If the queues may move between CPUs, there is one set, with all CPUs on which
// the node's programs may run.
func (n *node) queueCPUs(link int) (sets [][]int) {
	if n.fabric.MovingQueues || n.fabric.Unpinned {
		return [][]int{n.allowed}
	}
	for _, cpu := range rotated(n.cpus, link*n.fabric.Queues) {
		sets = append(sets, []int{cpu})
	}
	return sets
}

// rotated returns a list that starts at another element, so that the threads of several
// NICs use different CPUs.
func rotated(cpus []int, by int) []int {
	by %= len(cpus)
	return slices.Concat(cpus[by:], cpus[:by])
}

// nicMAC returns the address of the node's NIC on a link. The NICs of a team have the same
// address.
func (n *node) nicMAC(link int) net.HardwareAddr {
	if n.team != nil {
		link = 0
	}
	return mac('f', n.index, link)
}

// joinByVeth joins two nodes by one plain veth pair.
func (tb *Testbed) joinByVeth() error {
	f := tb.spec.Fabric
	if len(tb.nodes) != 2 || f.Links > 1 {
		return fmt.Errorf("a plain veth pair joins 2 nodes by 1 link, not %d by %d; use `kind: wire`", len(tb.nodes), f.Links)
	}
	if f.Rate > 0 || f.Delay > 0 || f.Loss > 0 {
		return errors.New("a plain veth pair has no rate, no delay and no loss; use `kind: wire`")
	}
	a, b := tb.nodes[0], tb.nodes[1]
	v := space.Veth{Name: fabricDevice(0, 0), PeerName: fabricDevice(1, 0), MTU: f.MTU, Queues: f.Queues, MAC: mac('f', 0, 0), PeerMAC: mac('f', 1, 0)}
	if err := a.space.Pair(v, b.space); err != nil {
		return err
	}
	for i, n := range tb.nodes {
		nic := fabricDevice(i, 0)
		if err := n.offload(nic, false); err != nil {
			return err
		}
		if err := CompleteTransmit(n.space, nic); err != nil {
			return err
		}
		// On a plain pair the sender's CPU would do the receiver's work.
		if err := n.space.SteerReceive(nic, f.Queues, n.cpus); err != nil {
			return err
		}
		if err := n.space.Up(nic); err != nil {
			return err
		}
	}
	return nil
}
