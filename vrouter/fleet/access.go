package fleet

import (
	"maps"
	"slices"

	"windtunnel/vrouter/model"
)

// Access compares the ports that connect a node to its networks with the networks' node_access.
// It returns the ports that the node's agent must add, and the names of those that it must
// delete. A node needs such a port while it has another port of the network.
func (v *View) Access(node string) (add []model.PortRequest, remove []string) {
	for _, network := range slices.Sorted(maps.Keys(v.hosts[node])) {
		workload, others, own := false, false, ""
		for _, p := range v.membersOn(network, node) {
			switch {
			case p.Origin == model.NodeAccess:
				own = p.Name
			case p.Attach.Host:
				others = true
			default:
				workload = true
			}
		}
		switch wanted := v.networks[network].NodeAccess && workload && !others; {
		case wanted && own == "":
			add = append(add, model.PortRequest{Port: model.Port{
				Name: model.NodePort(node, network), Network: network, Node: node, Attach: model.Attachment{Host: true}, Origin: model.NodeAccess,
			}})
		case !wanted && own != "":
			remove = append(remove, own)
		}
	}
	return add, remove
}
