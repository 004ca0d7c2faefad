package probe

import (
	"cmp"
	"maps"

	"windtunnel/lab/program"
	"windtunnel/lab/sample"
)

// Environment returns the part of a run's record that depends on this machine, with the
// versions of the given programs. Only the testbed knows the namespaces' sysctls, the
// offloads, the nodes' CPUs and the fabric, and only the caller windtunnel's own version.
func (f *Facts) Environment(programs []program.Program) sample.Environment {
	e := sample.Environment{
		Hostname: f.Hostname, Kernel: f.Release, OS: f.OS,
		CPUModel: f.CPUModel, CPUs: len(f.Online), MemoryBytes: f.MemoryBytes, Virtualization: f.Virtualization,
		ClockSource: f.ClockSource, HZ: f.HZ, IRQTimeAccounting: f.IRQTimeAccounting,
		CongestionControl: f.CongestionControl, Mitigations: f.Mitigations, Sysctls: maps.Clone(f.Sysctls),
	}
	for _, p := range f.Programs(programs) {
		if p.Path == "" {
			continue
		}
		if e.Tools == nil {
			e.Tools = map[string]string{}
		}
		e.Tools[p.Name] = cmp.Or(p.Version, "version unknown")
	}
	return e
}
