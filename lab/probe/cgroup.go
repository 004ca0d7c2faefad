package probe

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"k8s.io/utils/cpuset"
)

// cgroupPath finds this process's control group among its groups in all hierarchies.
// If the controller is in a version 1 hierarchy, it returns the group there, else
// the group in the unified hierarchy (version 2).
func cgroupPath(all []procfs.Cgroup, controller string) (group string, v2, ok bool) {
	for _, g := range all {
		if slices.Contains(g.Controllers, controller) {
			return g.Path, false, true
		}
	}
	unified := slices.IndexFunc(all, func(g procfs.Cgroup) bool { return g.HierarchyID == 0 && len(g.Controllers) == 0 })
	if unified < 0 {
		return "", true, false
	}
	return all[unified].Path, true, true
}

// ownCgroups returns this process's control groups in all hierarchies; none if they
// cannot be read.
func ownCgroups() []procfs.Cgroup {
	self, err := procfs.Self()
	if err != nil {
		return nil
	}
	all, _ := self.Cgroups() // after an error there is no group, and so no limit
	return all
}

// controlFiles returns the possible paths of a group's file: of the group, then of its
// ancestors. Inside a container the group's path often does not exist, because the root of
// the mount is the group.
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

// quotaV2 parses cpu.max: "max 100000" or "150000 100000". The result 0 means no limit.
func quotaV2(text string) float64 {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0
	}
	return quota(fields[0], fields[1])
}

// quota returns a bandwidth limit in CPUs; 0: there is none (−1 or max).
func quota(limit, period string) float64 {
	q, errQ := strconv.ParseInt(strings.TrimSpace(limit), 10, 64)
	p, errP := strconv.ParseInt(strings.TrimSpace(period), 10, 64)
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// narrow returns the CPUs that are in both lists. An empty second list (no limit, or an
// unreadable one) does not limit.
func narrow(cpus, limit []int) []int {
	if len(limit) == 0 {
		return cpus
	}
	return cpuset.New(cpus...).Intersection(cpuset.New(limit...)).List()
}
