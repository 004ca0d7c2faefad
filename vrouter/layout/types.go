// Code generated from the eBPF programs by generate.go; DO NOT EDIT.

package layout

import (
	"structs"

	"windtunnel/vrouter/model"
)

type Address struct {
	_     structs.HostLayout
	Bytes [16]uint8
}

type Nexthop struct {
	_        structs.HostLayout
	Type     uint8
	Encap    uint8
	Family   uint8
	Flags    uint8
	VRF      uint32
	Vif      uint32
	Oif      uint32
	Remote   uint32
	Fallback uint32
	DMAC     model.MAC
	SMAC     model.MAC
	MTU      uint16
	Port     uint16
	Members  uint16
	Paths    uint8
	Pad      uint8
	Path     [4]Path
}

type Path struct {
	_             structs.HostLayout
	Source        Address
	Destination   Address
	Gateway       Address
	Oif           uint32
	GatewayFamily uint8
	Locators      uint8
	Cookie        uint16
}

type MemberKey struct {
	_       structs.HostLayout
	Nexthop uint32
	Index   uint32
}

type Member struct {
	_       structs.HostLayout
	Nexthop uint32
	Label   uint32
}

type Host4Key struct {
	_       structs.HostLayout
	VRF     uint32
	Address uint32
}

type Host6Key struct {
	_       structs.HostLayout
	VRF     uint32
	Address Address
}

type Lpm4Key struct {
	_         structs.HostLayout
	Prefixlen uint32
	VRF       uint32
	Address   uint32
}

type Lpm6Key struct {
	_         structs.HostLayout
	Prefixlen uint32
	VRF       uint32
	Address   Address
}

type Route struct {
	_       structs.HostLayout
	Nexthop uint32
	Label   uint32
	MAC     model.MAC
	Flags   uint16
}

type BridgeKey struct {
	_   structs.HostLayout
	VRF uint32
	MAC model.MAC
	Pad uint16
}

type BridgeEntry struct {
	_       structs.HostLayout
	Nexthop uint32
	Label   uint32
}

type Target struct {
	_        structs.HostLayout
	Nexthop  uint32
	Ethernet uint8
	Pad      [3]uint8
}

type Vif struct {
	_         structs.HostLayout
	ID        uint32
	VRF       uint32
	Nexthop   uint32
	Flags     uint16
	MTU       uint16
	Egress    uint64
	MAC       model.MAC
	RouterMAC model.MAC
	Sources4  uint8
	Sources6  uint8
	Pad       [2]uint8
	Gateway4  uint32
	Gateway6  Address
	Source4   [4]struct {
		_       structs.HostLayout
		Address uint32
		Mask    uint32
	}
	Source6 [4]struct {
		_       structs.HostLayout
		Address Address
		Mask    Address
	}
	Pad2 uint32
}

type VRF struct {
	_         structs.HostLayout
	Flood     uint32
	Flags     uint16
	Pad       uint16
	RouterMAC model.MAC
	Pad2      [2]uint8
	Prefix6   [3]uint32
}

type NodeSettings struct {
	_           structs.HostLayout
	Flags       uint32
	VXLANPort   uint16
	LastLabel   uint16
	Locator     [2]uint32
	LocatorEnd  uint16
	LocatorMask uint16
	Local4      [4]uint32
	Local6      [4]Address
}

type Remote struct {
	_        structs.HostLayout
	Nexthop  uint32
	Ethernet uint32
	ID       uint32
	Encaps   uint8
	Locators uint8
	Cookie   uint16
}

type SenderKey struct {
	_         structs.HostLayout
	Prefixlen uint32
	Remote    uint32
	VRF       uint16
	Family    uint8
	Pad       uint8
	Address   Address
}

type Sender struct {
	_     structs.HostLayout
	Known uint32
}

type LearnedMTU struct {
	_        structs.HostLayout
	MTU      uint32
	Pad      uint32
	UntilNs  uint64
	IgnoreNs uint64
}

type FlowKey struct {
	_          structs.HostLayout
	Vif        uint32
	Local      Address
	Remote     Address
	LocalPort  uint16
	RemotePort uint16
	Protocol   uint8
	Pad        [3]uint8
}

type Flow struct {
	_           structs.HostLayout
	Action      uint8
	TCP         uint8
	Rule        uint8
	Reply       uint8
	Policy      uint32
	SeenTick    uint32
	Member      uint32
	Composite   uint32
	OtherPort   uint16
	Translation uint8
	Icmp        uint8
	SeenNs      uint64
	CreatedNs   uint64
	Packets     [2]uint64
	Bytes       [2]uint64
	Other       Address
}

type Rule struct {
	_         structs.HostLayout
	Remote    Address
	Mask      Address
	FirstPort uint16
	LastPort  uint16
	Protocol  uint8
	Flags     uint8
	Family    uint8
	Pad       uint8
}

type RuleChunk struct {
	_    structs.HostLayout
	Rule [64]Rule
}

type RulesKey struct {
	_          structs.HostLayout
	Vif        uint32
	Generation uint32
	Chunk      uint32
}

type Policy struct {
	_          structs.HostLayout
	Generation uint32
	Rules      uint16
	AllowIn    uint8
	AllowOut   uint8
	Group      uint32
	Revision   uint32
	ClosedIn   uint8
	ClosedOut  uint8
	Pad        uint16
	First      RuleChunk
}

type IdentityKey struct {
	_         structs.HostLayout
	Prefixlen uint32
	VRF       uint32
	Address   Address
}

type Identity struct {
	_     structs.HostLayout
	Pods  uint32
	Block uint32
}

type AllowKey struct {
	_         structs.HostLayout
	Prefixlen uint32
	Group     uint32
	Identity  uint32
	Egress    uint8
	Protocol  uint8
	Port      uint16
}

type Allow struct {
	_     structs.HostLayout
	Known uint32
}

type VifCounters struct {
	_         structs.HostLayout
	RxPackets uint64
	RxBytes   uint64
	TxPackets uint64
	TxBytes   uint64
}

type VRFCounters struct {
	_         structs.HostLayout
	TxPackets [6]uint64
	TxBytes   [6]uint64
	RxPackets [6]uint64
	RxBytes   [6]uint64
}

type OutcomeCounters struct {
	_     structs.HostLayout
	Count [8]uint64
}

type DropKey struct {
	_      structs.HostLayout
	Vif    uint32
	Reason uint32
}

type FallbackKey struct {
	_      structs.HostLayout
	VRF    uint32
	Reason uint32
}

type DropEvent struct {
	_        structs.HostLayout
	TimeNs   uint64
	Reason   uint32
	Vif      uint32
	VRF      uint32
	Ifindex  uint32
	Length   uint32
	Captured uint32
	Data     [128]uint8
}

type Trace struct {
	_     structs.HostLayout
	Count uint32
	Pad   uint32
	Step  [64]struct {
		_       structs.HostLayout
		Kind    uint32
		Found   uint32
		VRF     uint32
		ID      uint32
		Value   uint32
		Pad     uint32
		Address Address
	}
}

type ServiceKey struct {
	_        structs.HostLayout
	Address  Address
	Port     uint16
	Protocol uint8
	Pad      uint8
}

type Service struct {
	_        structs.HostLayout
	ID       uint32
	Backends uint32
	Affinity uint32
	Flags    uint32
}

type BackendKey struct {
	_       structs.HostLayout
	Service uint32
	Index   uint32
}

type Backend struct {
	_       structs.HostLayout
	Address Address
	Port    uint16
	Pad     uint16
}

type ServiceRange struct {
	_        structs.HostLayout
	Address  Address
	Mask     Address
	Services uint32
}

type AffinityKey struct {
	_       structs.HostLayout
	Service uint32
	Client  Address
}

type Affinity struct {
	_       structs.HostLayout
	Backend Backend
	Pad     uint32
	SeenNs  uint64
}

type NAT struct {
	_         structs.HostLayout
	Address4  Address
	Address6  Address
	VRF       uint32
	FirstPort uint16
	LastPort  uint16
}

type FloatingKey struct {
	_       structs.HostLayout
	Vif     uint32
	Address Address
	Port    uint32
}

type Floating struct {
	_     structs.HostLayout
	Other Address
}
