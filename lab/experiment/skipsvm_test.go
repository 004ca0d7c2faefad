package experiment

import (
	"strings"
	"testing"

	"windtunnel/lab/probe"
	"windtunnel/lab/suite"
)

func TestScenariosWithVMsAreSkippedWithAllThatTheyLack(t *testing.T) {
	has := func(missing ...string) *probe.Facts {
		f := machine(2)
		for _, name := range []string{probe.Tun, probe.QEMU, probe.GuestKernel} {
			found := probe.Finding{Feature: probe.Feature{Name: name, Remedy: "remedy for " + name}, Works: true}
			for _, m := range missing {
				if m == name {
					found.Works, found.Reason = false, "no "+name
				}
			}
			f.Features = append(f.Features, found)
		}
		f.MemoryBytes = 2 << 30
		return f
	}
	vm := func(system string, memory int64) suite.Scenario {
		return scenario(system, func(sc *suite.Scenario) {
			sc.Endpoint = suite.Endpoint{Kind: suite.VM, CPUs: 1, Memory: memory}
		})
	}
	for what, c := range map[string]struct {
		scenario suite.Scenario
		facts    *probe.Facts
		want     []string
	}{
		"everything there":      {vm("bridge", 1<<30), has(), nil},
		"containers":            {scenario("bridge", nil), has(probe.QEMU), nil},
		"no QEMU and no kernel": {vm("bridge", 1<<29), has(probe.QEMU, probe.GuestKernel), []string{"no qemu; remedy for qemu", "no guest-kernel; remedy for guest-kernel"}},
		"no tap":                {vm("vxlan", 1<<29), has(probe.Tun), []string{"no tun; remedy for tun"}},
		"too little memory":     {vm("bridge", 3<<29), has(), []string{"its 2 VMs take 3 GiB of memory and this machine has 2 GiB"}},
		"another plug":          {vm("macvlan", 1<<29), has(), []string{"macvlan cannot have VMs as endpoints"}},
	} {
		why := skipsOn(planOf(c.scenario), c.facts)[c.scenario.ID]
		if (why == "") != (len(c.want) == 0) {
			t.Errorf("%s: %q; want %q", what, why, c.want)
		}
		for _, w := range c.want {
			if !strings.Contains(why, w) {
				t.Errorf("%s: %q lacks %q", what, why, w)
			}
		}
	}
}
