package flowtest

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Who talks to whom.
var (
	local4  = netip.MustParseAddrPort("10.0.0.2:40000")
	remote4 = netip.MustParseAddrPort("198.51.100.9:80")
	local6  = netip.MustParseAddrPort("[fd00::2]:40000")
	remote6 = netip.MustParseAddrPort("[2001:db8::9]:80")
)

var families = []struct {
	name          string
	local, remote netip.AddrPort
}{{"IPv4", local4, remote4}, {"IPv6", local6, remote6}}

// bigEndian is a port as a map's __be16 reads on this machine.
func bigEndian(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}

// serialize joins layers into a frame, lengths and checksums filled in.
func serialize(l ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func ethernet(t layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{0, 0, 0x5e, 0, 1, 0}, EthernetType: t}
}

// ip returns the network layer's header and the Ethernet header before it.
func ip(from, to netip.Addr, protocol layers.IPProtocol) (*layers.Ethernet, gopacket.NetworkLayer) {
	if from.Is4() {
		return ethernet(layers.EthernetTypeIPv4), &layers.IPv4{Version: 4, TTL: 64, Protocol: protocol,
			SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	}
	return ethernet(layers.EthernetTypeIPv6), &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: protocol,
		SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
}

// tcp makes a segment; flags of S, A, F, R.
func tcp(from, to netip.AddrPort, flags string) []byte {
	eth, network := ip(from.Addr(), to.Addr(), layers.IPProtocolTCP)
	segment := &layers.TCP{SrcPort: layers.TCPPort(from.Port()), DstPort: layers.TCPPort(to.Port()), Window: 1000,
		SYN: strings.Contains(flags, "S"), ACK: strings.Contains(flags, "A"),
		FIN: strings.Contains(flags, "F"), RST: strings.Contains(flags, "R")}
	segment.SetNetworkLayerForChecksum(network)
	return serialize(eth, network.(gopacket.SerializableLayer), segment)
}

func udp(from, to netip.AddrPort, payload int) []byte {
	eth, network := ip(from.Addr(), to.Addr(), layers.IPProtocolUDP)
	datagram := &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	datagram.SetNetworkLayerForChecksum(network)
	return serialize(eth, network.(gopacket.SerializableLayer), datagram, gopacket.Payload(make([]byte, payload)))
}

// raw makes a packet of any protocol around its bytes.
func raw(from, to netip.Addr, protocol uint8, payload []byte) []byte {
	eth, network := ip(from, to, layers.IPProtocol(protocol))
	return serialize(eth, network.(gopacket.SerializableLayer), gopacket.Payload(payload))
}

// icmp makes a message with an identifier. ICMPv6 types for IPv6 addresses.
func icmp(from, to netip.Addr, kind uint8, id uint16) []byte {
	eth, network := ip(from, to, layers.IPProtocolICMPv4)
	if from.Is4() {
		return serialize(eth, network.(gopacket.SerializableLayer),
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, 0), Id: id, Seq: 1})
	}
	body := binary.BigEndian.AppendUint16(nil, id)
	return icmp6(from, to, kind, 64, append(body, 0, 1))
}

func icmp6(from, to netip.Addr, kind, hops uint8, body []byte) []byte {
	eth, network := ip(from, to, layers.IPProtocolICMPv6)
	network.(*layers.IPv6).HopLimit = hops
	message := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
	message.SetNetworkLayerForChecksum(network)
	return serialize(eth, network.(gopacket.SerializableLayer), message, gopacket.Payload(body))
}

// quoting makes the ICMP error that quotes a frame's packet.
func quoting(from, to netip.Addr, kind uint8, frame []byte, length int) []byte {
	quote := frame[14:]
	if len(quote) > length {
		quote = quote[:length]
	}
	if from.Is4() {
		eth, network := ip(from, to, layers.IPProtocolICMPv4)
		return serialize(eth, network.(gopacket.SerializableLayer),
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, 0)}, gopacket.Payload(quote))
	}
	return icmp6(from, to, kind, 64, append(make([]byte, 4), quote...))
}

// extend puts raw IPv6 extension headers, whose first one is of type first,
// between a frame's IPv6 header and what follows it.
func extend(frame []byte, first uint8, extensions []byte) []byte {
	f := append([]byte(nil), frame[:14+40]...)
	f = append(f, extensions...)
	f = append(f, frame[14+40:]...)
	f[14+6] = first
	binary.BigEndian.PutUint16(f[14+4:], uint16(len(f)-14-40))
	return f
}

// extension is one of 8 or 16 bytes that says what is next.
func extension(next uint8, eighths uint8) []byte {
	e := make([]byte, 8*(1+int(eighths)))
	e[0], e[1] = next, eighths
	return e
}

// fragment is the IPv6 fragment header; offset in bytes.
func fragmentHeader(next uint8, offset int, more bool, id uint32) []byte {
	e := []byte{next, 0}
	o := uint16(offset)
	if more {
		o |= 1
	}
	e = binary.BigEndian.AppendUint16(e, o)
	return binary.BigEndian.AppendUint32(e, id)
}

// split cuts a frame's IP packet into fragments of at most size payload bytes.
func split(frame []byte, size int, id uint32) [][]byte {
	if frame[14]>>4 == 6 {
		return split6(frame, size, id)
	}
	var all [][]byte
	payload := frame[34:]
	for at := 0; at < len(payload); at += size {
		end := min(at+size, len(payload))
		f := append(append([]byte(nil), frame[:34]...), payload[at:end]...)
		o := uint16(at / 8)
		if end < len(payload) {
			o |= 0x2000
		}
		binary.BigEndian.PutUint16(f[14+2:], uint16(len(f)-14))
		binary.BigEndian.PutUint16(f[14+4:], uint16(id))
		binary.BigEndian.PutUint16(f[14+6:], o)
		all = append(all, f)
	}
	return all
}

func split6(frame []byte, size int, id uint32) [][]byte {
	var all [][]byte
	payload := frame[54:]
	for at := 0; at < len(payload); at += size {
		end := min(at+size, len(payload))
		f := append(append([]byte(nil), frame[:54]...), payload[at:end]...)
		all = append(all, extend(f, 44, fragmentHeader(frame[14+6], at, end < len(payload), id)))
	}
	return all
}
