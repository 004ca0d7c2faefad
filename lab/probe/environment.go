package probe

import (
	"cmp"
	"maps"
	"runtime/debug"

	"windtunnel/lab/program"
	"windtunnel/lab/sample"
)

// Environment is the part of a run's record that this machine determines,
// with the versions of the given programs. The namespaces' sysctls, offloads,
// the nodes' CPUs and the fabric are known only to the testbed.
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

// build reads the program's version and the git revision that it was built
// from, marked where files had been changed. Version is never empty.
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
