package foreign

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"windtunnel/lab/meter"
)

// Read returns the foreign CPU time since Open, by CPU, with that of the task
// that runs there now. A task that had the CPU before Open counts from Open on.
func (m *Meter) Read() (map[int]Usage, error) {
	running, tasks, err := m.snapshot()
	if err != nil {
		return nil, fmt.Errorf("read foreign CPU time: %w", err)
	}
	usage := make(map[int]Usage, len(m.cpus))
	for _, c := range m.cpus {
		r := running[c]
		u := Usage{Foreign: float64(r.ForeignNs+r.stint) / 1e9}
		if r.stint > 0 {
			k := foreignTaskKey{Tgid: r.Tgid, Cpu: uint32(c)}
			t := tasks[k]
			t.Ns += r.stint
			tasks[k] = t
		}
		usage[c] = u
	}
	for k, t := range tasks {
		u, ok := usage[int(k.Cpu)]
		if !ok {
			continue
		}
		u.Top = append(u.Top, Task{Comm: comm(k.Tgid, t), TGID: int(k.Tgid), Seconds: float64(t.Ns) / 1e9})
		usage[int(k.Cpu)] = u
	}
	for _, u := range usage {
		rank(u.Top)
	}
	return usage, nil
}

// snapshot reads the CPUs' sums and the tasks behind them. If a task leaves its
// CPU between the two reads, its time would be listed twice or not at all, so
// both are read again. If this repeats, the tasks' times are too short to
// matter.
func (m *Meter) snapshot() (running map[int]runningCPU, tasks map[foreignTaskKey]foreignTaskTime, err error) {
	const tries = 4
	if running, err = m.sums(); err != nil {
		return nil, nil, err
	}
	for range tries {
		if tasks, err = m.tasks(); err != nil {
			return nil, nil, err
		}
		after, err := m.sums()
		if err != nil {
			return nil, nil, err
		}
		if !anyLeft(running, after) {
			break
		}
		running = after
	}
	return running, tasks, nil
}

// anyLeft reports whether a foreign task left its CPU between two reads.
func anyLeft(before, after map[int]runningCPU) bool {
	for c, r := range before {
		if r.stint > 0 && r.Begun != after[c].Begun {
			return true
		}
	}
	return false
}

// runningCPU is a CPU with the time that the foreign task on it has run so
// far, in nanoseconds; 0 if the task is not foreign.
type runningCPU struct {
	foreignCpu
	stint uint64
}

// sums reads every CPU's sums. A CPU may be writing at that moment; it
// finishes within nanoseconds.
func (m *Meter) sums() (map[int]runningCPU, error) {
	const tries = 1000
	found := make(map[int]runningCPU, len(m.cpus))
	var perCPU []foreignCpu
	for range tries {
		if err := m.objects.Cpus.Lookup(uint32(0), &perCPU); err != nil {
			return nil, err
		}
		now, err := meter.Now() // the clock of bpf_ktime_get_ns
		if err != nil {
			return nil, err
		}
		for _, c := range m.cpus {
			p := perCPU[c]
			if _, ok := found[c]; ok || p.Ended != p.Begun {
				continue
			}
			r := runningCPU{foreignCpu: p}
			if p.Foreign != 0 && uint64(now) > p.Since {
				r.stint = uint64(now) - p.Since
			}
			found[c] = r
		}
		if len(found) == len(m.cpus) {
			return found, nil
		}
	}
	return nil, fmt.Errorf("the kernel was writing each of the %d times; try again", tries)
}

// tasks reads the foreign tasks and their times.
func (m *Meter) tasks() (map[foreignTaskKey]foreignTaskTime, error) {
	found := map[foreignTaskKey]foreignTaskTime{}
	var k foreignTaskKey
	var t foreignTaskTime
	each := m.objects.Tasks.Iterate()
	for each.Next(&k, &t) {
		found[k] = t
	}
	return found, each.Err()
}

// comm returns a process's name: the one at its last context switch, or the
// current one if it has not left the CPU yet.
func comm(tgid uint32, t foreignTaskTime) string {
	name, _, _ := bytes.Cut(t.Comm[:], []byte{0})
	if len(name) == 0 {
		now, err := os.ReadFile("/proc/" + strconv.Itoa(int(tgid)) + "/comm")
		if err != nil {
			return "process " + strconv.Itoa(int(tgid))
		}
		name = bytes.TrimSpace(now)
	}
	return string(name)
}
