package traffic

import "golang.org/x/sys/unix"

// leastWork is how much is owed before it is spent: reading the thread's clock
// takes a system call, some tenths of a microsecond.
const leastWork = 20_000 // ns

// workOn spends the CPU time that n bytes received are worth.
func (w *worker) workOn(n int) {
	if w.work == 0 {
		return
	}
	w.owed += int64(float64(n) * w.work)
	if w.owed < leastWork {
		return
	}
	for end := threadTime() + w.owed; threadTime() < end; {
	}
	w.owed = 0
}

// threadTime is the CPU time of the calling thread, ns; workers keep theirs.
func threadTime() int64 {
	var t unix.Timespec
	// It fails only for a clock that the kernel does not have.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return t.Nano()
}
