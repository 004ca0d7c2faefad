package fleet

import (
	"context"
	"fmt"

	"windtunnel/vrouter/store"
)

// NodeRole returns the key ranges of a node's role. The node may read all keys. It may
// write its alive key and its ports. networks are the networks in which the node may
// have ports; empty: all networks.
//
// The keys under names/, addresses/ and macs/ do not contain a node, so every node may
// write all of them in its networks. A node can thus occupy free names and addresses. It
// cannot take the address of another node's port: see storedPort.
func NodeRole(node string, networks ...string) []store.Range {
	all := []store.Range{
		{Prefix: true},
		{Key: inAlive + node, Write: true},
		{Key: inNames, Prefix: true, Write: true},
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

// Upgrade changes a store to SchemaVersion. It moves each port to a key that contains
// the node, and returns the number of moved ports. Agents of older versions end when the
// schema changes; their packets keep flowing. After an interruption, call Upgrade again.
func (f *Fleet) Upgrade(ctx context.Context) (moved int, err error) {
	for {
		some, first := 0, false // ports that this commit moves; whether it writes the schema
		err := f.Change(ctx, func(v *View) (store.Commit, error) {
			d := v.draft()
			some, first = 0, v.schema.Version < SchemaVersion
			if first {
				return d.put(keySchema, schema{SchemaVersion}).commit, nil
			}
			for name, at := range v.places {
				key := v.keyFor(*v.ports[name])
				if at.key == key || 2*some+2 > f.store.MaxKeys()-1 {
					continue
				}
				d.exact(at.key, key).delete(at.key).put(key, v.ports[name])
				some++
			}
			return d.commit, nil
		})
		moved += some
		if err != nil {
			return moved, fmt.Errorf("upgrade the store to schema %d: %w; run the command again", SchemaVersion, err)
		}
		if some == 0 && !first {
			return moved, nil
		}
	}
}
