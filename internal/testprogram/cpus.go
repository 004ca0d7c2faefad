package testprogram

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// CPUs lists the CPUs that this process may use.
func CPUs(t testing.TB) (cpus []int) {
	t.Helper()
	var set unix.CPUSet
	must.Succeed(t, unix.SchedGetaffinity(0, &set))
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// AwaitCPUTime waits until the threads of a process together have used an additional CPU time.
func AwaitCPUTime(t testing.TB, pid int, more time.Duration) {
	t.Helper()
	used := func() time.Duration {
		var ts unix.Timespec
		must.Succeed(t, unix.ClockGettime(int32(^pid<<3|2), &ts)) // the process's scheduler clock, as in clock_getcpuclockid(3)
		return time.Duration(ts.Nano())
	}
	begin := used()
	for deadline := time.Now().Add(15 * time.Second); used() < begin+more; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d used %v of CPU time in 15 s, want %v", pid, used()-begin, more)
		}
	}
}
