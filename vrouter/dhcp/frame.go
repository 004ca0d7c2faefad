package dhcp

import (
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/vrouter/model"
)

// frame is a packet of a workload.
type frame struct {
	mac      model.MAC // source
	from, to netip.Addr
	ports    [2]uint16      // source and destination
	icmp6    *layers.ICMPv6 // nil: the packet is UDP
	hops     uint8          // TTL or hop limit
	payload  []byte         // of UDP
}

// parse decodes a frame; false: it is not UDP or ICMPv6 in IP.
func parse(data []byte) (f frame, ok bool) {
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	ethernet, ok := p.LinkLayer().(*layers.Ethernet)
	if !ok {
		return f, false
	}
	copy(f.mac[:], ethernet.SrcMAC)
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		f.from, _ = netip.AddrFromSlice(ip.SrcIP.To4())
		f.to, _ = netip.AddrFromSlice(ip.DstIP.To4())
		f.hops = ip.TTL
	case *layers.IPv6:
		f.from, _ = netip.AddrFromSlice(ip.SrcIP)
		f.to, _ = netip.AddrFromSlice(ip.DstIP)
		f.hops = ip.HopLimit
		if f.icmp6, ok = p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6); ok {
			return f, true
		}
	default:
		return f, false
	}
	udp, ok := p.TransportLayer().(*layers.UDP)
	if !ok {
		return f, false
	}
	f.ports, f.payload = [2]uint16{uint16(udp.SrcPort), uint16(udp.DstPort)}, udp.Payload
	return f, true
}

// udp returns the frame of a UDP packet from the router to a workload.
func udp(mac model.MAC, from, to netip.AddrPort, payload []byte) ([]byte, error) {
	ethernet := &layers.Ethernet{SrcMAC: model.RouterMAC[:], DstMAC: mac[:], EthernetType: layers.EthernetTypeIPv4}
	segment := &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	if to.Addr().Is6() {
		ethernet.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()}
		segment.SetNetworkLayerForChecksum(ip) // it fails only for other kinds of layers
		return serialize(ethernet, ip, segment, gopacket.Payload(payload))
	}
	if to.Addr() == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		ethernet.DstMAC = layers.EthernetBroadcast
	}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()}
	segment.SetNetworkLayerForChecksum(ip)
	return serialize(ethernet, ip, segment, gopacket.Payload(payload))
}

func serialize(stack ...gopacket.SerializableLayer) ([]byte, error) {
	buffer := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, stack...)
	return buffer.Bytes(), err
}
