package meter

import (
	"fmt"
	"time"
)

// Usage is one CPU's time in a window, in seconds. User, System, IRQ and
// Softirq add up to Busy. Busy, Idle, IOWait and Steal add up to the window.
type Usage struct {
	Busy    float64 `json:"busy_s"`
	User    float64 `json:"user_s"` // with nice, and with the time given to guests
	System  float64 `json:"system_s"`
	IRQ     float64 `json:"irq_s"`
	Softirq float64 `json:"softirq_s"`
	Idle    float64 `json:"idle_s"`
	IOWait  float64 `json:"iowait_s"` // idle while a program waits for a disk
	Steal   float64 `json:"steal_s"`  // the hypervisor ran another machine
}

// usage computes a CPU's Usage from two readings.
//
// Busy is the window less idle, iowait and steal. NO_HZ kernels know these
// exactly: /proc/stat cuts each to 10 ms, /proc/timer_list has idle plus iowait
// to the nanosecond. User, system, irq and softirq are sampled at the timer
// interrupt (100 to 1000 times a second), so Busy is divided in proportion to
// their ticks. If the kernel counts them exactly (CONFIG_IRQ_TIME_ACCOUNTING),
// the proportion is exact.
func usage(cpu int, a, b CPUTimes, window time.Duration) (Usage, error) {
	t, err := ticksOf(cpu, a, b)
	if err != nil {
		return Usage{}, err
	}
	idle, iowait := t.idle, t.iowait
	if a.FineIdle > 0 && b.FineIdle > 0 {
		idle, iowait = refine(idle, iowait, time.Duration(b.FineIdle-a.FineIdle))
	}
	// Steal and idle overlap, so their sum can exceed the window: while a CPU
	// wakes and its host runs another guest, the kernel counts both.
	if slept := idle + iowait; slept > window+window/50+3*tickLength {
		return Usage{}, fmt.Errorf("CPU %d was idle for %v in a window of %v: the clock jumped (suspend, migration); the trial must be repeated", cpu, slept, window)
	}
	// Because of the cut to ticks, idle and the others can each exceed the
	// window by one tick.
	idle = min(idle, window)
	iowait = min(iowait, window-idle)
	left := window - idle - iowait
	// The ticks of work are certain, so the overlap is taken from steal.
	steal := min(t.steal, left-min(t.work(), left))
	u := Usage{Idle: idle.Seconds(), IOWait: iowait.Seconds(), Steal: steal.Seconds()}
	u.Busy = (left - steal).Seconds()
	u.split(t)
	return u, nil
}

const tickLength = time.Duration(tickNanoseconds)

// idleTick is the growth of a counter that may fall a little: iowait moves to
// other CPUs, and idle is read while it runs (proc_stat(5)).
func idleTick(cpu int, name string, a, b uint64) (time.Duration, error) {
	const slack = 2
	switch {
	case b < a && (a-b <= slack || name == "iowait"):
		return 0, nil
	case b < a || b-a > 1<<40:
		return 0, errWentBack(fmt.Sprintf("counter %s of CPU %d", name, cpu), a, b)
	}
	return time.Duration(b-a) * tickLength, nil
}

// refine replaces the ticks of idle and iowait by their exact sum. A sum that
// contradicts the ticks is not used: the CPU's state changed during the read.
func refine(idle, iowait, exact time.Duration) (fineIdle, fineIOWait time.Duration) {
	if d := exact - idle - iowait; d < -3*tickLength || d > 3*tickLength {
		return idle, iowait
	}
	if iowait > exact {
		return 0, max(exact, 0)
	}
	return exact - iowait, iowait
}

// ticks is the time of one CPU in a window as /proc/stat counts it. The kernel
// samples user, system, irq and softirq at the timer interrupt.
type ticks struct{ idle, iowait, steal, user, system, irq, softirq time.Duration }

func ticksOf(cpu int, a, b CPUTimes) (t ticks, err error) {
	for _, part := range []struct {
		name string
		a, b uint64
		to   *time.Duration
	}{
		{"idle", a.Idle, b.Idle, &t.idle},
		{"iowait", a.IOWait, b.IOWait, &t.iowait},
		{"steal", a.Steal, b.Steal, &t.steal},
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

func (t ticks) work() time.Duration { return t.user + t.system + t.irq + t.softirq }

// split divides Busy in proportion to the ticks. Work without a tick counts as
// system: on an idle CPU, work shorter than a tick is mostly interrupts and
// wake-ups.
func (u *Usage) split(t ticks) {
	if t.work() == 0 {
		u.System = u.Busy
		return
	}
	share := u.Busy / t.work().Seconds()
	u.User, u.System = share*t.user.Seconds(), share*t.system.Seconds()
	u.IRQ, u.Softirq = share*t.irq.Seconds(), share*t.softirq.Seconds()
}

// without subtracts the fabric's work: from softirq, where it runs, then from
// system (a polling thread), then from the rest. The fabric's clock continues
// while the host has taken the CPU away, and the node's work is delayed as
// much. So steal is divided among both.
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

// add returns the sum of two CPUs' usage.
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
