package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"windtunnel/internal/lists"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/units"
)

// Facts lists the properties of the run, the machine and the kernel. It leaves out
// unknown ones.
func Facts(r *model.Report) []document.Term {
	e := r.Run.Environment
	var list []document.Term
	add := func(name, value string) {
		if value != "" && value != "0" {
			list = append(list, document.Term{Name: name, Text: value})
		}
	}
	add("Run", r.Run.ID)
	add("Name", r.Run.Name)
	add("Note", r.Run.Note)
	add("Suite", r.Run.Suite)
	add("Started", r.Run.Started.UTC().Format("2 January 2006, 15:04:05 UTC"))
	if r.Run.Finished != nil {
		add("Took", r.Run.Finished.Sub(r.Run.Started).Round(time.Second).String())
	}
	add("Status", string(r.Run.Status))
	add("Seed", strconv.FormatUint(r.Run.Seed, 10))
	add("Host", e.Hostname)
	add("CPU", e.CPUModel)
	add("CPUs", strconv.Itoa(e.CPUs))
	if e.MemoryBytes > 0 {
		add("Memory", units.FormatBytes(int64(min(e.MemoryBytes, 1<<62))))
	}
	add("Virtualization", e.Virtualization)
	add("System", e.OS)
	add("Kernel", e.Kernel)
	if e.HZ > 0 {
		add("Kernel tick", fmt.Sprintf("%d Hz", e.HZ))
	}
	add("IRQ time accounting", e.IRQTimeAccounting)
	add("Clock source", e.ClockSource)
	add("Congestion control", e.CongestionControl)
	add("CPUs of each node", pairs(e.NodeCPUs))
	zones := map[string]string{}
	for _, h := range r.Run.Options.Hosts {
		if h.Zone != "" {
			zones[h.Name] = h.Zone
		}
	}
	add("Zones of the hosts", pairs(zones))
	add("Choice of the CPUs", e.CPUChoice)
	add("Shared by the nodes", e.NodesShare)
	add("CPU meter", e.CPUMeter)
	add("Fabric", e.Fabric)
	add("Windtunnel", strings.TrimSpace(e.Version+" "+cmp.Or(e.Revision, "")))
	add("Tools", pairs(e.Tools))
	return list
}

// Settings lists the sysctls, the offloads by device, other settings of the testbed,
// and the CPU's mitigations.
func Settings(r *model.Report) []document.Term {
	e := r.Run.Environment
	var list []document.Term
	for _, group := range []struct {
		prefix string
		of     map[string]string
	}{{"", e.Sysctls}, {"offloads of ", e.Offloads}, {"", e.Settings}, {"mitigation of ", e.Mitigations}} {
		for _, k := range slices.Sorted(maps.Keys(group.of)) {
			list = append(list, document.Term{Name: group.prefix + k, Text: group.of[k]})
		}
	}
	return list
}

// pairs prints a map as "a: 0, b: 1".
func pairs(m map[string]string) string {
	return strings.Join(lists.Map(slices.Sorted(maps.Keys(m)), func(k string) string { return k + ": " + m[k] }), ", ")
}
