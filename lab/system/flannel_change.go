package system

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/space"
)

// addSpareLease makes a node join: it adds the node's lease to etcd, as the node's flanneld would
// (pkg/subnet/etcd/registry.go), and waits for the route to its subnet.
func (f Flannel) addSpareLease(n *Node) error {
	lease := map[string]any{"PublicIP": spareUnderlay(n), "BackendType": f.Backend}
	if f.Backend == flannelVXLAN {
		vtep := net.HardwareAddr{0x02, 'w', 't', byte(n.Index), 0xff, 0xfe} // each node needs another address: when a node leaves, flanneld removes all entries of its MAC address
		lease["BackendData"] = map[string]any{"VNI": 1, "VtepMAC": vtep.String()}
	}
	value, err := json.Marshal(lease)
	if err != nil {
		return err
	}
	if err := etcdOf(n).put(spareLeaseKey(n), string(value)); err != nil {
		return err
	}
	return awaitSpareRoute(n, true)
}

func (f Flannel) removeSpareLease(n *Node) error {
	if err := etcdOf(n).remove(spareLeaseKey(n)); err != nil {
		return err
	}
	return awaitSpareRoute(n, false)
}

// spareSubnet returns the subnet of the imaginary node that joins at node n.
func spareSubnet(n *Node) netip.Prefix {
	v4, _ := routedSubnets(15 - n.Index)
	return v4
}

func spareLeaseKey(n *Node) string {
	return flannelPrefix + "/subnets/" + strings.ReplaceAll(spareSubnet(n).String(), "/", "-")
}

// awaitSpareRoute waits until flanneld has added the route to the subnet of the node that joins, or has
// removed it.
func awaitSpareRoute(n *Node, want bool) error {
	filter := &netlink.Route{Dst: space.IPNet(spareSubnet(n))}
	for deadline := time.Now().Add(daemonReady); ; time.Sleep(time.Millisecond) {
		routes, err := n.Space.Links.RouteListFiltered(netlink.FAMILY_V4, filter, netlink.RT_FILTER_DST)
		if err != nil {
			return fmt.Errorf("list the routes in %s: %w", n.Name, err)
		}
		if (len(routes) > 0) == want {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("flanneld did not change the route to %s within %v%s", filter.Dst, daemonReady, n.lastOutput("flanneld"))
		}
	}
}
