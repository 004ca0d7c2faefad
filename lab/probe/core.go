package probe

import "fmt"

// Core returns the lowest-numbered CPU of a CPU's core. If the kernel does not report the
// core, it returns the CPU.
func Core(cpu int) int {
	threads, err := ParseCPUList(text(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)))
	if err != nil || len(threads) == 0 {
		return cpu
	}
	return threads[0]
}
