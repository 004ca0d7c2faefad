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

// alive reports whether the process that by identifies runs on this machine.
func alive(by string) bool {
	var boot string
	var pid int
	n, _ := fmt.Sscan(by, &boot, &pid)
	return n == 2 && engine(pid) == by
}

// measured reports whether an engine measures a run now. by is the engine that the store
// has for the run.
type measured func(run, by string) bool

// status returns the status of a run. stored is the status in the store. If it is "running"
// but the engine has ended, the run was interrupted: by a kill, or because the machine
// stopped.
func (m measured) status(stored sample.Status, run, by string) sample.Status {
	if stored != sample.Running || m(run, by) {
		return stored
	}
	return sample.Stopped
}
