package meter

import "bytes"

// CPUTimes is one CPU's line of /proc/stat since boot, in ticks of 1/100 s
// (USER_HZ). Guest time is omitted: User and Nice already contain it.
//
// The kernel decides how exact the figures are. Idle and IOWait come from the
// NO_HZ clock and are exact, cut to whole ticks (get_cpu_idle_time_us,
// kernel/time/tick-sched.c). The others are sampled at the timer interrupt,
// unless CONFIG_IRQ_TIME_ACCOUNTING or VIRT_CPU_ACCOUNTING counts them.
type CPUTimes struct {
	User    uint64 `json:"user"`
	Nice    uint64 `json:"nice"`
	System  uint64 `json:"system"`
	Idle    uint64 `json:"idle"`
	IOWait  uint64 `json:"iowait"`
	IRQ     uint64 `json:"irq"`
	Softirq uint64 `json:"softirq"`
	Steal   uint64 `json:"steal"`
	// FineIdle is Idle plus IOWait in nanoseconds, from /proc/timer_list; 0 if
	// that cannot be read.
	FineIdle int64 `json:"fine_idle_ns,omitempty"`
}

// userHZ is the unit of /proc/stat, the same on every architecture that
// Windtunnel runs on (include/asm-generic/param.h).
const userHZ = 100

const tickNanoseconds = 1e9 / userHZ

const statFile = "/proc/stat"

// eachCPU visits the per-CPU lines, which are together at the start, and stops
// at the first other line after them.
func eachCPU(text []byte, visit func(cpu int, t CPUTimes)) error {
	s := scanner{text}
	for {
		line, ok := s.line()
		if !ok || !bytes.HasPrefix(line, []byte("cpu")) {
			return nil
		}
		fields := scanner{line[len("cpu"):]}
		if len(fields.rest) == 0 || isBlank(fields.rest[0]) {
			continue // the sum over all CPUs
		}
		cpu, ok := decimal(fields.field())
		if !ok || cpu > maxCPU {
			return badLine(statFile, line, "cpu followed by its number")
		}
		t, ok := cpuTimes(&fields)
		if !ok {
			return badLine(statFile, line, "at least 4 decimal counters")
		}
		visit(int(cpu), t)
	}
}

// maxCPU bounds CPU numbers: the most that Linux can be built for is 8192.
const maxCPU = 1<<16 - 1

func cpuTimes(fields *scanner) (t CPUTimes, ok bool) {
	for i, to := range [...]*uint64{&t.User, &t.Nice, &t.System, &t.Idle, &t.IOWait, &t.IRQ, &t.Softirq, &t.Steal} {
		f := fields.field()
		if len(f) == 0 {
			return t, i >= 4 // older kernels end after idle, softirq or steal
		}
		if *to, ok = decimal(f); !ok {
			return t, false
		}
	}
	return t, true
}
