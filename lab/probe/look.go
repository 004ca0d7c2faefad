package probe

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"windtunnel/lab/space"
)

// kernelConfig reads the build configuration from where kernels keep it: the
// running kernel itself, or the distribution's file for its release.
func kernelConfig(release string) config {
	if c := gzippedConfig("/proc/config.gz"); len(c) > 0 {
		return c
	}
	for _, path := range []string{"/boot/config-" + release, "/lib/modules/" + release + "/config", "/usr/lib/modules/" + release + "/config"} {
		if b, err := os.ReadFile(path); err == nil {
			if c := parseConfig(string(b)); len(c) > 0 {
				return c
			}
		}
	}
	return nil
}

func gzippedConfig(path string) config {
	const most = 4 << 20 // real ones have 300 KB
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(z, most))
	if err != nil {
		return nil
	}
	return parseConfig(string(b))
}

// hzByClock derives the timer's frequency from the resolution of the coarse
// clock, which is one tick (posix_get_coarse_res, kernel/time/posix-timers.c).
func hzByClock() int {
	var res unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &res); err != nil || res.Nano() <= 0 {
		return 0
	}
	return int((1e9 + res.Nano()/2) / res.Nano())
}

func lookForTraces(hypervisorFlag bool) traces {
	const dmi = "/sys/class/dmi/id/"
	return traces{
		hypervisorFlag: hypervisorFlag,
		vendor:         text(dmi + "sys_vendor"), product: text(dmi + "product_name"), bios: text(dmi + "bios_vendor"),
		hypervisor: text("/sys/hypervisor/type"),
		clocks:     text("/sys/devices/system/clocksource/clocksource0/available_clocksource"),
		container:  container(),
	}
}

func container() string {
	if name := text("/run/systemd/container"); name != "" {
		return name
	}
	for _, mark := range []struct{ path, name string }{{"/run/.containerenv", "podman"}, {"/.dockerenv", "docker"}} {
		if _, err := os.Stat(mark.path); err == nil {
			return mark.name
		}
	}
	return ""
}

// cgroupCPUs lists the CPUs of the control group (v1 or v2); empty if the group sets
// no limit or cannot be read.
func cgroupCPUs() []int {
	files, _ := space.ControlFiles("/", os.Getpid(), "cpuset", "cpuset.effective_cpus", "cpuset.cpus.effective")
	for _, f := range files {
		if cpus, err := ParseCPUList(text(f.Path)); err == nil && len(cpus) > 0 {
			return cpus
		}
	}
	return nil
}

// cpuQuota returns the smallest bandwidth limit of the control group and of the groups
// above it, in CPUs; 0: there is none.
func cpuQuota() float64 {
	files, v2 := space.ControlFiles("/", os.Getpid(), "cpu", "cpu.cfs_quota_us", "cpu.max")
	least := 0.0
	for _, f := range files {
		var q float64
		if v2 {
			q = quotaV2(text(f.Path))
		} else {
			q = quota(text(f.Path), text(filepath.Join(filepath.Dir(f.Path), "cpu.cfs_period_us")))
		}
		if q > 0 && (least == 0 || q < least) {
			least = q
		}
	}
	return least
}

// firstLine returns the first line that is not blank, shortened.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return cut(line, 160)
		}
	}
	return ""
}

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
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
