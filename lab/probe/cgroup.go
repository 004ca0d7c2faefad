package probe

import (
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

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
