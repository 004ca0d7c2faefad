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

// AwaitCPUTime waits until all threads of a process together have used so much CPU time.
func AwaitCPUTime(t testing.TB, pid int, want time.Duration) {
	t.Helper()
	clock := int32(^pid<<3 | 2) // the process's scheduler clock, as in clock_getcpuclockid(3)
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var used unix.Timespec
		must.Succeed(t, unix.ClockGettime(clock, &used))
		if time.Duration(used.Nano()) >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d used %v of CPU time in 15 s, want %v", pid, time.Duration(used.Nano()), want)
		}
	}
}
