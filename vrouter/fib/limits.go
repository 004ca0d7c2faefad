package fib

import "fmt"

// Limits are the sizes of the data path's maps in entries; 0: unlimited.
type Limits struct {
	Routes   uint32 // host routes of each family
	Prefixes uint32 // other routes of each family
	Bridge   uint32
	Nexthops uint32 // ids 1 … Nexthops−1: entry 0 discards
	Vifs     uint32
	Labels   uint32 // MPLS labels; the same limit holds for VNIs
	Remotes  uint32
	Flows    uint32
}

// Limits of the data path's structures (bpf/types.h).
const (
	mostPaths   = 4   // MAX_PATHS, of a tunnel
	mostFlood   = 128 // MAX_MEMBERS, of a replication list
	memberRatio = 8   // entries of the members' table for each nexthop
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

// check returns a *LimitError for each table that is too large.
func (l Limits) check(t Tables) (errs []error) {
	var hosts, prefixes [2]int
	for k := range t.Routes {
		family := 0
		if k.Prefix.Addr().Is6() {
			family = 1
		}
		if k.Prefix.IsSingleIP() {
			hosts[family]++
		} else {
			prefixes[family]++
		}
	}
	members := 0
	for _, n := range t.Nexthops {
		members += len(n.Members)
	}
	for _, table := range []struct {
		name, what, setting string
		want                int
		limit               uint32
	}{
		{"hosts4", "IPv4 host routes", "limits.routes", hosts[0], l.Routes},
		{"hosts6", "IPv6 host routes", "limits.routes", hosts[1], l.Routes},
		{"lpm4", "IPv4 prefixes", "limits.prefixes", prefixes[0], l.Prefixes},
		{"lpm6", "IPv6 prefixes", "limits.prefixes", prefixes[1], l.Prefixes},
		{"bridge", "bridge entries", "limits.bridge", len(t.Bridge), l.Bridge},
		{"ilm", "labels", "limits.labels", len(t.ILM), l.Labels},
		{"vnis", "VNIs", "limits.labels", len(t.VNIs), l.Labels},
		{"senders", "source prefixes of remote ports and gateways", "limits.prefixes", len(t.Senders), l.Prefixes},
		{"remotes", "underlay addresses of other nodes and gateways", "limits.remotes", len(t.Remotes), l.Remotes},
		{"members", "members of composite nexthops", "limits.nexthops", members, memberRatio * l.Nexthops},
	} {
		if table.limit > 0 && table.want > int(table.limit) {
			errs = append(errs, &LimitError{Table: table.name, What: table.what, Setting: table.setting, Want: table.want, Limit: table.limit})
		}
	}
	return errs
}
