// Package inspect shows a node's forwarding state as rows, tables and JSON. The
// columns follow OpenContrail's utilities.
package inspect

import (
	"net/netip"
	"time"

	"windtunnel/vrouter/model"
)

// Vif is a row of `vrouter vif`.
type Vif struct {
	ID        uint32         `json:"id"` // 0: the fabric
	Device    string         `json:"device"`
	Ifindex   uint32         `json:"ifindex"`
	Type      string         `json:"type"` // fabric, virtual
	Port      string         `json:"port,omitempty"`
	Network   string         `json:"network,omitempty"`
	VRF       uint32         `json:"vrf"`
	Nexthop   uint32         `json:"nexthop,omitempty"`
	MAC       model.MAC      `json:"mac"`
	MTU       uint16         `json:"mtu"`
	Flags     []string       `json:"flags,omitempty"` // L2, L3, Policy
	Sources   []netip.Prefix `json:"sources,omitempty"`
	Mode      string         `json:"mode"` // attachment of the programs: tcx, clsact; fabric: xdp+tcx, …
	RxPackets uint64         `json:"rx_packets"`
	RxBytes   uint64         `json:"rx_bytes"`
	TxPackets uint64         `json:"tx_packets"`
	TxBytes   uint64         `json:"tx_bytes"`
	Drops     uint64         `json:"drops"`
}

// Nexthop is a row of `vrouter nh`.
type Nexthop struct {
	ID            uint32              `json:"id"`
	Type          string              `json:"type"` // discard, receive, encap, tunnel, composite, vrf, l2-receive
	Name          string              `json:"name"`
	References    int                 `json:"references"`
	VRF           uint32              `json:"vrf,omitempty"`
	Flags         []string            `json:"flags,omitempty"` // DF, ECMP, Multicast, Peer
	Device        string              `json:"device,omitempty"`
	Vif           uint32              `json:"vif,omitempty"`
	Encapsulation model.Encapsulation `json:"encapsulation,omitempty"`
	Paths         []Path              `json:"paths,omitempty"`
	MTU           uint16              `json:"mtu,omitempty"`
	LearnedMTU    uint32              `json:"learned_mtu,omitempty"`
	DMAC          model.MAC           `json:"dmac,omitzero"`
	Members       []Member            `json:"members,omitempty"`
}

// Path is one underlay path of a tunnel.
type Path struct {
	Source      netip.Addr `json:"source"`
	Destination netip.Addr `json:"destination"`
	Gateway     netip.Addr `json:"gateway"`
	Device      string     `json:"device"` // empty: down
}

// Member of a composite.
type Member struct {
	Nexthop uint32 `json:"nexthop"`
	Label   uint32 `json:"label,omitempty"`
}

// Route is a row of `vrouter rt`.
type Route struct {
	VRF         uint32       `json:"vrf"`
	Network     string       `json:"network"`
	Destination netip.Prefix `json:"destination"`
	Label       uint32       `json:"label,omitempty"`
	Nexthop     uint32       `json:"nexthop"`
	StitchedMAC model.MAC    `json:"stitched_mac,omitzero"`
	Flags       []string     `json:"flags,omitempty"`
}

// Bridge is a row of `vrouter bridge`.
type Bridge struct {
	VRF     uint32    `json:"vrf"`
	Network string    `json:"network"`
	MAC     model.MAC `json:"mac"`
	Label   uint32    `json:"label,omitempty"`
	Nexthop uint32    `json:"nexthop"`
}

// Target is a row of `vrouter mpls` and `vrouter vxlan`.
type Target struct {
	ID      uint32 `json:"id"`      // label or VNI
	Payload string `json:"payload"` // ip, ethernet
	Nexthop uint32 `json:"nexthop"`
}

// Flow is a row of `vrouter flow`.
type Flow struct {
	Vif        uint32         `json:"vif"`
	Port       string         `json:"port,omitempty"`
	Protocol   uint8          `json:"protocol"`
	Local      netip.AddrPort `json:"local"`
	Remote     netip.AddrPort `json:"remote"`
	Action     string         `json:"action"`           // forward, drop
	Rule       int            `json:"rule"`             // from 1; 0: the default
	State      []string       `json:"state,omitempty"`  // SYN, EST, FIN, RST
	Initiated  string         `json:"initiated"`        // end that sent the first packet: local, remote
	Member     *uint32        `json:"member,omitempty"` // ECMP
	PacketsOut uint64         `json:"packets_out"`
	PacketsIn  uint64         `json:"packets_in"`
	BytesOut   uint64         `json:"bytes_out"`
	BytesIn    uint64         `json:"bytes_in"`
	Age        time.Duration  `json:"age_ns"`
	Idle       time.Duration  `json:"idle_ns"`
}

// Drop is a row of `vrouter dropstats`.
type Drop struct {
	Vif     uint32 `json:"vif"`
	Device  string `json:"device,omitempty"`
	Reason  string `json:"reason"` // as in drop.list.h, lower case
	Meaning string `json:"meaning"`
	Packets uint64 `json:"packets"`
}

// Fallback is a row of `vrouter fallbackstats`.
type Fallback struct {
	VRF     uint32 `json:"vrf"`
	Network string `json:"network"`
	Reason  string `json:"reason"` // as in fallback.list.h, lower case
	Meaning string `json:"meaning"`
	Packets uint64 `json:"packets"`
}

// DropEvent is one dropped packet of `vrouter dropstats --log`.
type DropEvent struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Meaning string    `json:"meaning"`
	Denied  string    `json:"denied,omitempty"` // port and rule of the policy that denied it
	Vif     uint32    `json:"vif"`              // 0: dropped before a vif was known
	Device  string    `json:"device,omitempty"` // of the vif; vif 0: where the packet was
	VRF     uint32    `json:"vrf"`
	Length  uint32    `json:"length"`
	Packet  string    `json:"packet"` // decoded, one line
	Data    []byte    `json:"data"`   // its first bytes
}

// Traffic counts packets and bytes.
type Traffic struct {
	TxPackets uint64 `json:"tx_packets"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxPackets uint64 `json:"rx_packets"`
	RxBytes   uint64 `json:"rx_bytes"`
}

// VRFStats is a row of `vrouter vrfstats`.
type VRFStats struct {
	VRF             uint32             `json:"vrf"`
	Network         string             `json:"network"`
	ByEncapsulation map[string]Traffic `json:"by_encapsulation"` // local, mpls-gre, mpls-udp, vxlan, direct, translated
}

// Step is one line of `vrouter trace`.
type Step struct {
	What   string `json:"what"`   // "host route", "nexthop", …
	Key    string `json:"key"`    // the lookup's key
	Result string `json:"result"` // the lookup's result
}

// Trace is the result of a test packet.
type Trace struct {
	Packet  string `json:"packet"`
	Steps   []Step `json:"steps"`
	Verdict string `json:"verdict"` // "forwarded to node b by mpls-udp, label 18", "dropped: no_route", …
	Dropped bool   `json:"dropped"`
	// Elsewhere says which port and rule deny the packet on the receiver's node.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Leaves has one line per underlay path of the packet. WithLeaves fills it in;
	// the agent's answer does not have it.
	Leaves []string `json:"leaves,omitempty"`
}
