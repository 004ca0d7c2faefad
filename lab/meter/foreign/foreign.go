// Package foreign meters the CPU time of tasks outside the experiment: user
// tasks that are not in one of its network namespaces and are not threads of
// its programs. The kernel's threads and idle time are never foreign.
//
// A BPF program adds the time up at every context switch, so that even very
// short tasks count. Interrupts and softirqs on top of a foreign task are part
// of its time, as for any task. Those on top of a task of the experiment, or of
// none, are not foreign, whatever caused them.
package foreign

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"windtunnel/internal/netspace"
)

// Meter adds up foreign CPU time on some CPUs of this machine. Only one
// goroutine may use it at a time.
type Meter struct {
	objects foreignObjects
	link    link.Link
	cpus    []int
	edition uint32 // number of the allowed set
}

// Open starts metering on the given CPUs. Until Allow defines the experiment,
// every task except the calling process is foreign.
//
// If the kernel cannot do it, or forbids it, the error says what is missing.
// Foreign CPU time is then unknown.
func Open(cpus []int) (*Meter, error) {
	if len(cpus) == 0 {
		return nil, errors.New("meter foreign CPU time: no CPUs given; a node needs at least one of its own")
	}
	m := &Meter{cpus: slices.Compact(slices.Sorted(slices.Values(cpus)))} // nodes can share a CPU
	if err := m.open(); err != nil {
		m.Close()
		return nil, fmt.Errorf("meter foreign CPU time: %w", err)
	}
	return m, nil
}

func (m *Meter) open() error {
	if err := loadForeignObjects(&m.objects, nil); err != nil {
		return fmt.Errorf("load a BPF program for sched_switch (%s): %w", missing(err), err)
	}
	if err := m.watch(); err != nil {
		return err
	}
	if err := m.Allow(nil, nil); err != nil {
		return err
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: m.objects.Switched})
	if err != nil {
		return fmt.Errorf("attach a BPF program to sched_switch (%s): %w", missing(err), err)
	}
	m.link = l
	visit(m.cpus)
	return nil
}

// missing describes in a few words what the kernel lacks.
func missing(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "root is needed, or CAP_BPF and CAP_PERFMON"
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return "this kernel has no BTF: CONFIG_DEBUG_INFO_BTF is needed"
	}
	return "BPF tracepoints with BTF are needed, Linux 5.5"
}

// watch marks the CPUs to meter.
func (m *Meter) watch() error {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count this machine's CPUs: %w", err)
	}
	watched := make([]foreignCpu, n)
	for _, c := range m.cpus {
		if c < 0 || c >= n {
			return fmt.Errorf("CPU %d: this machine has CPUs 0 to %d", c, n-1)
		}
		watched[c].Watched = 1
	}
	if err := m.objects.Cpus.Put(uint32(0), watched); err != nil {
		return fmt.Errorf("mark the CPUs to be metered: %w", err)
	}
	return nil
}

// Allow defines what is not foreign from now on: tasks in the network
// namespaces with these inodes, and processes with these ids in the host's PID
// namespace. It replaces the previous definition. The calling process is always
// allowed.
func (m *Meter) Allow(namespaces []uint32, processes []int) error {
	ids := []uint32{uint32(os.Getpid())}
	for _, p := range processes {
		ids = append(ids, uint32(p))
	}
	if err := replace(m.objects.Namespaces, namespaces); err != nil {
		return fmt.Errorf("allow %d network namespaces: %w", len(namespaces), err)
	}
	if err := replace(m.objects.Processes, ids); err != nil {
		return fmt.Errorf("allow %d processes: %w", len(ids), err)
	}
	m.edition++
	if err := m.objects.Edition.Set(m.edition); err != nil {
		return fmt.Errorf("make the BPF program look at what is allowed: %w", err)
	}
	if m.link != nil {
		visit(m.cpus) // a task is checked when it gets the CPU
	}
	return nil
}

// replace makes wanted the keys of a map. A key that stays is never absent in
// between.
func replace(set *ebpf.Map, wanted []uint32) error {
	for _, k := range wanted {
		if err := set.Put(k, uint8(1)); err != nil {
			return fmt.Errorf("add %d to a set that holds %d at most: %w", k, set.MaxEntries(), err)
		}
	}
	var k uint32
	var v uint8
	var gone []uint32
	each := set.Iterate()
	for each.Next(&k, &v) {
		if !slices.Contains(wanted, k) {
			gone = append(gone, k)
		}
	}
	if err := each.Err(); err != nil {
		return err
	}
	for _, k := range gone {
		if err := set.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}

// visit forces a context switch on each CPU by running there: the task that ran
// is checked when it gets the CPU back. A CPU that this process may not use is
// left to its next switch.
func visit(cpus []int) {
	_ = netspace.OwnThread(func() error {
		for _, c := range cpus {
			var one unix.CPUSet
			one.Set(c)
			_ = unix.SchedSetaffinity(0, &one) // returns once the thread runs there
		}
		return nil
	})
}

// Close stops metering.
func (m *Meter) Close() {
	if m.link != nil {
		m.link.Close()
		m.link = nil
	}
	m.objects.Close()
}
