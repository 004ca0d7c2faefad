package foreign

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Read returns the foreign CPU time since Open by CPU, with that of the task
// that runs there at this moment. Of a task that had the CPU already when the
// meter was opened, it counts from then on.
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

// snapshot reads the CPUs' sums and who made them up. A task that leaves its CPU
// between the two would stand in the list with what it had run so far twice, or
// not at all; they are then read again. Where that goes on, tasks have the CPU
// for so short a time that it does not matter.
func (m *Meter) snapshot() (running map[int]runningPlace, tasks map[foreignTaskKey]foreignTaskTime, err error) {
	const tries = 4
	if running, err = m.places(); err != nil {
		return nil, nil, err
	}
	for range tries {
		if tasks, err = m.tasks(); err != nil {
			return nil, nil, err
		}
		after, err := m.places()
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

// anyLeft reports whether a foreign task that ran before has left its CPU.
func anyLeft(before, after map[int]runningPlace) bool {
	for c, r := range before {
		if r.stint > 0 && r.Begun != after[c].Begun {
			return true
		}
	}
	return false
}

// runningPlace is a CPU and how long a foreign task has had it until now, in
// nanoseconds; 0 where what runs there is not foreign.
type runningPlace struct {
	foreignPlace
	stint uint64
}

// places reads every CPU's sums. A CPU may be writing at that moment; it is
// done within nanoseconds.
func (m *Meter) places() (map[int]runningPlace, error) {
	const tries = 1000
	found := make(map[int]runningPlace, len(m.cpus))
	var perCPU []foreignPlace
	for range tries {
		if err := m.objects.Places.Lookup(uint32(0), &perCPU); err != nil {
			return nil, err
		}
		now, err := monotonic()
		if err != nil {
			return nil, err
		}
		for _, c := range m.cpus {
			p := perCPU[c]
			if _, ok := found[c]; ok || p.Ended != p.Begun {
				continue
			}
			r := runningPlace{foreignPlace: p}
			if p.Foreign != 0 && now > p.Since {
				r.stint = now - p.Since
			}
			found[c] = r
		}
		if len(found) == len(m.cpus) {
			return found, nil
		}
	}
	return nil, fmt.Errorf("the kernel was writing each of the %d times; try again", tries)
}

// tasks reads who ran.
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

// comm names a process: as it was called when it last left the CPU, or, where
// it has not left it yet, as it is called now.
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

// monotonic is the clock of bpf_ktime_get_ns.
func monotonic() (uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	return uint64(ts.Nano()), nil
}
