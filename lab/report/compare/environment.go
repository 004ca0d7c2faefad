package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/lab/sample"
	"windtunnel/lab/units"
)

// Difference is a fact that differs between the two runs. An empty value was
// not recorded, or did not exist.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
	// Machine: the difference shows that the runs are from different machines.
	// Their figures can then differ even if the software is the same.
	Machine bool `json:"machine,omitempty"`
	// Trials: because of the difference the runs count different trials. Their
	// figures can then differ even if the software is the same.
	Trials bool `json:"trials,omitempty"`
}

// fact is one line of an environment: a name and a value.
type fact struct {
	name, value string
	machine     bool
}

// environments lists the differences between two environments. Differences of the machine
// come first. CPU model, number of CPUs, virtualization and the kernel's
// major and minor version decide whether it is another machine. The host name
// does not decide, because clouds rename hosts at every start.
func environments(a, b sample.Environment) []Difference {
	before, after := facts(a), facts(b)
	values := make(map[string]fact, len(after))
	for _, f := range after {
		values[f.name] = f
	}
	var list []Difference
	for _, f := range before {
		other := values[f.name]
		delete(values, f.name)
		if f.value != other.value {
			list = append(list, Difference{Name: f.name, A: f.value, B: other.value, Machine: differs(f, other)})
		}
	}
	for _, f := range after {
		if _, left := values[f.name]; left {
			list = append(list, Difference{Name: f.name, B: f.value, Machine: f.machine})
		}
	}
	slices.SortStableFunc(list, func(x, y Difference) int { return rank(x.Machine) - rank(y.Machine) })
	return list
}

// options lists the differences between what two runs were asked to do.
func options(a, b sample.Options) []Difference {
	facts := func(o sample.Options) []Difference {
		gates := "enforce"
		if o.Lenient {
			gates = "warn"
		}
		return []Difference{{Name: "--gates", A: gates, Trials: true}, {Name: "--cpu-distance", A: cmp.Or(o.CPUDistance, "auto"), Trials: true},
			{Name: "--cpus", A: cmp.Or(o.CPUs, "nearest")}, {Name: "figures adjusted for the machine's state", A: strconv.FormatBool(o.Adjusted), Trials: true}}
	}
	var list []Difference
	after := facts(b)
	for i, d := range facts(a) {
		if d.B = after[i].A; d.A != d.B {
			list = append(list, d)
		}
	}
	return list
}

// otherTrials returns the differences that make two runs count different trials.
func otherTrials(list []Difference) []Difference {
	return slices.DeleteFunc(slices.Clone(list), func(d Difference) bool { return !d.Trials })
}

// rank orders what has the property before what has not.
func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// differs reports whether two unequal values of a fact mean another machine.
func differs(a, b fact) bool {
	if a.name == kernelFact {
		return series(a.value) != series(b.value)
	}
	return a.machine
}

const kernelFact = "kernel"

// series returns the part of a kernel release that decides: "6.18" of
// "6.18.3-amd64".
func series(release string) string {
	major, rest, ok := strings.Cut(release, ".")
	if !ok {
		return release
	}
	end := strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(rest)
	}
	return major + "." + rest[:end]
}

// facts lists an environment. Every name occurs once.
func facts(e sample.Environment) []fact {
	list := []fact{
		{"CPU model", e.CPUModel, true},
		{"CPUs", known(e.CPUs), true},
		{"virtualization", e.Virtualization, true},
		{kernelFact, e.Kernel, true},
		{"host", e.Hostname, false},
		{"memory", memory(e.MemoryBytes), false},
		{"system", e.OS, false},
		{"clock source", e.ClockSource, false}, {"CPU meter", e.CPUMeter, false},
		{"kernel tick (HZ)", known(e.HZ), false},
		{"IRQ time accounting", e.IRQTimeAccounting, false},
		{"congestion control", e.CongestionControl, false},
		{"fabric", e.Fabric, false},
		{"windtunnel version", e.Version, false},
		{"windtunnel revision", e.Revision, false},
	}
	for _, group := range []struct {
		prefix string
		of     map[string]string
	}{
		{"CPUs of node ", e.NodeCPUs}, {"tool ", e.Tools}, {"sysctl ", e.Sysctls},
		{"offloads of ", e.Offloads}, {"setting ", e.Settings}, {"mitigation of ", e.Mitigations},
	} {
		for _, key := range slices.Sorted(maps.Keys(group.of)) {
			list = append(list, fact{group.prefix + key, group.of[key], false})
		}
	}
	return list
}

func known(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// memory rounds a size for readers: a kernel reserves some megabytes more or
// less at each boot.
func memory(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	const step = 256 << 20
	if bytes < step {
		return units.FormatBytes(int64(bytes))
	}
	return units.FormatBytes(int64((min(bytes, 1<<62) + step/2) / step * step))
}

// otherMachine returns the differences that mean another machine.
func otherMachine(list []Difference) []Difference {
	return slices.DeleteFunc(slices.Clone(list), func(d Difference) bool { return !d.Machine })
}

// changes lists differences in one line: "--gates enforce → warn".
func changes(list []Difference) string {
	parts := lists.Map(list, func(d Difference) string {
		return fmt.Sprintf("%s %s → %s", d.Name, cmp.Or(d.A, "—"), cmp.Or(d.B, "—"))
	})
	return strings.Join(parts, ", ")
}
