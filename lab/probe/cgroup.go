package probe

import (
	"path"
	"strconv"
	"strings"
)

// cgroupPath finds the process's own group in /proc/self/cgroup: that of a
// version 1 controller where one is mounted, else the unified one (line "0::").
func cgroupPath(text, controller string) (group string, v2, ok bool) {
	unified := ""
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, c := range strings.Split(parts[1], ",") {
			if c == controller {
				return parts[2], false, true
			}
		}
		if parts[0] == "0" && parts[1] == "" {
			unified = parts[2]
		}
	}
	return unified, true, unified != ""
}

// controlFiles lists where a group's file may be, the group's own first, then
// those of its ancestors: inside a container the group's path often does not
// exist and the root of the mount is the group.
func controlFiles(mount, group, file string) []string {
	group = path.Clean("/" + group)
	var files []string
	for {
		files = append(files, path.Join(mount, group, file))
		if group == "/" {
			return files
		}
		group = path.Dir(group)
	}
}

// quotaV2 reads cpu.max: "max 100000" or "150000 100000"; 0 is no limit.
func quotaV2(text string) float64 {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0
	}
	return quota(fields[0], fields[1])
}

// quota is the CPUs that a bandwidth limit leaves; 0 where there is none (−1
// or max).
func quota(limit, period string) float64 {
	q, errQ := strconv.ParseInt(strings.TrimSpace(limit), 10, 64)
	p, errP := strconv.ParseInt(strings.TrimSpace(period), 10, 64)
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// narrow keeps the CPUs that are in both lists; an empty second list (no
// limit, or an unreadable one) limits nothing.
func narrow(cpus, limit []int) []int {
	if len(limit) == 0 {
		return cpus
	}
	allowed := make(map[int]bool, len(limit))
	for _, c := range limit {
		allowed[c] = true
	}
	var both []int
	for _, c := range cpus {
		if allowed[c] {
			both = append(both, c)
		}
	}
	return both
}
