package fib

// Sets are the identities of addresses and the flows that groups of policies allow (package
// vrouter/k8s/netpol).
type Sets struct {
	Identities map[RouteKey]Identity // of addresses, by the longest prefix
	Allows     map[Allow]bool
}

// Grouping has the groups of a node's ports.
type Grouping struct {
	Sets
	Revision uint32           // differs when the entries of the sets do
	Groups   map[string]Group // by port
}

// Identity has the identities of an address: as the address of a pod, and as an address in blocks.
// 0: none. No number is used for both.
type Identity struct{ Pods, Block uint32 }

// Allow admits flows of the workloads of a group.
type Allow struct {
	Group    uint32
	Identity uint32 // of the other end; 0: any address
	Egress   bool   // from the workload; else to it
	Protocol uint8  // 0: any protocol, also without ports
	PortBits uint8  // leading bits of Port that must be equal
	Port     uint16 // of the destination
}

// Group names the policies that a workload has. The zero group has no policies.
type Group struct {
	Number  uint32
	In, Out bool // only flows in Sets.Allows may go to, or from, the workload
}

func (g Group) isClosed() bool { return g.In || g.Out }
