package fleet

import "windtunnel/vrouter/store"

// NodeRole returns the key ranges of a node's role. The node may read all keys. It may
// write its alive key, its install key, the keys of its places and its ports. networks are
// the networks in which the node may have ports; empty: all networks.
//
// The keys under unique/ do not contain a node, so every node may
// write all of them in its networks. A node can thus occupy free names and addresses. It
// cannot take the address of another node's port: see storedPort.
func NodeRole(node string, networks ...string) []store.Range {
	all := []store.Range{
		{Prefix: true},
		{Key: inAlive + node, Write: true},
		{Key: inInstalls + node, Write: true},
		{Key: inNames, Prefix: true, Write: true},
	}
	if len(networks) == 0 {
		all = append(all, store.Range{Key: inHosts + node + "/", Prefix: true, Write: true})
	}
	for _, n := range networks {
		all = append(all, store.Range{Key: place{node, n}.key(), Write: true})
	}
	prefixes := []string{inPorts + node + "/", inMACs, inAddresses}
	for _, prefix := range prefixes {
		if len(networks) == 0 {
			all = append(all, store.Range{Key: prefix, Prefix: true, Write: true})
		}
		for _, n := range networks {
			all = append(all, store.Range{Key: prefix + n + "/", Prefix: true, Write: true})
		}
	}
	return all
}

// OperatorRole returns the key ranges of an operator's role: all keys, with write access.
func OperatorRole() []store.Range { return []store.Range{{Prefix: true, Write: true}} }
