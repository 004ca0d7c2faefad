package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// Throttling counts the periods of a control group's CPU quota.
type Throttling struct {
	Group     string `json:"group"`     // path of the control group
	Periods   uint64 `json:"periods"`   // in which the group had work
	Throttled uint64 `json:"throttled"` // in which the kernel stopped its processes at the quota
}

// quotaFile is the open file cpu.stat of a control group.
type quotaFile struct {
	group string
	file  procFile
	info  os.FileInfo
}

// watchQuotas adds the control groups of a process, with all groups above, unless the lab
// limits the group on purpose. The process can have another root, such as a container's, which
// shows the container's groups.
func (m *Meter) watchQuotas(pid int) {
	files, _ := space.ControlFiles(procPath(pid, "root"), pid, "cpu", "cpu.stat", "cpu.stat")
	for _, f := range files {
		info, err := os.Stat(f.Path)
		if err != nil || m.config.Limited != "" && f.Group == m.config.Limited ||
			slices.ContainsFunc(m.quotas, func(q quotaFile) bool { return os.SameFile(q.info, info) }) {
			continue
		}
		name := f.Group
		if slices.ContainsFunc(m.quotas, func(q quotaFile) bool { return q.group == name }) { // of another root
			name = fmt.Sprintf("%s of process %d", name, pid)
		}
		if file, err := openProc(f.Path); err == nil {
			m.quotas = append(m.quotas, quotaFile{name, file, info})
		}
	}
}

// readQuotas leaves out a control group without a quota, and one that is gone.
func (m *Meter) readQuotas() (all []Throttling, err error) {
	for _, q := range m.quotas {
		text, err := q.file.read(&m.fullBuf)
		if errors.Is(err, unix.ENODEV) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the CPU quota of control group %s: %w", q.group, err)
		}
		t, err := parseThrottling(string(text))
		if err != nil {
			return nil, fmt.Errorf("read the CPU quota of control group %s: %w", q.group, err)
		}
		if t.Periods > 0 {
			t.Group = q.group
			all = append(all, t)
		}
	}
	return all, nil
}

// parseThrottling parses cpu.stat of both versions. Without a CPU quota there are no periods.
func parseThrottling(text string) (t Throttling, err error) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		to := map[string]*uint64{"nr_periods": &t.Periods, "nr_throttled": &t.Throttled}[name]
		if to == nil {
			continue
		}
		if *to, err = strconv.ParseUint(value, 10, 64); err != nil {
			return t, fmt.Errorf("parse %s in cpu.stat: %w", name, err)
		}
	}
	return t, nil
}

// throttling sets the control group that its quota stopped in most periods. A group that one
// reading lacks had no periods before, or is gone.
func (d *Delta) throttling(a, b []Throttling) {
	for _, after := range b {
		for _, before := range a {
			if before.Group == after.Group && before.Periods <= after.Periods && before.Throttled <= after.Throttled {
				after.Periods -= before.Periods
				after.Throttled -= before.Throttled
				break
			}
		}
		if after.Throttled > d.Throttled.Throttled {
			d.Throttled = after
		}
	}
}
