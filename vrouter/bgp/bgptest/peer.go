// Package bgptest is a BGP neighbour for tests: it sends the bytes of the test's choice, also invalid ones, and at the
// time of the test's choice.
package bgptest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// ASN is the AS number of a Peer. Its neighbour must have the same.
const ASN = 64512

// Peer is an end of a session for VPNv4, VPNv6 and EVPN, without a hold time and without graceful restart.
type Peer struct {
	net.Conn
}

// Open establishes a session on a connection.
func Open(c net.Conn, id netip.Addr) (*Peer, error) {
	p := &Peer{c}
	open, err := bgp.NewBGPOpenMessage(ASN, 0, id, []bgp.OptionParameterInterface{bgp.NewOptionParameterCapability([]bgp.ParameterCapabilityInterface{
		bgp.NewCapMultiProtocol(bgp.RF_IPv4_VPN), bgp.NewCapMultiProtocol(bgp.RF_IPv6_VPN), bgp.NewCapMultiProtocol(bgp.RF_EVPN), bgp.NewCapFourOctetASNumber(ASN),
	})})
	if err == nil {
		err = p.send(open)
	}
	for err == nil {
		var kind uint8
		switch kind, _, err = p.Next(); {
		case err != nil:
		case kind == bgp.BGP_MSG_OPEN:
			err = p.send(bgp.NewBGPKeepAliveMessage())
		case kind == bgp.BGP_MSG_KEEPALIVE:
			return p, nil
		}
	}
	return nil, fmt.Errorf("open a BGP session with %s: %w", c.RemoteAddr(), err)
}

func (p *Peer) send(m *bgp.BGPMessage) error {
	b, err := m.Serialize()
	if err == nil {
		_, err = p.Write(b)
	}
	return err
}

// Next returns the type and the body of the next message.
func (p *Peer) Next() (kind uint8, body []byte, err error) {
	header := make([]byte, bgp.BGP_HEADER_LENGTH)
	if _, err := io.ReadFull(p, header); err != nil {
		return 0, nil, err
	}
	body = make([]byte, int(binary.BigEndian.Uint16(header[16:]))-len(header))
	_, err = io.ReadFull(p, body)
	return header[18], body, err
}

// Update returns an UPDATE message with path attributes.
func Update(attributes ...[]byte) []byte {
	all := slices.Concat(attributes...)
	b := slices.Concat(slices.Repeat([]byte{0xff}, 16), make([]byte, 7), all)
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)))
	b[18] = bgp.BGP_MSG_UPDATE
	binary.BigEndian.PutUint16(b[21:], uint16(len(all)))
	return b
}

// Attribute returns a path attribute.
func Attribute(flags bgp.BGPAttrFlag, kind bgp.BGPAttrType, value ...byte) []byte {
	b := []byte{byte(flags | bgp.BGP_ATTR_FLAG_EXTENDED_LENGTH), byte(kind), 0, 0}
	binary.BigEndian.PutUint16(b[2:], uint16(len(value)))
	return append(b, value...)
}

// Attributes of valid paths.
var (
	Origin     = Attribute(bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_ORIGIN, 0)
	ASPath     = Attribute(bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_AS_PATH)
	Preference = Attribute(bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_LOCAL_PREF, 0, 0, 0, 100)
)

// Target returns the attribute with the route target ASN:n.
func Target(n uint32) []byte {
	return Attribute(bgp.BGP_ATTR_FLAG_OPTIONAL|bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_EXTENDED_COMMUNITIES,
		binary.BigEndian.AppendUint32([]byte{0, 2, ASN >> 8, ASN & 0xff}, n)...)
}

// Reach returns MP_REACH_NLRI of VPNv4 prefixes with one label. Their route distinguisher is ASN:1.
func Reach(hop netip.Addr, label uint32, prefixes ...netip.Prefix) []byte {
	value := slices.Concat([]byte{0, 1, 128, 12}, make([]byte, 8), hop.AsSlice(), []byte{0})
	return Attribute(bgp.BGP_ATTR_FLAG_OPTIONAL, bgp.BGP_ATTR_TYPE_MP_REACH_NLRI, appendPrefixes(value, label<<4|1, prefixes)...)
}

// Unreach returns MP_UNREACH_NLRI of such prefixes.
func Unreach(prefixes ...netip.Prefix) []byte {
	const withdrawn = 0x800000 // RFC 8277 section 2.4
	return Attribute(bgp.BGP_ATTR_FLAG_OPTIONAL, bgp.BGP_ATTR_TYPE_MP_UNREACH_NLRI, appendPrefixes([]byte{0, 1, 128}, withdrawn, prefixes)...)
}

func appendPrefixes(b []byte, label uint32, prefixes []netip.Prefix) []byte {
	for _, p := range prefixes {
		b = append(b, byte(24+64+p.Bits()), byte(label>>16), byte(label>>8), byte(label), 0, 0, ASN>>8, ASN&0xff, 0, 0, 0, 1)
		b = append(b, p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
	}
	return b
}
