package agent

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// probe is the test packet of a trace.
type probe struct {
	frame []byte
	words string // description for users
}

// Defaults and limits of a probe.
const (
	probePort       = 40000
	probeTTL        = 64
	tcpHeaderLength = 20
	maxIPPacket     = 65535
)

var broadcast = model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// makeProbe builds the packet that a workload would send. In a network that bridges,
// a workload first resolves the destination's MAC address. If no port has the
// destination address, the probe is the ARP request or neighbour solicitation.
func makeProbe(v *snapshot, r api.TraceRequest) (probe, error) {
	port, ok := v.want.Port(r.From)
	i := slices.IndexFunc(v.want.All, func(p *model.CompactPort) bool { return p.Name == r.From })
	switch {
	case !ok && i >= 0:
		return probe{}, refuse(http.StatusBadRequest, "port %q is on node %s; ask the agent there", r.From, v.want.All[i].Node)
	case !ok:
		return probe{}, refuse(http.StatusNotFound, "there is no port %q", r.From)
	case !r.To.IsValid() || r.To.Zone() != "":
		return probe{}, refuse(http.StatusBadRequest, "to: the destination must be an IP address without a zone, such as 10.0.0.5")
	}
	source, ok := sourceFor(port, r.To)
	if !ok {
		return probe{}, refuse(http.StatusBadRequest, "trace from port %q to %s: the port has no address of the destination's family; set another source or destination", r.From, r.To)
	}
	network, _ := v.want.Network(port.Network)
	to, known := firstHop(v.want, network, r.To.Unmap())
	if !known {
		return neighbourQuery(port, source, r.To.Unmap())
	}
	return packet(port, to, source, r)
}

// sourceFor returns the port's first address of the destination's family.
func sourceFor(p model.Port, to netip.Addr) (netip.Addr, bool) {
	for _, ip := range p.IPs {
		if ip.Is4() == to.Unmap().Is4() {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

// firstHop returns the MAC that the workload sends to: the router's for routed
// packets, the neighbour's for bridged ones.
func firstHop(d *reconcile.Desired, n model.Network, to netip.Addr) (mac model.MAC, known bool) {
	subnet, onLink := n.Subnet(to)
	isGateway := onLink && to == model.GatewayAddress(subnet)
	switch {
	case to.IsMulticast() || to == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return groupMAC(to), true
	case n.Forwarding == model.L3, n.Forwarding == model.L2L3 && (!onLink || isGateway):
		return model.RouterMAC, true
	}
	for _, p := range d.All {
		if p.Network != n.Name {
			continue
		}
		for _, ip := range p.IPs {
			if ip == to {
				return p.MAC, true
			}
		}
	}
	return model.MAC{}, false
}

// groupMAC is the Ethernet address of a multicast group (RFC 1112, section 6.4;
// RFC 2464, section 7).
func groupMAC(to netip.Addr) model.MAC {
	a := to.AsSlice()
	switch {
	case to.Is6():
		return model.MAC{0x33, 0x33, a[12], a[13], a[14], a[15]}
	case to.IsMulticast():
		return model.MAC{0x01, 0x00, 0x5e, a[1] & 0x7f, a[2], a[3]}
	}
	return broadcast
}

// neighbourQuery is an ARP request or a neighbour solicitation.
func neighbourQuery(p model.Port, source, to netip.Addr) (probe, error) {
	words := fmt.Sprintf("who has %s? tell %s, %s (no port in the desired state has that address)", to, source, p.MAC)
	kind, group := "ARP: ", to
	if to.Is6() {
		a := to.As16()
		kind, group = "neighbour solicitation: ", netip.AddrFrom16([16]byte{0xff, 0x02, 10: 0, 11: 1, 12: 0xff, 13: a[13], 14: a[14], 15: a[15]}) // RFC 4291, section 2.7.1
	}
	frame, err := netdev.Query(netdev.Station{Address: source, MAC: p.MAC}, netdev.Station{Address: group, MAC: groupMAC(group)}, to)
	return probe{frame, kind + words}, err
}

// packet builds an IP packet with the requested protocol and length.
func packet(p model.Port, to model.MAC, source netip.Addr, r api.TraceRequest) (probe, error) {
	destination := r.To.Unmap()
	body, words, err := transport(r)
	if err != nil {
		return probe{}, err
	}
	ethernet := &layers.Ethernet{SrcMAC: p.MAC[:], DstMAC: to[:], EthernetType: layers.EthernetTypeIPv4}
	var network gopacket.SerializableLayer
	var sum gopacket.NetworkLayer
	if destination.Is4() {
		ip := &layers.IPv4{Version: 4, TTL: probeTTL, Flags: layers.IPv4DontFragment, Protocol: body.protocol4, SrcIP: source.AsSlice(), DstIP: destination.AsSlice()}
		network, sum = ip, ip
	} else {
		ethernet.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: probeTTL, NextHeader: body.protocol6, SrcIP: source.AsSlice(), DstIP: destination.AsSlice()}
		network, sum = ip, ip
	}
	header := 20
	if destination.Is6() {
		header = 40
	}
	stack := body.layers(sum, destination.Is6())
	payload := max(0, r.Length-header-body.length)
	if r.Length != 0 && r.Length < header+body.length {
		return probe{}, refuse(http.StatusBadRequest, "length: a packet of %s has at least %d bytes", words, header+body.length)
	}
	stack = append([]gopacket.SerializableLayer{ethernet, network}, append(stack, gopacket.Payload(make([]byte, payload)))...)
	frame, err := netdev.Serialize(stack...)
	if err != nil {
		return probe{}, fmt.Errorf("build the packet to trace: %w", err)
	}
	length := header + body.length + payload // without the padding of short Ethernet frames
	return probe{frame, fmt.Sprintf("%s from %s to %s, %d bytes, from %s to %s", words, source, destination, length, p.MAC, to)}, nil
}

// body is the part of a packet after the IP header.
type body struct {
	protocol4, protocol6 layers.IPProtocol
	length               int
	layers               func(sum gopacket.NetworkLayer, six bool) []gopacket.SerializableLayer
}

func transport(r api.TraceRequest) (body, string, error) {
	if r.Length < 0 || r.Length > maxIPPacket {
		return body{}, "", refuse(http.StatusBadRequest, "length: must be between 0 and %d, in bytes of the IP packet", maxIPPacket)
	}
	sport := r.SourcePort
	if sport == 0 {
		sport = probePort
	}
	ports := fmt.Sprintf(" %d > %d", sport, r.DestinationPort)
	switch r.Protocol {
	case "", "icmp":
		return body{layers.IPProtocolICMPv4, layers.IPProtocolICMPv6, 8, echo}, "ICMP echo request", nil
	case "tcp":
		return body{layers.IPProtocolTCP, layers.IPProtocolTCP, tcpHeaderLength, func(sum gopacket.NetworkLayer, _ bool) []gopacket.SerializableLayer {
			t := &layers.TCP{SrcPort: layers.TCPPort(sport), DstPort: layers.TCPPort(r.DestinationPort), SYN: true, Window: 65535}
			t.SetNetworkLayerForChecksum(sum)
			return []gopacket.SerializableLayer{t}
		}}, "TCP SYN" + ports, nil
	case "udp":
		return body{layers.IPProtocolUDP, layers.IPProtocolUDP, 8, func(sum gopacket.NetworkLayer, _ bool) []gopacket.SerializableLayer {
			u := &layers.UDP{SrcPort: layers.UDPPort(sport), DstPort: layers.UDPPort(r.DestinationPort)}
			u.SetNetworkLayerForChecksum(sum)
			return []gopacket.SerializableLayer{u}
		}}, "UDP" + ports, nil
	}
	return body{}, "", refuse(http.StatusBadRequest, "protocol: %q is not icmp, tcp or udp", r.Protocol)
}

func echo(sum gopacket.NetworkLayer, six bool) []gopacket.SerializableLayer {
	const id = 0x7672
	if !six {
		return []gopacket.SerializableLayer{&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: id, Seq: 1}}
	}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeEchoRequest, 0)}
	icmp.SetNetworkLayerForChecksum(sum)
	return []gopacket.SerializableLayer{icmp, gopacket.Payload(binary.BigEndian.AppendUint32(nil, id<<16|1))}
}
