package experiment

import (
	"fmt"

	"windtunnel/lab/meter"
)

// lostOnWire warns of frames that were dropped between a NIC and its port. The
// cause is a full CPU backlog; the host's net.core.netdev_max_backlog sets its length.
func lostOnWire(f meter.Facts) []string {
	n := f.RefusedByPorts()
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the wire lost %d frames, which the system under test did not cause: net.core.netdev_max_backlog frames waited on one CPU already; `sysctl -w net.core.netdev_max_backlog=4000` on this host prevents it at an MTU of 1500", n)}
}
