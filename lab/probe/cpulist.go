package probe

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/utils/cpuset"
)

// cpuList bounds CPU numbers too: the most that Linux can be built for is 8192.
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

// FormatCPUList is the inverse of ParseCPUList.
func FormatCPUList(cpus []int) string { return cpuset.New(cpus...).String() }
