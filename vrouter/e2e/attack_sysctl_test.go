package e2e

import (
	"strings"
	"testing"

	"windtunnel/vrouter/model"
)

// The sysctls of the device of a node's own port are set: workloads cannot give the device
// routes, addresses or redirects, and it answers ARP only for the port's addresses.
func TestANodesDeviceIgnoresAdvertisementsAndRedirects(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{nodes: 1})
	b.state.Nodes = b.nodesOf(false)
	b.state.Networks = []model.Network{{Name: "red", ID: 1, Forwarding: model.L2L3, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
	b.workload("host", "red", 0, "10.1.0.10", "fd00:1::10")
	b.state.Ports[0].Attach = model.Attachment{Host: true}
	b.up()
	n := b.nodes[0]
	device := n.hostDevice()
	for name, want := range map[string]string{
		"ipv6/conf/DEVICE/accept_ra": "0", "ipv6/conf/DEVICE/autoconf": "0", "ipv6/conf/DEVICE/accept_redirects": "0",
		"ipv4/conf/DEVICE/arp_ignore": "1", "ipv4/conf/DEVICE/arp_announce": "2", "ipv4/conf/DEVICE/accept_redirects": "0", "ipv4/conf/DEVICE/send_redirects": "0",
	} {
		key := "net/" + strings.ReplaceAll(name, "DEVICE", device)
		if got := strings.TrimSpace(n.exec("sysctl -n " + key)); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}
