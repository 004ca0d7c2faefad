package results

import (
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/procfs"

	"windtunnel/lab/sample"
)

// engine identifies a process until the machine is started anew: the boot's id,
// the process's id, and when it started in ticks since the boot, for ids are
// used again. It is empty where /proc does not tell, or the process has ended.
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

// standing is a run's status in truth: one that is stored as running whose
// engine is gone was interrupted, by a kill or with the whole machine.
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
