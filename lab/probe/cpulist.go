package probe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// highestCPU bounds CPU numbers: the most that Linux can be built for is 8192.
const highestCPU = 1<<16 - 1

// ParseCPUList reads the kernel's form of a CPU set, such as "0-3,8,10-11",
// into ascending numbers without repeats. The empty list is allowed.
func ParseCPUList(text string) ([]int, error) {
	var cpus []int
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.Atoi(low)
		if err != nil {
			return nil, badCPUList(text)
		}
		last, err := strconv.Atoi(high)
		if err != nil || first < 0 || last < first || last > highestCPU {
			return nil, badCPUList(text)
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
		if len(cpus) > 2*highestCPU {
			return nil, badCPUList(text)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

func badCPUList(text string) error {
	return fmt.Errorf("read CPU list %q: want numbers and ranges such as 0-3,8", cut(text, 80))
}

// FormatCPUList is the inverse of ParseCPUList.
func FormatCPUList(cpus []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(cpus)))
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(sorted[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
