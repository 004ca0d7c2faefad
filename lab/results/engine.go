package results

import (
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/procfs"

	"windtunnel/lab/sample"
)

// engine returns a text that identifies a process: the boot ID, the PID, and the start
// time of the process in clock ticks since boot. The PID alone is not enough, because
// the kernel reuses PIDs. engine returns "" if the process has ended, or if /proc does
// not have these values.
func engine(pid int) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	stat, err := p.Stat()
	if err != nil || stat.State == "Z" || stat.State == "X" {
		return ""
	}
	return fmt.Sprintf("%s %d %d", strings.TrimSpace(string(boot)), pid, stat.Starttime)
}

// standing returns the status of a run. stored is the status in the store, and by is
// the engine that measures the run. If the status is "running" but the engine has ended,
// the run was interrupted: by a kill, or because the machine stopped.
func actualStatus(stored sample.Status, by string) sample.Status {
	if stored != sample.Running {
		return stored
	}
	var boot string
	var pid int
	if n, _ := fmt.Sscan(by, &boot, &pid); n == 2 && engine(pid) == by {
		return stored
	}
	return sample.Stopped
}
