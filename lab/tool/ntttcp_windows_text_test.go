package tool

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ntttcpTable is one table of NTttcp's text: a header line, a ruler of "=" and
// rows of as many figures as there are columns.
type ntttcpTable struct {
	columns []string
	rows    [][]string
}

// ntttcpColumns are the headers of every version and flag. Names hold single
// spaces, and so do the gaps between some columns, so a header is read by its
// known names, the longest first.
var ntttcpColumns = func() []string {
	names := []string{
		"Thread", "Time(s)", "Throughput(KB/s)", "Avg B / Compl", "Avg", "Min", "Max", // the latter three with -lm
		"Bytes(MEG)", "realtime(s)", "Avg Frame Size", "Throughput(MB/s)",
		"Throughput(Buffers/s)", "Cycles/Byte", "Buffers",
		"DPCs(count/s)", "Pkts(num/DPC)", "Intr(count/s)", "Pkts(num/intr)",
		"Packets Sent", "Packets Received", "Retransmits", "Errors", "Avg. CPU %",
	}
	slices.SortStableFunc(names, func(a, b string) int { return len(b) - len(a) })
	return names
}()

// readNTttcpConsole reads what NTttcp prints. 5.28 has all totals in one table,
// later versions have four.
func readNTttcpConsole(text string) (r NTttcpReport, err error) {
	const opening = "Copyright Version "
	runs := strings.Split(text, opening)
	if n := len(runs) - 1; n > 0 {
		text = runs[n]
		r.Version, _, _ = strings.Cut(strings.TrimSpace(text), " ")
		r.Version, _, _ = strings.Cut(r.Version, "\n")
	}
	if n := len(runs) - 1; n > 1 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the output holds %d runs of NTttcp; the last is read", n))
	}
	totals := map[string]string{}
	for _, table := range ntttcpTables(text) {
		if table.columns[0] == "Thread" {
			if r.Threads, err = ntttcpThreads(table); err != nil {
				return r, err
			}
			continue
		}
		for i, name := range table.columns {
			totals[name] = table.rows[0][i]
		}
	}
	return r, r.readTotals(totals)
}

// ntttcpTables finds the tables that have a row at least.
func ntttcpTables(text string) (tables []ntttcpTable) {
	lines := strings.Split(text, "\n")
	for i := 0; i+1 < len(lines); i++ {
		columns := ntttcpHeader(lines[i])
		if columns == nil || !isRuler(lines[i+1]) {
			continue
		}
		t := ntttcpTable{columns: columns}
		for _, line := range lines[i+2:] {
			fields := strings.Fields(line)
			if len(fields) != len(columns) {
				break
			}
			t.rows = append(t.rows, fields)
		}
		if len(t.rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// ntttcpHeader returns the columns of a header line, nil for any other line.
func ntttcpHeader(line string) (columns []string) {
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		i := slices.IndexFunc(ntttcpColumns, func(name string) bool { return strings.HasPrefix(rest, name) })
		if i < 0 {
			return nil
		}
		columns = append(columns, ntttcpColumns[i])
		rest = rest[len(ntttcpColumns[i]):]
	}
	return columns
}

func isRuler(line string) bool {
	return strings.Contains(line, "===") && strings.Trim(line, "= ") == ""
}

func ntttcpThreads(t ntttcpTable) (threads []NTttcpThread, err error) {
	for _, row := range t.rows {
		index, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, fmt.Errorf("a thread is called %q, not by its number", row[0])
		}
		thread := NTttcpThread{Index: index}
		for i, name := range t.columns {
			var v float64
			to, scale := &v, 1.0
			switch name {
			case "Time(s)":
				to = &thread.Seconds
			case "Throughput(KB/s)":
				to, scale = &thread.Throughput, 8*ntttcpKB
			case "Avg B / Compl":
				to = &thread.PerCompletion
			default:
				continue
			}
			if v, err = figure(fmt.Sprintf("%s of thread %d", name, index), row[i]); err != nil {
				return nil, err
			}
			*to = v * scale
		}
		threads = append(threads, thread)
	}
	return threads, nil
}

// readTotals reads the totals, all of which have to be there.
func (r *NTttcpReport) readTotals(totals map[string]string) error {
	if len(totals) == 0 {
		return errors.New("there are no totals: NTttcp did not finish its work, and its exit code does not say so")
	}
	var megabytes, perSecond float64
	figures := []struct {
		name string
		to   *float64
	}{
		{"Bytes(MEG)", &megabytes}, {"realtime(s)", &r.Seconds}, {"Avg Frame Size", &r.FrameSize}, {"Throughput(MB/s)", &perSecond},
		{"Cycles/Byte", &r.CyclesPerByte}, {"Buffers", &r.Buffers}, {"DPCs(count/s)", &r.DPCsPerSecond}, {"Intr(count/s)", &r.InterruptsPerSecond},
	}
	for _, f := range figures {
		text, told := totals[f.name]
		if !told {
			return fmt.Errorf("the totals lack %s: the output is cut short", f.name)
		}
		var err error
		if *f.to, err = ntttcpFigure(f.name, text); err != nil {
			return err
		}
	}
	counts := []struct {
		name string
		to   *int64
	}{{"Packets Sent", &r.PacketsSent}, {"Packets Received", &r.PacketsReceived}, {"Retransmits", &r.Retransmits}, {"Errors", &r.Errors}}
	for _, c := range counts {
		var err error
		if *c.to, err = count(c.name, totals[c.name]); err != nil {
			return err
		}
	}
	r.Bytes = megabytes * ntttcpMB
	r.Throughput = finer(r.Bytes*8, r.Seconds, perSecond*8*ntttcpMB)
	return r.setCPU(totals["Avg. CPU %"])
}

// finer chooses between two tellings of one rate, by whose last digit weighs
// less: bits over the time, or the printed MB/s; both have three digits after
// the point.
func finer(bits, seconds, printed float64) float64 {
	if seconds > 0 && 1/seconds < 8*ntttcpMB/printed {
		return bits / seconds
	}
	return printed
}

// ntttcpFigure reads a figure of which the machine's may be negative where its
// clock was too coarse: cycles follow from such a CPU, and are then not known.
func ntttcpFigure(name, text string) (float64, error) {
	if name == "Cycles/Byte" && strings.HasPrefix(text, "-") {
		return 0, nil
	}
	return figure(name, text)
}

// count reads a whole number that is not negative.
func count(name, text string) (int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < 0 || v == math.MaxInt64 {
		return 0, fmt.Errorf("%s is %q, which is no count", name, text)
	}
	return v, nil
}
