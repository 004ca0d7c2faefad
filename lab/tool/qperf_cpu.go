package tool

import (
	"strconv"
	"strings"

	"windtunnel/lab/sample"
)

// qperfCPU sets the CPU figures that qperf prints. cpus_used is in percent of one CPU,
// summed over the machine's CPUs. The section conf has the number of CPUs. If one of
// the two is missing, qperfCPU sets nothing.
func (v qperfValues) qperfCPU(text string, ms sample.Metrics) {
	for _, end := range []struct {
		metric sample.Metric
		used   []string // by kind of test
		cpu    string
	}{
		{sample.ToolSenderCPU, []string{"send_cpus_used", "loc_cpus_used"}, "loc_cpu"},
		{sample.ToolReceiverCPU, []string{"recv_cpus_used", "rem_cpus_used"}, "rem_cpu"},
	} {
		cores, found := qperfCores(text, end.cpu)
		if !found {
			continue
		}
		for _, key := range end.used {
			if used, found := v[key]; found {
				ms.Set(end.metric, used/cores)
			}
		}
	}
}

// qperfCores parses the number of CPUs from a line of conf such as "loc_cpu = 2
// Cores: Intel Xeon @ 2.10GHz".
func qperfCores(text, key string) (n float64, found bool) {
	for line := range strings.Lines(text) {
		name, cpu, isFigure := strings.Cut(line, "=")
		number, _, counted := strings.Cut(cpu, " Cores:")
		if !isFigure || !counted || strings.TrimSpace(name) != key {
			continue
		}
		cores, err := strconv.Atoi(strings.TrimSpace(number))
		return float64(cores), err == nil && cores > 0
	}
	return 0, false
}
