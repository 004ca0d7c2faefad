package k8s

import (
	"net/netip"
	"strings"
	"testing"

	"windtunnel/lab/host"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
)

// The lab changes no device of a cluster. So a scenario with other offloads is refused. Pods
// can be in a tunnel of the CNI, and the hosts are not.
func TestOffloadsThatTheNodesDoNotHaveAreRefused(t *testing.T) {
	on := space.Feature{On: true, Wanted: true}
	device := host.Device{Name: "eth0", MTU: 1500, Features: map[string]space.Feature{
		"tx-tcp-segmentation": on, "tx-tcp6-segmentation": on, "tx-udp_tnl-segmentation": on, "tx-gre-segmentation": on, "tx-generic-segmentation": on,
	}}
	x := &Executor{machines: []*machine{{
		node: nodeObject{Metadata: metadata{Name: "n1"}}, data: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, survey: &host.Survey{Device: device},
	}}}
	for _, c := range []struct {
		system  system.System
		offload suite.Offload
		want    string // part of the error; "" for none
	}{
		{system.CNI{}, suite.OffloadKept, ""},
		{system.CNI{}, suite.OffloadTunnel, ""},
		{system.CNI{}, suite.OffloadTCP, "node n1: device eth0 does not have the scenario's offload tcp; set it with `ethtool -K eth0 tx-gre-segmentation off tx-udp_tnl-segmentation off`"},
		{system.Host{}, suite.OffloadTCP, ""},
		{system.Host{}, suite.OffloadNone, "tx-tcp-segmentation off"},
	} {
		sc := suite.Scenario{System: c.system.Name(), Pairs: 1, Workload: suite.Workload{IPVersion: 4}, Fabric: suite.Fabric{Kind: suite.Existing, MTU: 1500, Offload: c.offload}}
		if _, err := x.Requires(&sc, c.system.About()); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with offload %q: %v, want %q", c.system.Name(), c.offload, err, c.want)
		}
	}
}
