package experiment

import (
	"strings"
	"testing"

	"windtunnel/lab/meter"
)

func TestFramesThatTheWireLostAreWarnedOf(t *testing.T) {
	device := meter.DeviceDelta{DeviceReading: meter.DeviceReading{Role: meter.RolePort, RxDrops: 7}}
	ports := &meter.Delta{Namespaces: []meter.NamespaceDelta{{Devices: []meter.DeviceDelta{device}}}}
	got := lostOnWire(meter.Facts{Ports: ports})
	if len(got) != 1 || !strings.Contains(got[0], "lost 7 frames") || !strings.Contains(got[0], "sysctl -w net.core.netdev_max_backlog=4000") {
		t.Errorf("%q, want the number and the remedy", got)
	}
	if got := lostOnWire(meter.Facts{}); got != nil {
		t.Errorf("%q without a wire", got)
	}
}
