// Package service has the services that workloads reach by one address, and their backends. It is pure.
package service

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Key identifies a port of a service by address, port and protocol.
type Key struct {
	Address  netip.Addr `json:"address"`
	Port     uint16     `json:"port"`
	Protocol uint8      `json:"protocol"` // TCP, UDP or SCTP
}

func (k Key) String() string {
	return fmt.Sprintf("%s/%d", netip.AddrPortFrom(k.Address, k.Port), k.Protocol)
}

// Compare orders keys.
func (k Key) Compare(o Key) int {
	return cmp.Or(k.Address.Compare(o.Address), cmp.Compare(k.Port, o.Port), cmp.Compare(k.Protocol, o.Protocol))
}

// Service is one port of a service.
type Service struct {
	Key
	Name     string           `json:"name"`                  // for people
	Affinity time.Duration    `json:"affinity_ns,omitempty"` // how long a client keeps its backend; 0: no affinity
	Drop     bool             `json:"drop,omitempty"`        // without a backend, packets are dropped and not rejected
	Backends []netip.AddrPort `json:"backends"`
	Outside  *Outside         `json:"-"` // nil: only the Key reaches the service
	// RulesOnly means that the data path cannot translate the service. The node's kernel translates it for workloads too.
	RulesOnly bool `json:"-"`
}

// Outside has the addresses and ports, besides Key, at which the node and hosts outside reach a port of a service.
type Outside struct {
	NodePort  uint16           // at all addresses of the node, except loopback addresses; 0: none
	Addresses []netip.Addr     // external IPs
	Balancers []netip.Addr     // addresses of load balancers; only clients in Sources may use them
	Sources   []netip.Prefix   // empty: all clients
	Local     bool             // externalTrafficPolicy Local: only backends on this node, and the source address stays
	Backends  []netip.AddrPort // for clients outside the node
	All       []netip.AddrPort // with Local: the backends for the node and its workloads
	// HealthPort is the healthCheckNodePort; 0: none. A load balancer asks there whether the node has a ready backend.
	// Ready is the number of ready backends on the node.
	HealthPort uint16
	Ready      int
}

// Equal reports whether the data path has the same entries for both. The order of backends matters.
func (s Service) Equal(o Service) bool {
	return s.Key == o.Key && s.Affinity == o.Affinity && s.Drop == o.Drop && slices.Equal(s.Backends, o.Backends)
}

// Range returns the longest prefix that contains all addresses; the zero prefix if there are none. All addresses
// must have the same IP version.
func Range(all []netip.Addr) netip.Prefix {
	if len(all) == 0 {
		return netip.Prefix{}
	}
	p := netip.PrefixFrom(all[0], all[0].BitLen())
	for _, a := range all {
		for !p.Contains(a) {
			p = netip.PrefixFrom(p.Addr(), p.Bits()-1)
		}
	}
	return p.Masked()
}
