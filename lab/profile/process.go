package profile

import (
	"slices"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"windtunnel/lab/profile/category"
)

// process has the known facts of one process.
type process struct {
	parent  int
	comm    string
	kernel  bool // a kernel thread
	mapped  []mapping
	visited bool // its files in /proc were read, or tried
}

// mapping is a file whose code a process has mapped.
type mapping struct {
	span
	file string
}

// processes has the processes by number. The kernel's records describe processes that start
// during the sampling. /proc describes older processes while they run.
type processes map[uint32]*process

func (ps processes) get(pid uint32) *process {
	p := ps[pid]
	if p == nil {
		p = &process{}
		ps[pid] = p
	}
	return p
}

// note stores the facts of a record about processes.
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

// meet reads the unknown facts of a process that was sampled.
func (ps processes) meet(pid uint32) {
	if p := ps[pid]; p == nil || !p.visited {
		ps.visit(pid)
	}
}

// visit reads a process's files in /proc. If the process has ended, the facts from its
// records stay.
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
	// Mappings from /proc are older than mappings from records. The newest must be last.
	p.mapped = append(codeOf(of), p.mapped...)
}

// idleComm is the name of the idle task in profiles; the kernel's name is swapper.
const idleComm = "idle"

// kernelThread is PF_KTHREAD, include/linux/sched.h.
const kernelThread = 0x00200000

// codeOf lists the executable mappings of a process; none if the process has ended.
func codeOf(p procfs.Proc) []mapping {
	maps, err := p.ProcMaps()
	if err != nil {
		return nil
	}
	var list []mapping
	for _, m := range maps {
		if m.Perms.Execute && m.Pathname != "" {
			list = append(list, mapping{span{uint64(m.StartAddr), uint64(m.EndAddr), uint64(m.Offset)}, m.Pathname})
		}
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

// role returns a process's role, which depends on its ancestors.
func (ps processes) role(pid uint32, cast Cast) category.Role {
	if p := ps[pid]; p != nil && p.kernel {
		return category.RoleKernel
	}
	for range 64 { // a circle is not to be expected, and not to be waited for
		switch {
		case slices.Contains(cast.Tools, int(pid)):
			return category.RoleTool
		case slices.Contains(cast.Observers, int(pid)):
			return category.RoleObserver
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
