package ipfix

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"
)

// Record counts the packets of one direction of a flow since its previous record.
type Record struct {
	Source, Destination netip.AddrPort
	// PostSource and PostDestination are the source and destination after NAT; zero: the packets are not translated.
	PostSource, PostDestination netip.AddrPort

	Protocol       uint8
	ICMP           uint8     // ICMP: type; the code of types that have flows is 0
	TCP            uint8     // flags that one of the two sides has sent
	Packets, Bytes uint64    // of IP packets
	Start, End     time.Time // of the counted packets
	Reason         Reason
	ToWorkload     bool
	Interface      uint32 // ifindex of the port's device
	VRF            uint32 // number of the network
	Dropped        bool   // a policy drops the packets
}

// Reason is a value of flowEndReason.
type Reason uint8

// Values of flowEndReason.
const (
	IdleTimeout     Reason = 1 + iota
	ActiveTimeout          // the flow continues
	EndOfFlow              // the TCP connection has ended
	ForcedEnd              // the port was deleted
	LackOfResources        // the entry was deleted to make room for others
)

// Values of forwardingStatus (RFC 7270).
const (
	forwarded = 64
	denied    = 128 + 1
)

// field is an information element of a template. Numbers: IANA's registry "IPFIX Information Elements".
type field struct{ element, length uint16 }

// Lengths of the record with the name of a network. nfcapd (nfdump 1.7) does not read fields of variable length, and adds
// the length of the scope twice. So each such record has a separate set, with padding.
const (
	nameBytes  = 63 // longest name (model)
	namePadded = 4 + nameBytes + 5
)

// Sets. Of the templates for flows, the one for IPv6 follows the one for IPv4.
const (
	templateSet        = 2
	optionsTemplateSet = 3
	portsSet           = 256
	icmpSet            = 258
	namesSet           = 260
	natted             = 6 // portsSet + natted and icmpSet + natted are for packets that NAT translates
)

// templates returns the fields of records of flows, by set.
func templates() map[uint16][]field {
	all := map[uint16][]field{}
	for v6 := range uint16(2) {
		address := []field{{8, 4}, {12, 4}} // sourceIPv4Address, destinationIPv4Address
		icmp := field{32, 2}                // icmpTypeCodeIPv4
		if v6 == 1 {
			address, icmp = []field{{27, 16}, {28, 16}}, field{139, 2}
		}
		rest := []field{
			{4, 1}, {6, 1}, // protocolIdentifier, tcpControlBits
			{2, 8}, {1, 8}, // packetDeltaCount, octetDeltaCount
			{152, 8}, {153, 8}, {136, 1}, // flowStartMilliseconds, flowEndMilliseconds, flowEndReason
			{61, 1}, {10, 4}, {14, 4}, // flowDirection, ingressInterface, egressInterface
			{234, 4}, {235, 4}, {89, 1}, // ingressVRFID, egressVRFID, forwardingStatus
		}
		all[portsSet+v6] = append(append(address[:2:2], field{7, 2}, field{11, 2}), rest...) // sourceTransportPort, destinationTransportPort
		all[icmpSet+v6] = append(append(address[:2:2], icmp), rest...)
		// postNATSourceIPv4Address, postNATDestinationIPv4Address, or those of IPv6 (RFC 8158)
		post := [][]field{{{225, 4}, {226, 4}}, {{281, 16}, {282, 16}}}[v6]
		all[icmpSet+natted+v6] = slices.Concat(all[icmpSet+v6], post)
		all[portsSet+natted+v6] = slices.Concat(all[portsSet+v6], post, []field{{227, 2}, {228, 2}}) // postNAPTSourceTransportPort, postNAPTDestinationTransportPort
	}
	return all
}

// set returns the number of the record's set.
func (r *Record) set() uint16 {
	set := uint16(portsSet)
	if r.isICMP() {
		set = icmpSet
	}
	if r.PostSource.IsValid() {
		set += natted
	}
	if r.Source.Addr().Is6() {
		set++
	}
	return set
}

func (r *Record) isICMP() bool { return r.Protocol == 1 || r.Protocol == 58 }

// encode returns the bytes of the record, in the order of its template.
func (r *Record) encode() []byte {
	b := append(r.Source.Addr().AsSlice(), r.Destination.Addr().AsSlice()...)
	if r.isICMP() {
		b = append(b, r.ICMP, 0)
	} else {
		b = binary.BigEndian.AppendUint16(b, r.Source.Port())
		b = binary.BigEndian.AppendUint16(b, r.Destination.Port())
	}
	b = append(b, r.Protocol, r.TCP)
	for _, n := range []uint64{r.Packets, r.Bytes, uint64(r.Start.UnixMilli()), uint64(r.End.UnixMilli())} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	direction, in, out, status := byte(0), r.Interface, uint32(0), byte(forwarded) // ingress (0): from the workload
	if r.ToWorkload {
		direction, in, out = 1, 0, r.Interface
	}
	if r.Dropped {
		status = denied
	}
	b = append(b, byte(r.Reason), direction)
	for _, n := range []uint32{in, out, r.VRF, r.VRF} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = append(b, status)
	if r.PostSource.IsValid() {
		b = append(append(b, r.PostSource.Addr().AsSlice()...), r.PostDestination.Addr().AsSlice()...)
		if !r.isICMP() {
			b = binary.BigEndian.AppendUint16(b, r.PostSource.Port())
			b = binary.BigEndian.AppendUint16(b, r.PostDestination.Port())
		}
	}
	return b
}

// Lengths in bytes. A message fits into the minimum MTU of IPv6, with the headers of IPv6 and UDP.
const (
	headerBytes = 16
	setBytes    = 4
	maxBytes    = 1280 - 40 - 8
)

// message is an IPFIX message that is being built.
type message struct {
	b       []byte
	set     uint16 // number of the last set; 0: none
	at      int    // offset of the last set
	records uint32 // number of data records
}

// add appends a record to a set. It returns false if the message has no room.
func (m *message) add(set uint16, record []byte) bool {
	if len(m.b) == 0 {
		m.b = make([]byte, headerBytes, maxBytes)
	}
	if len(m.b)+setBytes+len(record) > maxBytes {
		return false
	}
	if set != m.set || set == namesSet {
		m.set, m.at = set, len(m.b)
		m.b = binary.BigEndian.AppendUint32(m.b, uint32(set)<<16)
	}
	m.b = append(m.b, record...)
	binary.BigEndian.PutUint16(m.b[m.at+2:], uint16(len(m.b)-m.at))
	if set >= portsSet {
		m.records++
	}
	return true
}

// addTemplates appends the templates of flows, and the options template for names of networks.
func (m *message) addTemplates() {
	for set, fields := range templates() {
		b := binary.BigEndian.AppendUint32(nil, uint32(set)<<16|uint32(len(fields)))
		m.add(templateSet, appendFields(b, fields))
	}
	scope := uint16(1)
	b := binary.BigEndian.AppendUint32(nil, namesSet<<16|2)
	b = binary.BigEndian.AppendUint16(b, scope)
	m.add(optionsTemplateSet, appendFields(b, []field{{234, 4}, {236, nameBytes}})) // ingressVRFID, VRFname
}

func appendFields(b []byte, fields []field) []byte {
	for _, f := range fields {
		b = binary.BigEndian.AppendUint32(b, uint32(f.element)<<16|uint32(f.length))
	}
	return b
}

// nameOf returns the options record with the name of a network.
func nameOf(vrf uint32, name string) []byte {
	b := make([]byte, namePadded)
	binary.BigEndian.PutUint32(b, vrf)
	copy(b[4:], name)
	return b
}

// finish writes the header and returns the message. sequence: number of data records in earlier messages.
func (m *message) finish(domain, sequence uint32, now time.Time) []byte {
	binary.BigEndian.PutUint16(m.b, 10) // version
	binary.BigEndian.PutUint16(m.b[2:], uint16(len(m.b)))
	binary.BigEndian.PutUint32(m.b[4:], uint32(now.Unix()))
	binary.BigEndian.PutUint32(m.b[8:], sequence)
	binary.BigEndian.PutUint32(m.b[12:], domain)
	return m.b
}
