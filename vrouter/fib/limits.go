package fib

import "fmt"

// Limits are the sizes of the tables in entries, as the data path's; zero for
// none.
type Limits struct {
	Routes   uint32 // host routes, a family
	Prefixes uint32 // other routes, a family
	Bridge   uint32
	Nexthops uint32 // ids 1 … Nexthops−1: entry 0 discards
	Vifs     uint32
	Labels   uint32 // MPLS labels, and as many VNIs
	Remotes  uint32
	Flows    uint32
}

// Limits that the data path's structures set (bpf/types.h).
const (
	mostPaths   = 4   // MAX_PATHS, of a tunnel
	mostFlood   = 128 // MAX_MEMBERS, of a replication list
	memberRatio = 8   // entries of the members' table for each nexthop
)

// LimitError says that a table has no room for what the state wants.
type LimitError struct {
	Table string // what its entries are
	Of    string // whose list it is; empty: the node's table
	Want  int
	Limit uint32
}

func (e *LimitError) Error() string {
	if e.Of != "" {
		return fmt.Sprintf("%s: %d %s are wanted, at most %d fit; make it l3, or split it", e.Of, e.Want, e.Table, e.Limit)
	}
	return fmt.Sprintf("%d %s are wanted, at most %d fit; raise limits in the node's configuration", e.Want, e.Table, e.Limit)
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
		name  string
		want  int
		limit uint32
	}{
		{"IPv4 host routes", hosts[0], l.Routes}, {"IPv6 host routes", hosts[1], l.Routes},
		{"IPv4 prefixes", prefixes[0], l.Prefixes}, {"IPv6 prefixes", prefixes[1], l.Prefixes},
		{"bridge entries", len(t.Bridge), l.Bridge}, {"labels", len(t.ILM), l.Labels}, {"VNIs", len(t.VNIs), l.Labels},
		{"underlay addresses of other nodes and gateways", len(t.Remotes), l.Remotes},
		{"members of composite nexthops", members, memberRatio * l.Nexthops},
	} {
		if table.limit > 0 && table.want > int(table.limit) {
			errs = append(errs, &LimitError{Table: table.name, Want: table.want, Limit: table.limit})
		}
	}
	return errs
}
