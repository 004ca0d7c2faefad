package meter

import (
	"slices"

	"windtunnel/lab/sample"
)

// WireNode is the node name of hops in the fabric.
const WireNode = "wire"

// Hops lists the devices in path order, from the sender's endpoint over the
// wire's ports to the receiver's endpoint, with their counts of the window.
// receiver is nil if both endpoints are on the sender's node. Containers that
// take no part are left out.
func Hops(sender, receiver *Delta, f Facts) []sample.Hop {
	var list []sample.Hop
	add := func(devices []placed) {
		for _, d := range devices {
			h := d.hop()
			h.Order = len(list)
			list = append(list, h)
		}
	}
	if receiver == nil {
		near, shared := branches(sender, f.SenderEndpoints)
		far, _ := branches(sender, f.ReceiverEndpoints)
		slices.Reverse(far)
		add(near)
		add(slices.DeleteFunc(shared, func(d placed) bool { return d.Role == RoleFabric || d.Role == RoleTunnel }))
		add(far)
		return list
	}
	near, shared := branches(sender, f.SenderEndpoints)
	add(near)
	add(shared)
	add(inOrder(f.Ports, WireNode))
	near, shared = branches(receiver, f.ReceiverEndpoints)
	slices.Reverse(near)
	slices.Reverse(shared)
	add(shared)
	add(near)
	return list
}

// placed is a device with its node.
type placed struct {
	DeviceDelta
	node, namespace string
}

func inOrder(n *Delta, node string) []placed {
	var all []placed
	for namespace, d := range n.devices() {
		all = append(all, placed{d, node, namespace})
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.Order - b.Order })
	return all
}

// branches divides a node's devices. own are those of the given containers:
// each container's device and the vif after it. shared are the other devices.
func branches(n *Delta, endpoints []string) (own, shared []placed) {
	of := ""
	for _, d := range inOrder(n, n.Node) {
		switch d.Role {
		case RoleEndpoint:
			of = d.namespace
			fallthrough
		case RoleVif:
			if slices.Contains(endpoints, of) {
				own = append(own, d)
			}
		default:
			shared = append(shared, d)
		}
	}
	return own, shared
}

func (d placed) hop() sample.Hop {
	return sample.Hop{
		Node: d.node, Endpoint: d.namespace, Device: d.Name, Role: d.Role,
		RxPackets: d.RxPackets, RxBytes: d.RxBytes, TxPackets: d.TxPackets, TxBytes: d.TxBytes,
		RxDropped: d.RxDrops, TxDropped: d.TxDrops, QdiscDrop: d.Qdisc.Drops + d.Qdisc.IngressDrops,
	}
}
