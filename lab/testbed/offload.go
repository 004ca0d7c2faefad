package testbed

import (
	"strings"

	"windtunnel/lab/suite"
)

// NICOffloads returns the states of a NIC's segmentation features for a profile. Every
// kind of segmentation that the profile does not name is off.
func NICOffloads(features []string, profile suite.Offload) map[string]bool {
	on := map[suite.Offload][]string{
		suite.OffloadTCP: {"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation"},
	}
	on[suite.OffloadTunnel] = append(on[suite.OffloadTCP],
		"tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation",
		"tx-gre-segmentation", "tx-gre-csum-segmentation",
		"tx-ipxip4-segmentation", "tx-ipxip6-segmentation")
	want := map[string]bool{}
	for _, f := range features {
		if strings.HasPrefix(f, "tx-") && (strings.HasSuffix(f, "-segmentation") || f == "tx-gso-partial" || f == "tx-gso-list") {
			want[f] = false
		}
	}
	for _, f := range on[profile] {
		if _, has := want[f]; has {
			want[f] = true
		}
	}
	return want
}
