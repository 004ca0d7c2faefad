package agent

import (
	"fmt"
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/vrouter/inspect"
)

// describeFrame describes a frame in one line, from its first bytes: addresses,
// protocol and ports.
func describeFrame(data []byte) string {
	eth, ok := firstLayer(data)
	if !ok {
		return fmt.Sprintf("%d bytes, too few for an Ethernet frame", len(data))
	}
	packet := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: false, NoCopy: true})
	words := ""
	for _, l := range packet.Layers() {
		if w := layerWords(l); w != "" && words != "" {
			words += " · " + w
		} else if w != "" {
			words = w
		}
	}
	if words == "" {
		return fmt.Sprintf("%s > %s, ethertype 0x%04x", eth.SrcMAC, eth.DstMAC, uint16(eth.EthernetType))
	}
	return words
}

func firstLayer(data []byte) (eth layers.Ethernet, ok bool) {
	return eth, eth.DecodeFromBytes(data, gopacket.NilDecodeFeedback) == nil
}

func layerWords(l gopacket.Layer) string {
	switch l := l.(type) {
	case *layers.ARP:
		return fmt.Sprintf("ARP %s: %s asks for %s", arpWords(l.Operation), ipText(l.SourceProtAddress), ipText(l.DstProtAddress))
	case *layers.IPv4:
		return ipWords(l.SrcIP, l.DstIP, l.Protocol, l.TTL)
	case *layers.IPv6:
		return ipWords(l.SrcIP, l.DstIP, l.NextHeader, l.HopLimit)
	case *layers.TCP:
		return fmt.Sprintf("%d > %d %s", l.SrcPort, l.DstPort, tcpFlags(l))
	case *layers.UDP:
		return fmt.Sprintf("%d > %d", l.SrcPort, l.DstPort)
	case *layers.ICMPv4:
		return l.TypeCode.String()
	case *layers.ICMPv6:
		return l.TypeCode.String()
	case *layers.MPLS:
		return fmt.Sprintf("label %d", l.Label)
	case *layers.VXLAN:
		return fmt.Sprintf("VNI %d", l.VNI)
	}
	return ""
}

func arpWords(operation uint16) string {
	if operation == layers.ARPReply {
		return "reply"
	}
	return "request"
}

func ipText(a []byte) string { return net.IP(a).String() }

func ipWords(source, destination net.IP, protocol layers.IPProtocol, ttl uint8) string {
	return fmt.Sprintf("%s > %s %s ttl %d", source, destination, inspect.ProtocolName(uint8(protocol)), ttl)
}

func tcpFlags(t *layers.TCP) string {
	text := ""
	for _, f := range []struct {
		on   bool
		name string
	}{{t.SYN, "S"}, {t.FIN, "F"}, {t.RST, "R"}, {t.PSH, "P"}, {t.ACK, "."}} {
		if f.on {
			text += f.name
		}
	}
	return "[" + text + "]"
}
