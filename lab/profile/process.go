package profile

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"windtunnel/lab/profile/category"
)

// process is what is known of one program that was seen.
type process struct {
	parent  int
	comm    string
	kernel  bool // a kernel thread
	mapped  []mapping
	visited bool // its files in /proc were read, or tried
}

// mapping is a file that a process has mapped to run code of.
type mapping struct {
	span
	file string
}

// processes are those that were seen, by number. What the kernel tells of a
// process that begins meanwhile is enough; of one that ran before, /proc tells
// while it lives.
type processes map[uint32]*process

func (ps processes) get(pid uint32) *process {
	p := ps[pid]
	if p == nil {
		p = &process{}
		ps[pid] = p
	}
	return p
}

// note takes up a record about processes.
func (ps processes) note(r *record) {
	switch r.kind {
	case unix.PERF_RECORD_FORK:
		if r.pid == r.ppid {
			return // a thread
		}
		parent := ps.get(r.ppid)
		if !parent.visited {
			ps.visit(r.ppid)
		}
		ps[r.pid] = &process{parent: int(r.ppid), comm: parent.comm, kernel: parent.kernel,
			mapped: append([]mapping(nil), parent.mapped...), visited: true}
	case unix.PERF_RECORD_COMM:
		if r.pid != r.tid {
			return
		}
		p := ps.get(r.pid)
		p.comm = r.comm
		if r.misc&unix.PERF_RECORD_MISC_COMM_EXEC != 0 {
			p.mapped, p.kernel = nil, false
		}
	case unix.PERF_RECORD_MMAP2:
		p := ps.get(r.pid)
		p.mapped = append(p.mapped, mapping{r.mapped, r.file})
	}
}

// meet reads of a process that was sampled what is not known yet.
func (ps processes) meet(pid uint32) {
	if p := ps[pid]; p == nil || !p.visited {
		ps.visit(pid)
	}
}

// visit reads a process's files in /proc. One that has ended keeps what its
// records told.
func (ps processes) visit(pid uint32) {
	p := ps.get(pid)
	p.visited = true
	if pid == 0 {
		p.comm, p.kernel = idleComm, true
		return
	}
	of, err := procfs.NewProc(int(pid))
	if err != nil {
		return
	}
	stat, err := of.Stat()
	if err != nil {
		return
	}
	p.parent, p.kernel = stat.PPID, stat.Flags&kernelThread != 0
	if p.comm == "" {
		p.comm = stat.Comm
	}
	if p.kernel {
		return
	}
	if maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)); err == nil {
		// What the records tell happened later than what /proc had at first.
		p.mapped = append(parseMaps(maps), p.mapped...)
	}
}

// idleComm is what the idle task is called here; the kernel's name for it is
// swapper.
const idleComm = "idle"

// kernelThread is PF_KTHREAD, include/linux/sched.h.
const kernelThread = 0x00200000

// parseMaps reads the parts of /proc/PID/maps that code runs from; other lines
// are passed over (proc_pid_maps(5)).
func parseMaps(text []byte) []mapping {
	var list []mapping
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || len(fields[1]) < 3 || fields[1][2] != 'x' {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		offset, err3 := strconv.ParseUint(fields[2], 16, 64)
		if err1 != nil || err2 != nil || err3 != nil || end <= start {
			continue
		}
		// A path may hold blanks; it stands at the end of the line.
		file := strings.TrimRight(line[strings.Index(line, fields[5]):], "\n")
		list = append(list, mapping{span{start, end, offset}, file})
	}
	return list
}

// find returns the newest mapping that holds an address.
func (p *process) find(address uint64) (mapping, bool) {
	for i := len(p.mapped) - 1; i >= 0; i-- {
		if m := p.mapped[i]; address >= m.start && address < m.end {
			return m, true
		}
	}
	return mapping{}, false
}

// role finds a process's part by its ancestors.
func (ps processes) role(pid uint32, cast Cast) category.Role {
	if p := ps[pid]; p != nil && p.kernel {
		return category.RoleKernel
	}
	for range 64 { // a circle is not to be expected, and not to be waited for
		for _, t := range cast.Tools {
			if uint32(t) == pid {
				return category.RoleTool
			}
		}
		for _, o := range cast.Observers {
			if uint32(o) == pid {
				return category.RoleObserver
			}
		}
		p := ps[pid]
		if p == nil || p.parent <= 1 {
			break
		}
		pid = uint32(p.parent)
		ps.meet(pid)
	}
	return category.RoleForeign
}
