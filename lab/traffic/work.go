package traffic

import "golang.org/x/sys/unix"

// leastWork is the smallest CPU time to spend at once, because reading the thread's clock
// takes a system call of some tenths of a microsecond.
const leastWork = 20_000 // ns

// workOn uses the CPU time that is configured for n received bytes.
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

// threadTime returns the CPU time of the calling thread, ns. A worker stays on its thread.
func threadTime() int64 {
	var t unix.Timespec
	// It fails only for a clock that the kernel does not have.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return t.Nano()
}
