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

// Announce sends the MAC address of a station to the workloads behind devices, in a gratuitous ARP
// request or an unsolicited neighbour advertisement. Workloads that have a neighbour entry for the
// station update it at once.
func Announce(s *Space, to []int, station Station) error {
	frame, err := station.frame()
	if err != nil {
		return fmt.Errorf("build the announcement of %s: %w", station.Address, err)
	}
	if err := sendFrame(s, to, frame); err != nil {
		return fmt.Errorf("announce that %s has the MAC address %s: %w", station.Address, station.MAC, err)
	}
	return nil
}

// sendFrame sends a frame from devices of the node to the workloads behind them.
func sendFrame(s *Space, from []int, frame []byte) error {
	return s.Do(func() error {
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // protocol 0: it receives nothing
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		for _, index := range from {
			if failed := unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: index}); failed != nil {
				err = failed // for example a device that is down
			}
		}
		return err
	})
}

// Ask sends an ARP request or a neighbour solicitation for a workload's address, in the name of its router. The frame leaves by
// the device of the workload's port, and is addressed to the workload's MAC address.
func Ask(s *Space, device int, router, workload Station) error {
	ethernet := &layers.Ethernet{SrcMAC: router.MAC[:], DstMAC: workload.MAC[:], EthernetType: layers.EthernetTypeARP}
	address := workload.Address.AsSlice()
	stack := []gopacket.SerializableLayer{ethernet, &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: router.MAC[:], SourceProtAddress: router.Address.AsSlice(), DstHwAddress: make([]byte, 6), DstProtAddress: address,
	}}
	if workload.Address.Is6() {
		ethernet.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: router.Address.AsSlice(), DstIP: address}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)}
		icmp.SetNetworkLayerForChecksum(ip)
		stack = []gopacket.SerializableLayer{ethernet, ip, icmp, &layers.ICMPv6NeighborSolicitation{
			TargetAddress: address, Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptSourceAddress, Data: router.MAC[:]}},
		}}
	}
	frame, err := serialize(stack)
	if err == nil {
		err = sendFrame(s, []int{device}, frame)
	}
	if err != nil {
		return fmt.Errorf("ask for the MAC address of %s: %w", workload.Address, err)
	}
	return nil
}

// frame returns a gratuitous ARP request (RFC 5227, section 3) or an unsolicited neighbour
// advertisement (RFC 4861, section 7.2.6).
func (t Station) frame() ([]byte, error) {
	ethernet := &layers.Ethernet{SrcMAC: t.MAC[:], DstMAC: net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EthernetType: layers.EthernetTypeARP}
	address := t.Address.AsSlice()
	stack := []gopacket.SerializableLayer{ethernet, &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: t.MAC[:], SourceProtAddress: address, DstHwAddress: make([]byte, 6), DstProtAddress: address,
	}}
	if t.Address.Is6() {
		const override = 0x20
		ethernet.DstMAC, ethernet.EthernetType = net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: address, DstIP: net.IPv6linklocalallnodes}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborAdvertisement, 0)}
		icmp.SetNetworkLayerForChecksum(ip)
		stack = []gopacket.SerializableLayer{ethernet, ip, icmp, &layers.ICMPv6NeighborAdvertisement{
			Flags: override, TargetAddress: address, Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: t.MAC[:]}},
		}}
	}
	return serialize(stack)
}

func serialize(stack []gopacket.SerializableLayer) ([]byte, error) {
	buffer := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, stack...)
	return buffer.Bytes(), err
}
