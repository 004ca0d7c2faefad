package meter

// Softnet is one CPU's line of /proc/net/softnet_stat, since boot: what the
// receive path did on that CPU for every namespace (softnet_seq_show,
// net/core/net-procfs.c). All counters are 32 bits wide and wrap.
type Softnet struct {
	Processed   uint64 `json:"processed"`    // buffers taken through the receive path
	Dropped     uint64 `json:"dropped"`      // the backlog was full (net.core.netdev_max_backlog)
	TimeSqueeze uint64 `json:"time_squeeze"` // the softirq ended with work left
	ReceivedRPS uint64 `json:"received_rps"` // woken by another CPU that steers to this one
	FlowLimit   uint64 `json:"flow_limit"`   // dropped for one flow's share of the backlog
	Backlog     uint64 `json:"backlog"`      // waiting now; a gauge
}

const softnetFile = "/proc/net/softnet_stat"

// ParseSoftnet reads /proc/net/softnet_stat by CPU number. Kernels before 5.14
// do not print the CPU; their lines are those of the online CPUs in order,
// which the caller gives (online may be nil where the text has the numbers).
func ParseSoftnet(text []byte, online []int) (map[int]Softnet, error) {
	counts := map[int]Softnet{}
	s := scanner{text}
	for row := 0; ; row++ {
		line, ok := s.line()
		if !ok {
			return counts, nil
		}
		v, n, ok := hexColumns(line)
		if !ok || n < 3 {
			return nil, badLine(softnetFile, line, "3 or more hexadecimal columns")
		}
		cpu, ok := softnetCPU(v, n, row, online)
		if !ok {
			return nil, badLine(softnetFile, line, "as many lines as there are CPUs online, or the CPU in column 13")
		}
		counts[cpu] = Softnet{Processed: v[0], Dropped: v[1], TimeSqueeze: v[2], ReceivedRPS: v[9], FlowLimit: v[10], Backlog: v[11]}
	}
}

const softnetColumns = 15 // Linux 6.5 and later; more may follow

func hexColumns(line []byte) (v [softnetColumns]uint64, n int, ok bool) {
	fields := scanner{line}
	for n < softnetColumns {
		f := fields.field()
		if len(f) == 0 {
			break
		}
		if v[n], ok = hexadecimal(f); !ok {
			return v, n, false
		}
		n++
	}
	return v, n, true
}

func softnetCPU(v [softnetColumns]uint64, n, row int, online []int) (cpu int, ok bool) {
	const column = 12
	if n > column {
		return int(v[column]), v[column] <= maxCPU
	}
	if row < len(online) {
		return online[row], true
	}
	return 0, false
}
