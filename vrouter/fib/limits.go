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
	Table   string // the data path's map (bpf/maps.h)
	What    string // what its entries are
	Of      string // whose list it is; empty: the node's table
	Setting string // of the node's configuration that makes it larger; empty: none does
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
