// Package probe detects once the CPUs of this machine, the features of its kernel, and the
// installed programs. Every missing part has a reason and a remedy. So a scenario that needs
// a missing part is skipped with its reason, and is not silently replaced.
package probe

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Facts are the results. They do not change while the program runs.
type Facts struct {
	Hostname          string            `json:"hostname"`
	Release           string            `json:"kernel"` // of the kernel, as uname prints it
	OS                string            `json:"os"`
	CPUModel          string            `json:"cpu_model"`
	Online            []int             `json:"online_cpus"`
	Allowed           []int             `json:"allowed_cpus"`        // by affinity and cpuset
	Quota             float64           `json:"cpu_quota,omitempty"` // CPUs that the control group may use at once; 0 is no limit
	MemoryBytes       uint64            `json:"memory_bytes"`
	Virtualization    string            `json:"virtualization"`
	ClockSource       string            `json:"clock_source"`
	HZ                int               `json:"hz,omitempty"`
	IRQTimeAccounting string            `json:"irq_time_accounting"` // yes, no, unknown
	CongestionControl string            `json:"congestion_control"`
	Mitigations       map[string]string `json:"mitigations,omitempty"` // of CPU weaknesses that this CPU has
	Sysctls           map[string]string `json:"sysctls"`               // of the host alone, which bound softirq work
	NetAdmin          bool              `json:"cap_net_admin"`
	SysAdmin          bool              `json:"cap_sys_admin"`
	Features          []Finding         `json:"features"` // in the order of the feature list
	Warnings          []string          `json:"warnings,omitempty"`

	elsewhere *elsewhere // nil on this machine
}

// Probe probes the machine once, and returns the same facts each time. It does not fail:
// unknown facts are empty, or missing features with a reason.
var Probe = sync.OnceValue(look)

func look() *Facts {
	f := &Facts{}
	f.Hostname, _ = os.Hostname()
	f.Release = release()
	f.OS = cmp.Or(osName(text("/etc/os-release")), osName(text("/usr/lib/os-release")), "Linux")
	cpuinfo := text("/proc/cpuinfo")
	f.CPUModel = cpuModel(cpuinfo, runtime.GOARCH)
	f.MemoryBytes = memoryBytes()
	f.ClockSource = text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	f.CongestionControl = text("/proc/sys/net/ipv4/tcp_congestion_control")
	f.Mitigations = mitigations("/sys/devices/system/cpu/vulnerabilities")
	f.Sysctls = hostSysctls()
	f.Virtualization = lookForTraces(hypervisorFlag(cpuinfo)).virtualization()
	c := kernelConfig(f.Release)
	f.HZ, f.IRQTimeAccounting = cmp.Or(c.hz(), hzByClock()), c.irqTimeAccounting()
	status, err := threadStatus()
	if err != nil {
		f.Warnings = append(f.Warnings, fmt.Sprintf("the CPUs and capabilities of this process cannot be read: %v", err))
	}
	f.NetAdmin, f.SysAdmin = status.CapEff>>unix.CAP_NET_ADMIN&1 == 1, status.CapEff>>unix.CAP_SYS_ADMIN&1 == 1
	f.lookAtCPUs(status.CpusAllowedList)
	f.Features = tryFeatures(f)
	return f
}

// threadStatus reads the status of the calling thread.
func threadStatus() (procfs.ProcStatus, error) {
	self, err := procfs.Self()
	if err != nil {
		return procfs.ProcStatus{}, err
	}
	thread, err := self.Thread(unix.Gettid())
	if err != nil {
		return procfs.ProcStatus{}, err
	}
	return thread.NewStatus()
}

func (f *Facts) lookAtCPUs(affinity []uint64) {
	var err error
	if f.Online, err = ParseCPUList(text("/sys/devices/system/cpu/online")); err != nil || len(f.Online) == 0 {
		for c := range runtime.NumCPU() { // without sysfs
			f.Online = append(f.Online, c)
		}
	}
	var own []int
	for _, c := range affinity {
		own = append(own, int(c))
	}
	f.Allowed = narrow(narrow(f.Online, own), cgroupCPUs())
	f.Quota = cpuQuota()
	if warning := f.QuotaWarning(); warning != "" {
		f.Warnings = append(f.Warnings, warning)
	}
}

// QuotaWarning warns that a CPU quota can stop the experiment's programs. It returns "" if
// there is no quota below the usable CPUs.
func (f *Facts) QuotaWarning() string {
	if f.Quota <= 0 || f.Quota >= float64(len(f.Allowed)) {
		return ""
	}
	return fmt.Sprintf("a control group limits this process to %.2f of %d CPUs; trials in which the limit takes effect do not count: remove the quota (cpu.max, cpu.cfs_quota_us), or run outside the group", f.Quota, len(f.Allowed))
}

// UsableCPUs returns the CPUs for testbeds: the online CPUs that the process's affinity and
// the cpuset of its control group allow.
func (f *Facts) UsableCPUs() []int { return append([]int(nil), f.Allowed...) }

// Root reports whether the process may make namespaces and devices.
func (f *Facts) Root() bool { return f.NetAdmin && f.SysAdmin }

// memoryBytes returns the size of the machine's memory; 0 if it cannot be read.
func memoryBytes() uint64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	info, err := proc.Meminfo()
	if err != nil || info.MemTotalBytes == nil {
		return 0
	}
	return *info.MemTotalBytes
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return text("/proc/sys/kernel/osrelease")
	}
	return unix.ByteSliceToString(u.Release[:])
}

// text reads a short file of the kernel; "": it cannot be read.
func text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// hostSysctls are sysctls of all namespaces together. They limit how many packets a CPU's
// softirq takes from its queues at once, and the length of the queues.
func hostSysctls() map[string]string {
	set := map[string]string{}
	for _, name := range []string{"dev_weight", "netdev_budget", "netdev_budget_usecs", "netdev_max_backlog"} {
		if value := text("/proc/sys/net/core/" + name); value != "" {
			set["net.core."+name] = value
		}
	}
	return set
}

// mitigations returns the kernel's mitigations of the CPU's vulnerabilities. It omits
// vulnerabilities that this CPU does not have.
func mitigations(folder string) map[string]string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for _, e := range entries {
		if v := text(filepath.Join(folder, e.Name())); v != "" && v != "Not affected" {
			found[e.Name()] = v
		}
	}
	return found
}
