package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nexthopStep is a step to a nexthop.
func nexthopStep(id string) Step { return Step{What: "nexthop", Key: id, Result: "tunnel"} }

func TestATracedPacketLeavesByItsLastNexthop(t *testing.T) {
	for name, c := range map[string]struct {
		trace Trace
		want  []string
	}{
		"two paths, a learned MTU": {Trace{Steps: []Step{{What: "member", Key: "1", Result: "nexthop 21, tunnel c vxlan"}, nexthopStep("20")}}, []string{
			"path 1 of 2, chosen by the flow's hash: leaves by eth1, outer addresses 192.0.2.1 → 192.0.2.2; inner IP packets of up to 1468 bytes by configuration, outer packets of up to 1368 bytes as reported by underlay routers",
			"path 2 of 2, chosen by the flow's hash: leaves by eth2, outer addresses 198.51.100.1 → 198.51.100.2, next hop 198.51.100.254; inner IP packets of up to 1468 bytes by configuration, outer packets of up to 1368 bytes as reported by underlay routers",
		}},
		"a path that is down":          {Trace{Steps: []Step{nexthopStep("21")}}, []string{"leaves by no device: the path 2001:db8::1 → 2001:db8::3 is down"}},
		"delivered here":               {Trace{Steps: []Step{nexthopStep("14")}}, nil},
		"dropped":                      {Trace{Steps: []Step{nexthopStep("20")}, Dropped: true}, nil},
		"copied to one port, one node": {Trace{Steps: []Step{{What: "member", Key: "0", Result: "nexthop 14, port web1"}, {What: "member", Key: "7", Result: "nexthop 21, tunnel c vxlan"}}}, []string{"leaves by no device: the path 2001:db8::1 → 2001:db8::3 is down"}},
		"a nexthop that is gone":       {Trace{Steps: []Step{nexthopStep("77")}}, nil},
		"answered":                     {Trace{Steps: []Step{{What: "answer"}}}, nil},
		"words of another version":     {Trace{Steps: []Step{nexthopStep("twenty")}}, nil},
	} {
		if diff := cmp.Diff(c.want, c.trace.WithLeaves(sampleNexthops).Leaves); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
