package probe

import "fmt"

// Core is the lowest-numbered CPU of the core that a CPU is a thread of; the
// CPU itself where the kernel does not say.
func Core(cpu int) int {
	threads, err := ParseCPUList(text(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)))
	if err != nil || len(threads) == 0 {
		return cpu
	}
	return threads[0]
}
