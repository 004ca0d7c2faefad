package fib

// Sets has the identities of addresses, and the flows that groups of policies allow. Package vrouter/k8s/netpol
// computes them.
type Sets struct {
	Identities map[RouteKey]Identity // of addresses, by the longest prefix
	Allows     map[Allow]bool
}

// Entries returns the number of entries that the larger map needs.
func (s Sets) Entries() int { return max(len(s.Identities), len(s.Allows)) }

// Grouping says which policies restrict which ports of a node: each port's group, and the flows that each group
// allows.
type Grouping struct {
	Sets
	Revision uint32           // checksum of the sets
	Groups   map[string]Group // by port
}

// Identity has the two identities of an address: Pods if it is the address of a pod, Block if an ipBlock contains
// it. 0: the address has no such identity. The two kinds never have a number in common.
type Identity struct{ Pods, Block uint32 }

// Allow is a key of Sets.Allows. It allows the workloads of a group flows with these properties.
type Allow struct {
	Group    uint32
	Identity uint32 // of the other end; 0: any address
	Egress   bool   // from the workload; else to it
	Protocol uint8  // 0: any protocol, also without ports
	PortBits uint8  // leading bits of Port that must be equal
	Port     uint16 // of the destination
}

// Group identifies a set of NetworkPolicies that select the same workload. The zero Group is the empty set.
type Group struct {
	Number  uint32
	In, Out bool // only flows in Sets.Allows may go to, or from, the workload
}

func (g Group) isClosed() bool { return g.In || g.Out }
