package e2e

import (
	"fmt"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// Every packet size up to 9000 bytes arrives directly and by translation, routed and bridged.
func TestDirectAndTranslatedPacketsOfJumboSizesArrive(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for _, c := range []struct {
		name       string
		forwarding model.Forwarding
		translated bool
	}{{"direct", model.L3, false}, {"direct, bridged", model.L2, false}, {"translated", model.L3, true}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, options{mtu: 9100, routed: c.translated})
			var x, y *workload
			if c.translated {
				x, y = routedPair(b, model.VXLAN)
			} else {
				x, y = directPair(b, c.forwarding, model.VXLAN)
			}
			mtu := int(b.nodes[0].vif("x").MTU)
			for _, version := range []int{4, 6} {
				sweep(t, x, y, version, mtu)
			}
		})
	}
}

// Where no NIC fills checksums in, tshark finds right ones at the fabric device of the receiver
// and at the workload's device.
func TestChecksumsOfDirectAndTranslatedPacketsAreRight(t *testing.T) {
	must.Long(t)
	needs(t, "tshark")
	t.Parallel()
	for _, translated := range []bool{false, true} {
		t.Run(fmt.Sprint("translated=", translated), func(t *testing.T) {
			b := newBed(t, options{offload: "none", routed: translated})
			var x, y *workload
			if translated {
				x, y = routedPair(b, model.VXLAN)
			} else {
				x, y = directPair(b, model.L3)
			}
			captures := []*capture{startCapture(t, b.nodes[1].space, "fab"), startCapture(t, y.port.Attach.Netns, "eth0")}
			for _, version := range []int{4, 6} {
				for _, n := range []int{1, 63, 300, 1200, 3000} {
					must.Succeed(t, datagram(x, y, version, n))
				}
				checkTransfer(x, y, version, 200<<10)
				if out, err := x.command("ping", "-c", "3", "-i", "0.2", "-W", "10", y.ip(version).String()); err != nil {
					t.Errorf("ping: %v: %s", err, out)
				}
			}
			for i, c := range captures {
				right := 0
				for n, f := range decoded(t, c.stop(), append([]string{"frame.protocols", "_ws.malformed", "eth.dst"}, checksumFields...)...) {
					if i == 1 && f[2] != y.port.MAC.String() {
						continue // y's NIC would complete these
					}
					sums := checksumsOf(f[3:])
					if sums.wrong > 0 || f[1] != "" {
						t.Errorf("capture %d, frame %d: %q", i, n+1, f)
					}
					right += sums.right
				}
				if right < 100 {
					t.Errorf("capture %d: only %d checksums are right", i, right)
				}
			}
		})
	}
}
