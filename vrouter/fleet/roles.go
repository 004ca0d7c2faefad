package fleet

import (
	"context"
	"fmt"

	"windtunnel/vrouter/store"
)

// NodeRole returns what the role of a node allows: to read everything, and to write
// the node's alive key and its ports. networks are the networks in which the node
// may have ports; empty: all.
//
// The unique keys of ports are not a node's: a node can occupy free names and
// addresses. It cannot take those of other ports, see rival.
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

// OperatorRole returns what the role of an operator allows: everything.
func OperatorRole() []store.Range { return []store.Range{{Prefix: true, Write: true}} }

// Upgrade moves the ports of a store of an older schema to the keys of this one,
// which have the node. It returns how many it moved. Agents of older versions end
// when the schema changes; their packets keep flowing. After an interruption,
// call Upgrade again.
func (f *Fleet) Upgrade(ctx context.Context) (moved int, err error) {
	for {
		some, first := 0, false
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
		if err != nil || some == 0 && !first {
			if err != nil {
				err = fmt.Errorf("upgrade the store: %w; run the command again", err)
			}
			return moved, err
		}
	}
}
