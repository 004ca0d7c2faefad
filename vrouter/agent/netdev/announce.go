package netdev

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/model"
)

// Station is an IP address of a network that bridges, with its MAC address.
type Station struct {
	Address netip.Addr
	MAC     model.MAC
}

// Announcement tells the workloads behind devices the MAC address of a station.
type Announcement struct {
	Station
	To []int // indexes of the devices
}

// Announce sends each announcement as a gratuitous ARP request or an unsolicited neighbour advertisement. A workload
// that has a neighbour entry for the station updates the entry at once.
func Announce(s *Space, all []Announcement) error {
	frames := make([]frame, len(all))
	for i, a := range all {
		bytes, err := a.announcement()
		if err != nil {
			return fmt.Errorf("build the announcement of %s: %w", a.Address, err)
		}
		frames[i] = frame{bytes, a.To}
	}
	if err := sendFrames(s, frames); err != nil {
		return fmt.Errorf("announce MAC addresses: %w", err)
	}
	return nil
}

// frame is an Ethernet frame to the workloads behind devices.
type frame struct {
	bytes []byte
	to    []int // indexes of the devices
}

// sendFrames sends frames from devices of the node to the workloads behind them. It uses one socket for all frames,
// because closing a packet socket takes milliseconds (packet_release in net/packet/af_packet.c waits for other CPUs).
func sendFrames(s *Space, frames []frame) error {
	return s.Do(func() error {
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // protocol 0: it receives nothing
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		for _, f := range frames {
			for _, index := range f.to {
				if failed := unix.Sendto(socket, f.bytes, 0, &unix.SockaddrLinklayer{Ifindex: index}); failed != nil {
					err = failed // for example a device that is down
				}
			}
		}
		return err
	})
}

// Ask sends an ARP request or a neighbour solicitation for a workload's address. The source is the workload's gateway. Ask
// sends the frame out of the device of the workload's port, to the workload's MAC address.
func Ask(s *Space, device int, router, workload Station) error {
	bytes, err := Query(router, workload, workload.Address)
	if err == nil {
		err = sendFrames(s, []frame{{bytes, []int{device}}})
	}
	if err != nil {
		return fmt.Errorf("ask for the MAC address of %s: %w", workload.Address, err)
	}
	return nil
}

// Query returns a frame by which one host asks for the MAC address of target: an ARP request or a neighbour solicitation.
// The destination of the frame is a unicast or a multicast address.
func Query(from, to Station, target netip.Addr) ([]byte, error) {
	ethernet := &layers.Ethernet{SrcMAC: from.MAC[:], DstMAC: to.MAC[:], EthernetType: layers.EthernetTypeARP}
	if target.Is6() {
		return neighbourDiscovery(ethernet, from.Address, to.Address, layers.ICMPv6TypeNeighborSolicitation, &layers.ICMPv6NeighborSolicitation{
			TargetAddress: target.AsSlice(), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: from.MAC[:]}},
		})
	}
	return Serialize(ethernet, &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: from.MAC[:], SourceProtAddress: from.Address.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: target.AsSlice(),
	})
}

// announcement returns a gratuitous ARP request (RFC 5227, section 3) or an unsolicited neighbour
// advertisement (RFC 4861, section 7.2.6).
func (t Station) announcement() ([]byte, error) {
	if t.Address.Is4() {
		return Query(t, Station{MAC: model.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, t.Address)
	}
	const override = 0x20
	ethernet := &layers.Ethernet{SrcMAC: t.MAC[:], DstMAC: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}}
	return neighbourDiscovery(ethernet, t.Address, netip.IPv6LinkLocalAllNodes(), layers.ICMPv6TypeNeighborAdvertisement, &layers.ICMPv6NeighborAdvertisement{
		Flags: override, TargetAddress: t.Address.AsSlice(), Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: t.MAC[:]}},
	})
}

// neighbourDiscovery returns a frame with a message of RFC 4861.
func neighbourDiscovery(ethernet *layers.Ethernet, from, to netip.Addr, kind uint8, message gopacket.SerializableLayer) ([]byte, error) {
	ethernet.EthernetType = layers.EthernetTypeIPv6
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)}
	icmp.SetNetworkLayerForChecksum(ip) // it fails only for other kinds of layers
	return Serialize(ethernet, ip, icmp, message)
}

// Serialize returns the bytes of a frame with its lengths and checksums.
func Serialize(stack ...gopacket.SerializableLayer) ([]byte, error) {
	buffer := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, stack...)
	return buffer.Bytes(), err
}
