package datapath

import (
	"fmt"
	"hash/fnv"

	"windtunnel/vrouter/fib"
)

// Limits are the sizes of the tables, in entries. Zero is the default.
type Limits struct {
	Routes   uint32 `yaml:"routes"`   // host routes of each family
	Prefixes uint32 `yaml:"prefixes"` // other routes of each family
	Bridge   uint32 `yaml:"bridge"`   // MAC addresses
	Nexthops uint32 `yaml:"nexthops"`
	Vifs     uint32 `yaml:"vifs"`
	Labels   uint32 `yaml:"labels"`  // MPLS labels, and as many VNIs
	Remotes  uint32 `yaml:"remotes"` // underlay addresses of other nodes and gateways
	Flows    uint32 `yaml:"flows"`
}

// WithDefaults returns the limits with defaults for zero fields. The defaults are close to
// OpenContrail's: 512K flows, 256K MACs, 4352 vifs.
func (l Limits) WithDefaults() Limits {
	for _, f := range []struct {
		v      *uint32
		preset uint32
	}{
		{&l.Routes, 262144}, {&l.Prefixes, 65536}, {&l.Bridge, 262144}, {&l.Nexthops, 8192},
		{&l.Vifs, 4352}, {&l.Labels, 8192}, {&l.Remotes, 8192}, {&l.Flows, 524288},
	} {
		if *f.v == 0 {
			*f.v = f.preset
		}
	}
	return l
}

// Sets is the largest number of identities, and of allowed flows, that an agent writes: half of the maps, because an
// update writes new entries before it deletes the old ones.
func (l Limits) Sets() uint32 { return l.Routes / 2 }

// sizes by map.
func (l Limits) sizes() map[string]uint32 {
	return map[string]uint32{
		"hosts4": l.Routes, "hosts6": l.Routes, "lpm4": l.Prefixes, "lpm6": l.Prefixes, "senders": l.Prefixes,
		"identities": l.Routes, "allows": l.Routes, "bridge": l.Bridge, "nexthop_entries": l.Nexthops, "nexthops": 2 * l.Nexthops, "learned_mtus": l.Nexthops, "members": 8 * l.Nexthops,
		"vifs": l.Vifs, "policies": l.Vifs, "more_rules": 3 * l.Vifs, "policy_generations": l.Vifs + 1, "vif_stats": l.Vifs + 1, "icmp_buckets": l.Vifs + 1, "egress_buckets": l.Vifs + 1,
		"vif_flows_begun": l.Vifs + 1, "vif_flows_ended": l.Vifs + 1,
		"fragments": 2 * (l.Vifs + 1),
		"vnis":      l.Labels, "remotes": l.Remotes, "flows": l.Flows,
	}
}

// fingerprint tells generations of maps apart.
func (l Limits) fingerprint() string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%v", l)
	return fmt.Sprintf("%08x", h.Sum32())
}

// LimitError returns the error of a map that is too small for the wanted entries.
func LimitError(table string, want int, limit uint32) error {
	return &fib.LimitError{Table: table, What: "entries", Setting: "limits", Want: want, Limit: limit}
}
