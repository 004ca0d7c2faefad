package testprogram

import (
	"testing"

	"golang.org/x/sys/unix"
)

// CPUs lists the CPUs that this process may use.
func CPUs(t testing.TB) (cpus []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus
}
