package dhcp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"github.com/gopacket/gopacket/layers"

	"windtunnel/vrouter/model"
)

// Times of router advertisements (RFC 4861, section 6.2.1).
const (
	advertiseEvery = 200 * time.Second
	routerLifetime = 30 * time.Minute
	prefixLifetime = 30 * 24 * time.Hour
)

const (
	managed = 0xc0 // flags M and O: addresses and other configuration by DHCPv6
	onLink  = 0x80 // flag L of a prefix; without flag A, the client forms no address in the prefix
)

// routerAddress is the router's link-local address, by its MAC address (RFC 4291, appendix A).
var routerAddress = func() netip.Addr {
	m := model.RouterMAC
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}()

var allNodes = netip.MustParseAddr("ff02::1")

// advertisement returns the frame of a router advertisement (RFC 4861, section 4.2) to the workload.
func (l *Lease) advertisement() ([]byte, error) {
	mtu := binary.BigEndian.AppendUint32(make([]byte, 2), uint32(l.MTU))
	options := layers.ICMPv6Options{
		{Type: layers.ICMPv6OptSourceAddress, Data: model.RouterMAC[:]}, {Type: layers.ICMPv6OptMTU, Data: mtu},
	}
	for _, s := range l.Subnets {
		if !s.Addr().Is6() {
			continue
		}
		prefix := binary.BigEndian.AppendUint32([]byte{byte(s.Bits()), onLink}, uint32(prefixLifetime/time.Second))
		prefix = binary.BigEndian.AppendUint32(prefix, uint32(prefixLifetime/time.Second))
		options = append(options, layers.ICMPv6Option{Type: layers.ICMPv6OptPrefixInfo, Data: append(append(prefix, 0, 0, 0, 0), s.Masked().Addr().AsSlice()...)})
	}
	for _, server := range l.dnsServers(netip.Addr.Is6) { // RDNSS (RFC 8106)
		lifetime := binary.BigEndian.AppendUint32(make([]byte, 2), uint32(routerLifetime/time.Second))
		options = append(options, layers.ICMPv6Option{Type: layers.ICMPv6OptRecursiveDNSServer, Data: append(lifetime, server...)})
	}
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: routerAddress.AsSlice(), DstIP: allNodes.AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeRouterAdvertisement, 0)}
	if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
		return nil, err
	}
	ethernet := &layers.Ethernet{SrcMAC: model.RouterMAC[:], DstMAC: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv6}
	return serialize(ethernet, ip, icmp, &layers.ICMPv6RouterAdvertisement{
		HopLimit: 64, Flags: managed, RouterLifetime: uint16(routerLifetime / time.Second), Options: options,
	})
}
