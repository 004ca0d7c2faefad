package testprogram

import (
	"testing"

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
