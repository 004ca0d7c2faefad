package meter

import (
	"fmt"
	"iter"
	"time"
)

// Delta is the difference between two readings of one node.
type Delta struct {
	Node       string             `json:"node"`
	Seconds    float64            `json:"seconds"` // length of the window
	CPUs       map[int]Usage      `json:"cpus"`
	Softnet    map[int]uint64     `json:"softnet,omitempty"` // number of buffers that each CPU processed in the receive path
	Namespaces []NamespaceDelta   `json:"namespaces,omitempty"`
	Tools      map[string]float64 `json:"tools,omitempty"`  // CPU seconds by label; absent if the processes ended
	Guests     map[string]float64 `json:"guests,omitempty"` // CPU seconds of virtual machines by name, see Guest
	Groups     map[string]float64 `json:"groups,omitempty"` // CPU seconds of control groups by name, see Group
	Throttled  Throttling         `json:"throttled"`        // the control group that its CPU quota stopped in most periods
	Observer   float64            `json:"observer_s"`       // CPU seconds of the agent
	Warnings   []string           `json:"warnings,omitempty"`
}

// NamespaceDelta has the counts of one network namespace in the window.
type NamespaceDelta struct {
	Name     string        `json:"name"`
	Counters Counters      `json:"counters"`
	Devices  []DeviceDelta `json:"devices,omitempty"`
	Sockets  []SocketDelta `json:"sockets,omitempty"`
}

// DeviceDelta has the changes of a device's counters within the window.
type DeviceDelta struct{ DeviceReading }

// devices yields each device, after the name of its namespace. It yields nothing if
// d is nil.
func (d *Delta) devices() iter.Seq2[string, DeviceDelta] {
	return func(yield func(string, DeviceDelta) bool) {
		if d == nil {
			return
		}
		for _, ns := range d.Namespaces {
			for _, device := range ns.Devices {
				if !yield(ns.Name, device) {
					return
				}
			}
		}
	}
}

// SocketDelta is a socket that was established at the window's end. Its
// counters are those of the window; everything else is the state at the end.
type SocketDelta struct {
	Socket
	New bool `json:"new,omitempty"` // it did not exist at the start: the counters are since it was made
}

// Window returns the difference between reading a and reading b of the same meter.
// If the readings cannot be compared, it returns an error.
func Window(a, b Reading) (Delta, error) {
	length := time.Duration(b.Mono - a.Mono)
	if length <= 0 {
		return Delta{}, fmt.Errorf("meter window of %v: the second reading must be taken after the first", length)
	}
	d := Delta{Node: b.Node, Seconds: length.Seconds(), CPUs: make(map[int]Usage, len(b.CPUs))}
	if err := d.cpus(a, b, length); err != nil {
		return Delta{}, d.wrap(err)
	}
	if err := d.softnet(a, b); err != nil {
		return Delta{}, d.wrap(err)
	}
	if len(a.Namespaces) != len(b.Namespaces) {
		return Delta{}, d.wrap(errGone("a network namespace"))
	}
	for i := range b.Namespaces {
		n, warnings, err := namespaceWindow(a.Namespaces[i], b.Namespaces[i])
		if err != nil {
			return Delta{}, d.wrap(err)
		}
		d.Namespaces = append(d.Namespaces, n)
		d.Warnings = append(d.Warnings, warnings...)
	}
	observer, err := since("CPU time of the agent", uint64(a.Self), uint64(b.Self))
	if err != nil {
		return Delta{}, d.wrap(err)
	}
	d.Observer = float64(observer) / 1e9
	d.tools(a.Processes, b.Processes)
	d.groups(a.Groups, b.Groups)
	d.throttling(a.Throttled, b.Throttled)
	if err := d.guests(a.Guests, b.Guests); err != nil {
		return Delta{}, d.wrap(err)
	}
	return d, nil
}

func (d *Delta) wrap(err error) error { return fmt.Errorf("node %s: %w", d.Node, err) }

func (d *Delta) cpus(a, b Reading, length time.Duration) error {
	for cpu := range a.CPUs {
		if _, ok := b.CPUs[cpu]; !ok {
			return errOffline(cpu)
		}
	}
	for cpu, after := range b.CPUs {
		before, ok := a.CPUs[cpu]
		if !ok {
			return errOffline(cpu)
		}
		u, err := usage(cpu, before, after, length)
		if err != nil {
			return err
		}
		d.CPUs[cpu] = u
	}
	return nil
}

func (d *Delta) softnet(a, b Reading) error {
	d.Softnet = make(map[int]uint64, len(b.Softnet))
	for cpu, after := range b.Softnet {
		n, err := since(fmt.Sprintf("packets processed on CPU %d", cpu), a.Softnet[cpu], after)
		if err != nil {
			return err
		}
		d.Softnet[cpu] = n
	}
	return nil
}

// difference is one counter with its two values.
type difference struct {
	name          string
	before, after uint64
	to            *uint64
}

func differences(of string, list []difference) error {
	for _, x := range list {
		n, err := since(x.name+" of "+of, x.before, x.after)
		if err != nil {
			return err
		}
		*x.to = n
	}
	return nil
}

func namespaceWindow(a, b NamespaceReading) (n NamespaceDelta, warnings []string, err error) {
	where := "the node"
	if b.Name != "" {
		where = "container " + b.Name
	}
	if a.Name != b.Name {
		return n, nil, errGone("the network namespace of " + where)
	}
	n = NamespaceDelta{Name: b.Name, Counters: make(Counters, len(b.Counters))}
	for name, after := range b.Counters {
		before, ok := a.Counters[name]
		if !ok {
			continue
		}
		if n.Counters[name], err = since(name+" of "+where, before, after); err != nil {
			return n, nil, err
		}
	}
	if len(a.Devices) != len(b.Devices) {
		return n, nil, errGone("a device of " + where)
	}
	for i := range b.Devices {
		d, warning, err := deviceWindow(where, a.Devices[i], b.Devices[i])
		if err != nil {
			return n, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
		n.Devices = append(n.Devices, d)
	}
	n.Sockets = socketWindow(a.Sockets, b.Sockets)
	return n, warnings, nil
}

func deviceWindow(where string, a, b DeviceReading) (d DeviceDelta, warning string, err error) {
	of := fmt.Sprintf("device %s of %s", b.Name, where)
	if a.Name != b.Name || a.Index != b.Index {
		return d, "", errGone(of)
	}
	d.DeviceReading = b
	list := []difference{
		{"rx_bytes", a.RxBytes, b.RxBytes, &d.RxBytes}, {"rx_packets", a.RxPackets, b.RxPackets, &d.RxPackets},
		{"tx_bytes", a.TxBytes, b.TxBytes, &d.TxBytes}, {"tx_packets", a.TxPackets, b.TxPackets, &d.TxPackets},
		{"polled packets", a.RxBare, b.RxBare, &d.RxBare},
		{"rx_dropped", a.RxDrops, b.RxDrops, &d.RxDrops}, {"tx_dropped", a.TxDrops, b.TxDrops, &d.TxDrops},
	}
	p, q := a.Qdisc, b.Qdisc
	if p.Kind == q.Kind && p.Handle == q.Handle {
		list = append(list,
			difference{"qdisc drops", p.Drops, q.Drops, &d.Qdisc.Drops},
			difference{"hook drops", p.IngressDrops, q.IngressDrops, &d.Qdisc.IngressDrops})
	} else {
		warning = fmt.Sprintf("the queueing discipline of %s changed during the window; its drops are counted from then", of)
	}
	return d, warning, differences(of, list)
}

// socketWindow matches sockets by their cookies. A socket that was closed in
// the window is left out: its figures are lost.
func socketWindow(a, b []Socket) []SocketDelta {
	before := make(map[uint64]Socket, len(a))
	for _, s := range a {
		before[s.Cookie] = s
	}
	list := make([]SocketDelta, 0, len(b))
	for _, s := range b {
		d := SocketDelta{Socket: s}
		p, ok := before[s.Cookie]
		if !ok || p.Local != s.Local || p.Remote != s.Remote {
			d.New = true
			list = append(list, d)
			continue
		}
		d.BytesAcked -= p.BytesAcked
		d.BytesReceived -= p.BytesReceived
		d.TotalRetrans -= p.TotalRetrans // uint32: the difference is correct after a wrap, too
		list = append(list, d)
	}
	return list
}

// tools sums CPU time by label. The time of a process that ended and was waited
// for moves to its parent's account of ended children, so that the sum over the
// tree only grows. If no ancestor in the tree lives on, the time is lost, and
// the label's figure is unknown.
func (d *Delta) tools(a, b []Process) {
	if len(a)+len(b) == 0 {
		return
	}
	sums, lost := map[string]int64{}, map[string]string{}
	living := make(map[processKey]bool, len(b))
	for _, p := range b {
		sums[p.Label] += p.CPU + p.Waited
		living[p.key()] = true
	}
	byPID := make(map[int]Process, len(a))
	for _, p := range a {
		sums[p.Label] -= p.CPU + p.Waited
		byPID[p.PID] = p
	}
	for _, p := range a {
		if !survives(p, byPID, living) {
			lost[p.Label] = p.Name
		}
	}
	d.Tools = map[string]float64{}
	for label, ns := range sums {
		name, gone := lost[label]
		// Waited is cut to ticks: a child's end can lose two ticks.
		slack := 2 * tickNanoseconds * int64(len(a)+1)
		if gone || ns < -slack {
			d.Warnings = append(d.Warnings, fmt.Sprintf("node %s: process %q of %s ended during the window: the tool's own CPU time is not known", d.Node, name, label))
			continue
		}
		d.Tools[label] = float64(max(ns, 0)) / 1e9
	}
}

// survives reports whether a process, or an ancestor in the tree, lives.
func survives(p Process, byPID map[int]Process, living map[processKey]bool) bool {
	for range len(byPID) + 1 {
		if living[p.key()] {
			return true
		}
		parent, ok := byPID[p.Parent]
		if !ok {
			return false
		}
		p = parent
	}
	return false
}

// WallStep is the step of the wall clock against the monotonic clock between
// two readings; negative if it was set back. Slewing (adjtimex) affects both
// clocks, so that only a step separates them. ok is false if a reading has no
// wall clock.
func WallStep(a, b Reading) (step time.Duration, ok bool) {
	if a.Wall == 0 || b.Wall == 0 {
		return 0, false
	}
	return time.Duration(b.Wall-a.Wall) - time.Duration(b.Mono-a.Mono), true
}
