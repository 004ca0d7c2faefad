package main

import (
	"testing"

	"windtunnel/lab/probe"
)

func TestTheEnvironmentHasTheValuesOfMachinesThatDiffer(t *testing.T) {
	a, b, c := *probe.Probe(), *probe.Probe(), *probe.Probe()
	a.Release, b.Release, c.Release = "6.1", "6.18", "6.1"
	a.Hostname, b.Hostname, c.Hostname = "a", "b", "c"
	env := (&place{facts: []*probe.Facts{&a, &b, &c}}).environment(nil)
	if want := "6.1 | 6.18"; env.Kernel != want {
		t.Errorf("kernel %q, want %q", env.Kernel, want)
	}
	if want := "a | b | c"; env.Hostname != want {
		t.Errorf("host names %q, want %q", env.Hostname, want)
	}
	if want := a.Environment(nil).OS; env.OS != want {
		t.Errorf("operating system %q, want that of all machines, %q", env.OS, want)
	}
}
