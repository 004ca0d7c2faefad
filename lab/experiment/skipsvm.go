package experiment

import (
	"fmt"

	"windtunnel/lab/probe"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// lacksForVMs names the requirements of VMs that the machine lacks.
func lacksForVMs(sc *suite.Scenario, facts *probe.Facts) (why []string) {
	if sc.Endpoint.Kind != suite.VM {
		return nil
	}
	why = lacksFeatures([]string{probe.Tun, probe.QEMU, probe.GuestKernel}, facts)
	vms := 2 * sc.Pairs
	if sc.Endpoint.HostVNIC {
		vms -= 2
	}
	if needs := int64(vms) * sc.Endpoint.Memory; facts.MemoryBytes > 0 && uint64(needs) > facts.MemoryBytes {
		why = append(why, fmt.Sprintf("its %d VMs take %s of memory and this machine has %s; make their memory smaller", vms, units.FormatBytes(needs), units.FormatBytes(int64(facts.MemoryBytes))))
	}
	return why
}
