package fib

import (
	"fmt"

	"windtunnel/vrouter/layout"
)

// Limits are the maximum numbers of vifs and nexthops, whose ids are indexes in the data
// path, and of the entries of sets; 0: unlimited. Package datapath checks the sizes of the other
// tables.
type Limits struct {
	Nexthops uint32 // ids 1 … Nexthops−1: entry 0 discards
	Vifs     uint32
	Sets     uint32 // identities, and allowed flows
}

// Limits of the data path's structures (bpf/types.h).
const (
	mostFlood = layout.MaxMembers // of a replication list
)

// LimitError reports that the state needs more entries than a table has.
type LimitError struct {
	Table   string // the data path's map (bpf/maps.h)
	What    string // kind of its entries
	Of      string // owner of the list; empty: the table of the node
	Setting string // key of the node's configuration that makes the table larger; empty: there is none
	Want    int
	Limit   uint32
}

func (e *LimitError) Error() string {
	if e.Of != "" {
		return fmt.Sprintf("%s: %d %s are wanted, at most %d fit; make it l3, or split it", e.Of, e.Want, e.What, e.Limit)
	}
	return fmt.Sprintf("table %s: %d %s are wanted, its limit is %d; raise %s in the node's configuration", e.Table, e.Want, e.What, e.Limit, e.Setting)
}
