package fleet

import (
	"maps"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// Access compares the ports that connect a node to its networks with the networks' node_access.
// It returns the ports that the node's agent must add, and the names of those that it must
// delete. A node needs such a port while it has another port of the network, and always in the network always. After a change of the network's pool, the
// agent deletes the port, and adds it again with an address of the new pool.
func (v *View) Access(node, always string) (add []model.PortRequest, remove []string) {
	networks := slices.Sorted(maps.Keys(v.hosts[node]))
	if _, is := v.networks[always]; is && v.hosts[node][always] == 0 {
		networks = append(networks, always)
	}
	for _, network := range networks {
		workload, others, outdated, own := network == always, false, false, ""
		n := v.networks[network]
		for _, p := range v.membersOn(network, node) {
			switch {
			case p.Origin == model.NodeAccess:
				own = p.Name
				outdated = !v.matchesPool(n, p.Port())
			case p.Attach.Host:
				others = true
			default:
				workload = true
			}
		}
		switch wanted := n.NodeAccess && workload && !others; {
		case wanted && own == "":
			add = append(add, model.PortRequest{Port: model.Port{
				Name: model.NodePort(node, network), Network: network, Node: node, Attach: model.Attachment{Host: true}, Origin: model.NodeAccess,
			}})
		case !wanted && own != "", outdated:
			remove = append(remove, own)
		}
	}
	return add, remove
}

// matchesPool reports whether the floating addresses of the port that connects a node match the network's pool: all are in
// the pool, and there is one of each family, unless the pool has no free address of the family. With nat_ports, the port must
// have a share instead, unless no share is free.
func (v *View) matchesPool(n model.Network, p model.Port) bool {
	if n.NATPorts > 0 {
		return len(p.Floating) == 0 && p.NATSlot <= n.NATSlots() && (p.NATSlot > 0 || v.freeSlot(n, choice{}) == 0)
	}
	if p.NATSlot > 0 {
		return false
	}
	for _, a := range p.Floating {
		if !n.InPool(a) {
			return false
		}
	}
	for _, a := range v.freeFloating(n, choice{}) {
		if !n.NodeAddress(p, func(b netip.Addr) bool { return a.Is4() == b.Is4() }).IsValid() {
			return false
		}
	}
	return true
}
