package meter

// Process is a tool's process with its CPU time.
type Process struct {
	Label  string `json:"label"` // as given to Track
	PID    int    `json:"pid"`
	Parent int    `json:"parent"` // its parent's process id
	Start  uint64 `json:"start"`  // start time in ticks since boot; with PID it identifies the process
	Name   string `json:"name"`
	// CPU is the run time of all its threads, ended ones too, in nanoseconds.
	CPU int64 `json:"cpu_ns"`
	// Waited is the CPU time of its ended children, in nanoseconds, cut to
	// whole ticks.
	Waited int64 `json:"waited_ns"`
}

type processKey struct {
	pid   int
	start uint64
}

func (p Process) key() processKey { return processKey{p.PID, p.Start} }

// procStat has the needed fields of /proc/PID/stat.
type procStat struct {
	name           string
	parent         int
	utime, stime   uint64 // ticks, of all threads
	cutime, cstime uint64 // ticks, of children that were waited for
	start          uint64 // ticks since boot
}

// parseProcStat parses /proc/PID/stat. The name is in parentheses and may
// contain any character, parentheses and line ends too: the fields begin after
// the last closing parenthesis.
func parseProcStat(text []byte) (procStat, error) {
	const file = "/proc/PID/stat"
	opening, closing := -1, -1
	for i, c := range text {
		if c == '(' && opening < 0 {
			opening = i
		}
		if c == ')' {
			closing = i
		}
	}
	if opening < 0 || closing < opening {
		return procStat{}, badLine(file, text, "a name in parentheses")
	}
	p := procStat{name: string(text[opening+1 : closing])}
	fields := scanner{text[closing+1:]}
	line, _ := fields.line()
	fields = scanner{line}
	fields.field() // state, the third field
	var v [20]uint64
	for i := range v { // fields 4 (ppid) to 22 (starttime); one more is not needed
		f := fields.field()
		if i == len(v)-1 {
			break
		}
		negative := len(f) > 0 && f[0] == '-'
		if negative {
			f = f[1:]
		}
		n, ok := decimal(f)
		if !ok {
			return procStat{}, badLine(file, line, "22 fields or more, decimal from the fourth")
		}
		if !negative { // tpgid, priority, and cutime of some kernels are negative; negative values are not used
			v[i] = n
		}
	}
	const first = 4
	if v[0] > 1<<31 {
		return procStat{}, badLine(file, line, "a parent's process id")
	}
	p.parent = int(v[4-first])
	p.utime, p.stime = v[14-first], v[15-first]
	p.cutime, p.cstime = v[16-first], v[17-first]
	p.start = v[22-first]
	return p, nil
}

// parseSchedstat reads /proc/PID/task/TID/schedstat: nanoseconds run,
// nanoseconds waited, times scheduled.
func parseSchedstat(text []byte) (ran int64, err error) {
	s := scanner{text}
	line, _ := s.line()
	fields := scanner{line}
	n, ok := decimal(fields.field())
	if !ok || n > 1<<62 {
		return 0, badLine("/proc/PID/task/TID/schedstat", line, "nanoseconds run")
	}
	return int64(n), nil
}

// parseChildren reads /proc/PID/task/TID/children: process ids on one line.
func parseChildren(text []byte) ([]int, error) {
	s := scanner{text}
	line, _ := s.line()
	fields := scanner{line}
	var pids []int
	for {
		f := fields.field()
		if len(f) == 0 {
			return pids, nil
		}
		n, ok := decimal(f)
		if !ok || n == 0 || n > 1<<31 {
			return nil, badLine("/proc/PID/task/TID/children", line, "process ids")
		}
		pids = append(pids, int(n))
	}
}
