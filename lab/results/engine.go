package results

import (
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/procfs"

	"windtunnel/lab/sample"
)

// engine identifies a process until the next boot: the boot ID, the PID, and the
// start time in ticks since boot, because PIDs are reused. It returns "" if /proc
// lacks these facts or the process has ended.
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

// standing returns the actual status of a run. A run that is stored as running, but
// whose engine has ended, was interrupted: by a kill or by the end of the machine.
func standing(stored sample.Status, by string) sample.Status {
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
