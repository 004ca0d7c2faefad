// Package priority lets threads that time and meter a trial run before the
// traffic's threads, which may be many on the same CPUs.
package priority

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// highest is the nice value of raised threads. They mostly sleep, so it changes
// when they run and not how much.
const highest = -20

// normal is the nice value with which the process began.
var normal = niceOf(0)

// Raise gives every thread of the process the highest priority, and threads that
// start meanwhile too; restore returns them to the priority with which the process
// began. Without the right to do so (CAP_SYS_NICE) nothing changes, and threads
// come later to a busy CPU.
func Raise() (restore func()) {
	setAll(highest)
	return func() { setAll(normal) }
}

// Lower returns the calling thread, which must be locked to its goroutine, and the
// processes and threads that it starts to the priority with which the process began.
func Lower() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, normal) // a lower priority is always allowed
}

// setAll sets the nice value of every thread. It reads the list again until it has
// no new thread: a thread may start another while it is read.
func setAll(nice int) {
	known := map[string]bool{}
	for more := true; more; {
		more = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || known[t.Name()] {
				continue
			}
			known[t.Name()], more = true, true
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, nice) // it may have ended
		}
	}
}

// niceOf returns a thread's nice value; 0 stands for the calling thread.
func niceOf(thread int) int {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, thread)
	if err != nil {
		return 0
	}
	return 20 - raw // the system call adds 20 and negates, so that errors are negative
}
