package meter

// idleClock is one CPU's idle time in /proc/timer_list, in nanoseconds
// (print_cpu, kernel/time/timer_list.c).
type idleClock struct {
	// Slept is the idle and iowait time up to the last time that the CPU left
	// idle, even if only for an interrupt.
	Slept int64
	// Entry is when the CPU last entered or left idle, on CLOCK_MONOTONIC.
	Entry int64
}

const timerListFile = "/proc/timer_list"

// eachIdleClock visits the CPUs of /proc/timer_list. A kernel without NO_HZ
// does not print them; then no CPU is visited.
func eachIdleClock(text []byte, visit func(cpu int, c idleClock)) error {
	s := scanner{text}
	cpu, c, seen := -1, idleClock{}, false
	end := func() {
		if cpu >= 0 && seen {
			visit(cpu, c)
		}
		c, seen = idleClock{}, false
	}
	for {
		line, ok := s.line()
		if !ok {
			end()
			return nil
		}
		var to *int64
		fields := scanner{line}
		switch name := fields.field(); string(name) {
		case "cpu:":
			end()
			n, ok := decimal(fields.field())
			if !ok || n > maxCPU {
				return badLine(timerListFile, line, "cpu: and its number")
			}
			cpu = int(n)
			continue
		case "Tick": // after the CPUs comes the list of clock event devices
			end()
			cpu = -1
			continue
		case ".idle_entrytime":
			to = &c.Entry
		case ".idle_sleeptime", ".iowait_sleeptime", ".iowait_sleeptime:":
			to, seen = &c.Slept, true
		default:
			continue
		}
		f := fields.field()
		if string(f) == ":" {
			f = fields.field()
		}
		n, ok := decimal(f)
		if !ok || n > 1<<62 {
			return badLine(timerListFile, line, "nanoseconds")
		}
		*to += int64(n)
	}
}

// idleAt returns a CPU's idle time at the moment now. timer_list does not
// contain a sleep that still lasts, and does not say whether the CPU sleeps
// now. t has the same time in ticks from /proc/stat, which contains the current
// sleep. So of the two possible values the one that agrees with the ticks is
// used. If both agree, the sleep is shorter than a tick, and so is the error.
func (c idleClock) idleAt(now int64, t CPUTimes) int64 {
	awake, asleep := c.Slept, c.Slept+max(now-c.Entry, 0)
	low := int64(t.Idle+t.IOWait) * tickNanoseconds
	// Idle and iowait are each cut to whole ticks. One more tick allows for the
	// time between the two reads.
	allowed := func(x int64) bool { return x >= low-tickNanoseconds && x < low+3*tickNanoseconds }
	if !allowed(awake) && allowed(asleep) {
		return asleep
	}
	return awake
}
