package compare

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

func TestEnvironmentDifferencesPutTheMachineFirst(t *testing.T) {
	a := made{blocks: 1}.run().Run.Environment
	b := made{blocks: 1}.run().Run.Environment
	b.Hostname, b.Kernel, b.CPUModel, b.Revision = "lab-2", "6.19.1-amd64", "Xeon", "0000000"
	b.MemoryBytes += 3 << 20 // what a kernel kept for itself
	b.Sysctls = map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.core.rmem_max": "212992"}
	b.Settings = map[string]string{"a faba0/gro_flush_timeout": "0"}
	b.Tools = nil
	want := []Difference{
		{"CPU model", "EPYC 9454P", "Xeon", true, false},
		{"kernel", "6.18.3-amd64", "6.19.1-amd64", true, false},
		{"host", "lab-1", "lab-2", false, false},
		{"windtunnel revision", "8b3dce6", "0000000", false, false},
		{"tool iperf3", "3.12", "", false, false},
		{"sysctl net.ipv4.tcp_rmem", "4096 131072 33554432", "4096 131072 6291456", false, false},
		{"sysctl net.core.rmem_max", "", "212992", false, false},
		{"setting a faba0/gro_flush_timeout", "", "0", false, false},
	}
	must.Equal(t, want, environments(a, b))
	if got := environments(a, a); got != nil {
		t.Errorf("of one environment: %+v", got)
	}
}

func TestOnlyMachineFactsMakeAnotherMachine(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sample.Environment)
		other  bool
	}{
		"host name":      {func(e *sample.Environment) { e.Hostname = "x" }, false},
		"kernel patch":   {func(e *sample.Environment) { e.Kernel = "6.18.44-cloud" }, false},
		"kernel minor":   {func(e *sample.Environment) { e.Kernel = "6.1.3-amd64" }, true},
		"kernel major":   {func(e *sample.Environment) { e.Kernel = "7.18.3" }, true},
		"kernel unknown": {func(e *sample.Environment) { e.Kernel = "" }, true},
		"CPU model":      {func(e *sample.Environment) { e.CPUModel = "x" }, true},
		"number of CPUs": {func(e *sample.Environment) { e.CPUs++ }, true},
		"virtualization": {func(e *sample.Environment) { e.Virtualization = "" }, true},
		"memory":         {func(e *sample.Environment) { e.MemoryBytes *= 2 }, false},
		"mitigations":    {func(e *sample.Environment) { e.Mitigations = map[string]string{"spectre_v2": "x"} }, false},
		"clock source":   {func(e *sample.Environment) { e.ClockSource = "hpet" }, false},
		"node's CPUs":    {func(e *sample.Environment) { e.NodeCPUs = map[string]string{"a": "0"} }, false},
	} {
		a := made{blocks: 1}.run().Run.Environment
		b := a
		c.change(&b)
		differences := environments(a, b)
		if len(differences) != 1 || (len(otherMachine(differences)) == 1) != c.other {
			t.Errorf("%s: %+v, want another machine %v", name, differences, c.other)
		}
	}
}
