package meter

import (
	"fmt"
	"time"
)

// Usage is how one CPU spent a window, in seconds. User, System, IRQ and
// Softirq add up to Busy; Busy, Idle, IOWait and Steal to the window.
type Usage struct {
	Busy    float64 `json:"busy_s"`
	User    float64 `json:"user_s"` // with nice, and with the time given to guests
	System  float64 `json:"system_s"`
	IRQ     float64 `json:"irq_s"`
	Softirq float64 `json:"softirq_s"`
	Idle    float64 `json:"idle_s"`
	IOWait  float64 `json:"iowait_s"` // idle too, with a program that waits for a disk
	Steal   float64 `json:"steal_s"`  // the hypervisor ran another
}

// usage turns two readings of one CPU into how it spent the window.
//
// Busy is the window less idle, iowait and steal, which NO_HZ kernels know
// exactly: /proc/stat cuts each to 10 ms, /proc/timer_list shows idle and
// iowait together to the nanosecond. How Busy divides among user, system, irq
// and softirq is known by sampling at the timer interrupt only (100 to 1000
// times a second), and so taken in proportion to the ticks. Where the kernel
// counts them exactly (CONFIG_IRQ_TIME_ACCOUNTING) the proportion is exact.
func usage(cpu int, a, b CPUTimes, window time.Duration) (Usage, error) {
	idle, err := idleTick(cpu, "idle", a.Idle, b.Idle)
	if err != nil {
		return Usage{}, err
	}
	iowait, err := idleTick(cpu, "iowait", a.IOWait, b.IOWait)
	if err != nil {
		return Usage{}, err
	}
	steal, err := idleTick(cpu, "steal", a.Steal, b.Steal)
	if err != nil {
		return Usage{}, err
	}
	if a.FineIdle > 0 && b.FineIdle > 0 {
		idle, iowait = refine(idle, iowait, time.Duration(b.FineIdle-a.FineIdle))
	}
	// Steal overlaps idle: a CPU that wakes waits for its host first.
	if gone := idle + iowait; gone > window+window/50+3*tickLength {
		return Usage{}, &ClockError{CPU: cpu, Window: window, Idle: gone}
	}
	ran, err := ticksOf(cpu, a, b)
	if err != nil {
		return Usage{}, err
	}
	// Cut to ticks, idle and the others can reach beyond the window by one tick
	// each.
	idle = min(idle, window)
	iowait = min(iowait, window-idle)
	left := window - idle - iowait
	// The ticks of work are certain, so the overlap is taken from steal.
	steal = min(steal, left-min(ran.sum(), left))
	u := Usage{Idle: idle.Seconds(), IOWait: iowait.Seconds(), Steal: steal.Seconds()}
	u.Busy = (left - steal).Seconds()
	u.split(ran)
	return u, nil
}

const tickLength = time.Duration(tickNanoseconds)

// idleTick is the growth of a counter that may fall by a little: iowait moves
// to other CPUs, and idle is read while it runs (proc_stat(5)).
func idleTick(cpu int, name string, a, b uint64) (time.Duration, error) {
	const slack = 2
	if b < a {
		if a-b <= slack || name == "iowait" {
			return 0, nil
		}
		return 0, &CounterError{What: cpuCounter(cpu, name), Before: a, After: b}
	}
	if b-a > 1<<40 {
		return 0, &CounterError{What: cpuCounter(cpu, name), Before: a, After: b}
	}
	return time.Duration(b-a) * tickLength, nil
}

func cpuCounter(cpu int, name string) string { return fmt.Sprintf("counter %s of CPU %d", name, cpu) }

// refine puts the exact sum of idle and iowait in the place of their ticks. A
// sum that the ticks contradict is not used: it was read around a change.
func refine(idle, iowait, exact time.Duration) (fineIdle, fineIOWait time.Duration) {
	if d := exact - idle - iowait; d < -3*tickLength || d > 3*tickLength {
		return idle, iowait
	}
	if iowait > exact {
		return 0, max(exact, 0)
	}
	return exact - iowait, iowait
}

// ticks is the work that the timer interrupt saw in a window, by kind.
type ticks struct{ user, system, irq, softirq time.Duration }

func ticksOf(cpu int, a, b CPUTimes) (t ticks, err error) {
	for _, part := range []struct {
		name string
		a, b uint64
		to   *time.Duration
	}{
		{"user", a.User + a.Nice, b.User + b.Nice, &t.user},
		{"system", a.System, b.System, &t.system},
		{"irq", a.IRQ, b.IRQ, &t.irq},
		{"softirq", a.Softirq, b.Softirq, &t.softirq},
	} {
		if *part.to, err = idleTick(cpu, part.name, part.a, part.b); err != nil {
			return ticks{}, err
		}
	}
	return t, nil
}

func (t ticks) sum() time.Duration { return t.user + t.system + t.irq + t.softirq }

// split divides Busy in proportion to the ticks. Work without a tick counts as
// system: on an idle CPU, work shorter than a tick is mostly interrupts and
// wake-ups.
func (u *Usage) split(t ticks) {
	if t.sum() == 0 {
		u.System = u.Busy
		return
	}
	share := u.Busy / t.sum().Seconds()
	u.User, u.System = share*t.user.Seconds(), share*t.system.Seconds()
	u.IRQ, u.Softirq = share*t.irq.Seconds(), share*t.softirq.Seconds()
}

// without takes the fabric's own work out: from softirq, where it runs, then
// from system (a thread that polls), then from what else there is. The fabric's
// clock runs on while the host has taken the CPU away, and the work of the node
// is delayed as much: steal is shared out among both.
func (u Usage) without(wire float64) Usage {
	if u.Steal > 0 {
		wire *= u.Busy / (u.Busy + u.Steal)
	}
	wire = min(max(wire, 0), u.Busy)
	u.Busy -= wire
	for _, part := range []*float64{&u.Softirq, &u.System, &u.IRQ, &u.User} {
		taken := min(wire, *part)
		*part -= taken
		wire -= taken
	}
	return u
}

// add sums two CPUs.
func (u Usage) add(v Usage) Usage {
	u.Busy += v.Busy
	u.User += v.User
	u.System += v.System
	u.IRQ += v.IRQ
	u.Softirq += v.Softirq
	u.Idle += v.Idle
	u.IOWait += v.IOWait
	u.Steal += v.Steal
	return u
}
