package main

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/probe"
)

func TestTheEnvironmentHasTheValuesOfMachinesThatDiffer(t *testing.T) {
	a, b, c := *probe.Probe(), *probe.Probe(), *probe.Probe()
	a.Release, b.Release, c.Release = "6.1", "6.18", "6.1"
	a.Hostname, b.Hostname, c.Hostname = "a", "b", "c"
	env := (&machines{facts: []*probe.Facts{&a, &b, &c}}).environment(nil)
	must.Equal(t, "6.1 | 6.18", env.Kernel)
	must.Equal(t, "a | b | c", env.Hostname)
	must.Equal(t, a.Environment(nil).OS, env.OS)
}
