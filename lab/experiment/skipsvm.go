package experiment

import (
	"fmt"

	"windtunnel/lab/probe"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/units"
)

// lacksForVMs names the requirements of VMs that the machine lacks.
func lacksForVMs(sys system.System, sc *suite.Scenario, facts *probe.Facts) (why []string) {
	if sc.Endpoint.Kind != suite.VM {
		return nil
	}
	if err := system.SupportsVMs(sys, sc.Endpoint); err != nil {
		why = append(why, err.Error())
	}
	for _, f := range []string{probe.Tun, probe.QEMU, probe.GuestKernel} {
		if reason, remedy, missing := facts.Missing(f); missing {
			why = append(why, reason+"; "+remedy)
		}
	}
	if needs := int64(2*sc.Pairs) * sc.Endpoint.Memory; facts.MemoryBytes > 0 && uint64(needs) > facts.MemoryBytes {
		why = append(why, fmt.Sprintf("its %d VMs take %s of memory and this machine has %s; make their memory smaller", 2*sc.Pairs, units.FormatBytes(needs), units.FormatBytes(int64(facts.MemoryBytes))))
	}
	return why
}
