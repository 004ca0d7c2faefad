package meter

// Softirqs counts how often one CPU ran the network's softirqs, since boot.
type Softirqs struct {
	NetTX uint64 `json:"net_tx"`
	NetRX uint64 `json:"net_rx"`
}

const softirqsFile = "/proc/softirqs"

// ParseSoftirqs parses /proc/softirqs, by CPU number. The header line names the
// CPUs of the columns.
func ParseSoftirqs(text []byte) (map[int]Softirqs, error) {
	s := scanner{text}
	header, _ := s.line()
	columns, err := cpuColumns(header)
	if err != nil {
		return nil, err
	}
	counts := make(map[int]Softirqs, len(columns))
	for {
		line, ok := s.line()
		if !ok {
			return counts, nil
		}
		fields := scanner{line}
		name := string(fields.field())
		if name != "NET_TX:" && name != "NET_RX:" {
			continue
		}
		for _, cpu := range columns {
			n, ok := decimal(fields.field())
			if !ok {
				return nil, badLine(softirqsFile, line, "a decimal counter for each CPU of the header")
			}
			c := counts[cpu]
			if name == "NET_TX:" {
				c.NetTX = n
			} else {
				c.NetRX = n
			}
			counts[cpu] = c
		}
	}
}

func cpuColumns(header []byte) ([]int, error) {
	fields := scanner{header}
	var columns []int
	for {
		f := fields.field()
		if len(f) == 0 {
			break
		}
		if !hasPrefix(f, "CPU") {
			return nil, badLine(softirqsFile, header, "CPU0 CPU1 …")
		}
		n, ok := decimal(f[len("CPU"):])
		if !ok || n > maxCPU {
			return nil, badLine(softirqsFile, header, "CPU0 CPU1 …")
		}
		columns = append(columns, int(n))
	}
	if len(columns) == 0 {
		return nil, badLine(softirqsFile, header, "CPU0 CPU1 …")
	}
	return columns, nil
}
