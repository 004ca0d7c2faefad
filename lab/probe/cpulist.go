package probe

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/utils/cpuset"
)

// cpuList allows at most five digits for a CPU number, which bounds the memory of
// the parsed set. Linux supports at most 8192 CPUs.
var cpuList = regexp.MustCompile(`^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$`)

// ParseCPUList reads the kernel's form of a CPU set, such as "0-3,8,10-11",
// into ascending numbers without repeats. The empty list is allowed.
func ParseCPUList(text string) ([]int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	set, err := cpuset.New(), error(nil)
	if cpuList.MatchString(text) {
		set, err = cpuset.Parse(text)
	}
	if err != nil || set.IsEmpty() {
		return nil, fmt.Errorf("read CPU list %q: want numbers and ranges such as 0-3,8", cut(text, 80))
	}
	return set.List(), nil
}

// FormatCPUList prints CPU numbers in the form that ParseCPUList reads.
func FormatCPUList(cpus []int) string { return cpuset.New(cpus...).String() }

// Core returns the lowest-numbered CPU of a CPU's core. If the kernel does not report the
// core, it returns the CPU.
func Core(cpu int) int {
	threads, err := ParseCPUList(text(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)))
	if err != nil || len(threads) == 0 {
		return cpu
	}
	return threads[0]
}
