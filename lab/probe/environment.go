package probe

import (
	"cmp"
	"maps"
	"runtime/debug"

	"windtunnel/lab/program"
	"windtunnel/lab/sample"
)

// Environment returns the part of a run's record that depends on this machine, with the
// versions of the given programs. Only the testbed knows the namespaces' sysctls, the
// offloads, the nodes' CPUs and the fabric.
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
	info, _ := debug.ReadBuildInfo()
	e.Version, e.Revision = build(info)
	return e
}

// build returns the program's version and its git revision, with a mark if files had been
// changed. Version is never empty.
func build(info *debug.BuildInfo) (version, revision string) {
	if info == nil {
		return "unknown", ""
	}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified && revision != "" {
		revision += "+changes"
	}
	return cmp.Or(info.Main.Version, "(devel)"), revision
}
