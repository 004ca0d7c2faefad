package bgptest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"slices"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// Families are the address families of a Peer.
var Families = map[bgp.Family]bgp.BGPAddPathMode{bgp.RF_IPv4_VPN: 0, bgp.RF_IPv6_VPN: 0, bgp.RF_EVPN: 0}

// Messages returns valid UPDATE messages: paths of each family and each EVPN type, with many attributes, and their
// withdrawals. The prefixes have the targets ASN:routed, and the MAC addresses ASN:bridged.
func Messages(hop netip.Addr, routed, bridged uint32) (all [][]byte) {
	ok := func(_ any, err error) {
		if err != nil {
			panic(err)
		}
	}
	rd, v4, v6 := bgp.NewRouteDistinguisherTwoOctetAS(ASN, 7), netip.MustParseAddr("10.77.1.0"), netip.MustParseAddr("fd00:77:1::")
	esi := bgp.EthernetSegmentIdentifier{Type: bgp.ESI_ARBITRARY, Value: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	mac := func(a netip.Addr, labels ...uint32) bgp.NLRI {
		n, err := bgp.NewEVPNMacIPAdvertisementRoute(rd, bgp.EthernetSegmentIdentifier{}, 0, station, a, labels)
		ok(n, err)
		return n
	}
	prefix := func(a, gateway netip.Addr, bits uint8) bgp.NLRI {
		n, err := bgp.NewEVPNIPPrefixRoute(rd, esi, 0, bits, a, gateway, 7001)
		ok(n, err)
		return n
	}
	vpn := func(a netip.Addr, bits int, labels ...uint32) bgp.NLRI {
		n, err := bgp.NewLabeledVPNIPAddrPrefix(netip.PrefixFrom(a, bits), *bgp.NewMPLSLabelStack(labels...), rd)
		ok(n, err)
		return n
	}
	multicast, err := bgp.NewEVPNMulticastEthernetTagRoute(rd, 0, hop)
	ok(multicast, err)
	segment, err := bgp.NewEVPNEthernetSegmentRoute(rd, esi, hop)
	ok(segment, err)
	replication, err := bgp.NewIngressReplTunnelID(hop)
	ok(replication, err)
	aggregator, err := bgp.NewPathAttributeAggregator(uint32(ASN), hop)
	ok(aggregator, err)
	originator, err := bgp.NewPathAttributeOriginatorId(hop)
	ok(originator, err)
	clusters, err := bgp.NewPathAttributeClusterList([]netip.Addr{hop})
	ok(clusters, err)
	endpoint, err := bgp.NewTunnelEncapSubTLVEgressEndpoint(hop)
	ok(endpoint, err)
	byAddress, err := bgp.NewIPv4AddressSpecificExtended(bgp.EC_SUBTYPE_ROUTE_TARGET, hop, 9, true)
	ok(byAddress, err)
	extended := func(target uint32, t bgp.TunnelType) bgp.PathAttributeInterface {
		return bgp.NewPathAttributeExtendedCommunities([]bgp.ExtendedCommunityInterface{
			bgp.NewTwoOctetAsSpecificExtended(bgp.EC_SUBTYPE_ROUTE_TARGET, ASN, target, true), byAddress,
			bgp.NewFourOctetAsSpecificExtended(bgp.EC_SUBTYPE_ROUTE_TARGET, 70000, 9, true), bgp.NewEncapExtended(t),
			bgp.NewRoutersMacExtended("02:00:00:77:00:fe"), bgp.NewMacMobilityExtended(3, false), bgp.NewESILabelExtended(7, true),
			bgp.NewESImportRouteTarget("02:00:00:77:00:01"), bgp.NewDefaultGatewayExtended(),
		})
	}
	add := func(f bgp.Family, target uint32, t bgp.TunnelType, n bgp.NLRI, more ...bgp.PathAttributeInterface) {
		reach, err := bgp.NewPathAttributeMpReachNLRI(f, []bgp.PathNLRI{{NLRI: n}}, hop)
		ok(reach, err)
		path := bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{70001, 70002, 70003})
		attributes := append([]bgp.PathAttributeInterface{
			reach, bgp.NewPathAttributeOrigin(0), bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{path}),
			bgp.NewPathAttributeLocalPref(100), bgp.NewPathAttributeMultiExitDisc(5), extended(target, t),
		}, more...)
		unreach, err := bgp.NewPathAttributeMpUnreachNLRI(f, []bgp.PathNLRI{{NLRI: n}})
		ok(unreach, err)
		for _, a := range [][]bgp.PathAttributeInterface{attributes, attributes, attributes, {unreach}} {
			message, err := bgp.NewBGPUpdateMessage(nil, a, nil).Serialize()
			ok(message, err)
			all = append(all, message)
		}
	}
	large := bgp.NewPathAttributeLargeCommunities([]*bgp.LargeCommunity{bgp.NewLargeCommunity(ASN, 1, 2)})
	tunnel := bgp.NewPathAttributeTunnelEncap([]*bgp.TunnelEncapTLV{bgp.NewTunnelEncapTLV(bgp.TUNNEL_TYPE_VXLAN, []bgp.TunnelEncapSubTLVInterface{
		endpoint, bgp.NewTunnelEncapSubTLVColor(7), bgp.NewTunnelEncapSubTLVUDPDestPort(4789), bgp.NewTunnelEncapSubTLVProtocol(0x800),
	})})
	add(bgp.RF_IPv4_VPN, routed, bgp.TUNNEL_TYPE_MPLS_IN_UDP, vpn(v4, 24, 300), aggregator, bgp.NewPathAttributeAtomicAggregate())
	add(bgp.RF_IPv4_VPN, routed, bgp.TUNNEL_TYPE_MPLS_IN_GRE, vpn(v4, 32, 301, 302), bgp.NewPathAttributeCommunities([]uint32{1, 0xffff0006}), large)
	add(bgp.RF_IPv6_VPN, routed, bgp.TUNNEL_TYPE_MPLS_IN_UDP, vpn(v6, 64, 303), originator, clusters)
	add(bgp.RF_IPv6_VPN, routed, bgp.TUNNEL_TYPE_GRE, vpn(v6, 128, 304), bgp.NewPathAttributeAigp([]bgp.AigpTLVInterface{bgp.NewAigpTLVIgpMetric(7)}))
	add(bgp.RF_EVPN, bridged, bgp.TUNNEL_TYPE_VXLAN, bgp.NewEVPNEthernetAutoDiscoveryRoute(rd, esi, 0, 7))
	add(bgp.RF_EVPN, bridged, bgp.TUNNEL_TYPE_VXLAN, mac(netip.Addr{}, 8001), tunnel)
	add(bgp.RF_EVPN, bridged, bgp.TUNNEL_TYPE_VXLAN, mac(v4, 8001))
	add(bgp.RF_EVPN, routed, bgp.TUNNEL_TYPE_VXLAN, mac(v6, 8001, 7001))
	add(bgp.RF_EVPN, bridged, bgp.TUNNEL_TYPE_VXLAN, multicast, bgp.NewPathAttributePmsiTunnel(bgp.PMSI_TUNNEL_TYPE_INGRESS_REPL, false, 8001, replication))
	add(bgp.RF_EVPN, bridged, bgp.TUNNEL_TYPE_VXLAN, segment)
	add(bgp.RF_EVPN, routed, bgp.TUNNEL_TYPE_VXLAN, prefix(v4, netip.IPv4Unspecified(), 24))
	add(bgp.RF_EVPN, routed, bgp.TUNNEL_TYPE_NVGRE, prefix(v6, netip.IPv6Unspecified(), 64), bgp.NewPathAttributeUnknown(bgp.BGP_ATTR_FLAG_OPTIONAL|bgp.BGP_ATTR_FLAG_TRANSITIVE, 200, []byte{1, 2, 3}))
	return all
}

// station is the MAC address of the paths of Messages.
const station = "02:00:00:77:00:01"

// Mutate returns a message with one to four random changes of its body. The length in the header is correct. Mutate also
// replaces the MAC address by one of 65,536 random ones, because GoBGP needs much time for many paths with the same address.
func Mutate(r *rand.Rand, message []byte) []byte {
	const attributes = bgp.BGP_HEADER_LENGTH + 4
	b := slices.Clone(message)
	if mac, err := net.ParseMAC(station); err == nil {
		if at := bytes.Index(b, mac); at >= 0 {
			b[at+4], b[at+5] = byte(r.Uint32()), byte(r.Uint32())
		}
	}
	for range 1 + r.IntN(4) {
		if len(b) <= bgp.BGP_HEADER_LENGTH {
			break
		}
		at := bgp.BGP_HEADER_LENGTH + r.IntN(len(b)-bgp.BGP_HEADER_LENGTH)
		some := b[at : at+1+r.IntN(min(8, len(b)-at))]
		switch r.IntN(7) {
		case 0, 1:
			b[at] ^= 1 << r.IntN(8)
		case 2:
			b[at] = byte(r.Uint32())
		case 3:
			b[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[r.IntN(5)]
		case 4:
			b = slices.Delete(b, at, at+len(some))
		case 5:
			b = slices.Insert(b, at, slices.Clone(some)...)
		case 6:
			for i := range some {
				some[i] = byte(r.Uint32())
			}
		}
	}
	b = b[:min(len(b), bgp.BGP_MAX_MESSAGE_LENGTH)]
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)))
	if len(b) >= attributes && r.IntN(4) > 0 { // otherwise most messages with another length are refused as a whole
		binary.BigEndian.PutUint16(b[attributes-2:], uint16(len(b)-attributes-int(binary.BigEndian.Uint16(b[attributes-4:]))))
	}
	return b
}

// Handling returns how GoBGP handles an UPDATE message of a Peer. ERROR_HANDLING_NONE means that the message is valid.
func Handling(message []byte) bgp.ErrorHandling {
	parsed, err := bgp.ParseBGPMessage(message)
	if parsed == nil {
		return bgp.ERROR_HANDLING_SESSION_RESET
	}
	update, is := parsed.Body.(*bgp.BGPUpdate)
	if !is {
		return bgp.ERROR_HANDLING_SESSION_RESET
	}
	if err == nil {
		_, err = bgp.ValidateUpdateMsg(update, Families, false, false, false)
	}
	handling := bgp.ERROR_HANDLING_NONE
	if err != nil {
		handling = err.(*bgp.MessageError).ErrorHandling
	}
	aggregator, as4 := false, false
	for _, a := range update.PathAttributes {
		switch a := a.(type) {
		case *bgp.PathAttributeAggregator:
			aggregator = aggregator || a.Value.Askind != reflect.Invalid // it can be decoded
		case *bgp.PathAttributeAs4Aggregator:
			as4 = true
		}
	}
	// GoBGP 4.8 ends the session for a lone AS4_AGGREGATOR (table.UpdatePathAggregator4ByteAs).
	if handling == bgp.ERROR_HANDLING_AFISAFI_DISABLE || as4 && !aggregator {
		return bgp.ERROR_HANDLING_SESSION_RESET
	}
	return handling
}
