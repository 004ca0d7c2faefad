package agent

import (
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/model"
)

// inject sends frames from a device and bypasses the namespace's stack, so that
// exactly these frames leave, without ARP.
func inject(t *testing.T, s *netdev.Space, device string, times int, frame []byte) {
	t.Helper()
	index := agenttest.LinkIn(t, s, device).Attrs().Index
	must.Succeed(t, s.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for range times {
			if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: index}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// datagram returns an Ethernet frame with a UDP datagram: 42 bytes of headers and the
// payload. The frame has at least 60 bytes.
func datagram(t *testing.T, from, to model.MAC, source, destination string, payload int) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: netip.MustParseAddr(source).AsSlice(), DstIP: netip.MustParseAddr(destination).AsSlice()}
	udp := &layers.UDP{SrcPort: 4000, DstPort: sinkPort}
	udp.SetNetworkLayerForChecksum(ip)
	frame, err := netdev.Serialize(&layers.Ethernet{SrcMAC: from[:], DstMAC: to[:], EthernetType: layers.EthernetTypeIPv4}, ip, udp, gopacket.Payload(make([]byte, payload)))
	must.Succeed(t, err)
	return frame
}

// ping is an ICMP echo request, padded to 60 bytes.
func ping(t *testing.T, from model.MAC, source, destination string) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: netip.MustParseAddr(source).AsSlice(), DstIP: netip.MustParseAddr(destination).AsSlice()}
	frame, err := netdev.Serialize(append([]gopacket.SerializableLayer{
		&layers.Ethernet{SrcMAC: from[:], DstMAC: model.RouterMAC[:], EthernetType: layers.EthernetTypeIPv4}, ip}, echo(ip, false)...)...)
	must.Succeed(t, err)
	return frame
}

const sinkPort = 9 // discard, RFC 863

// sink receives and counts datagrams, so that the namespace does not answer them
// with ICMP errors.
func sink(t *testing.T, s *netdev.Space) net.PacketConn {
	t.Helper()
	var c net.PacketConn
	must.Succeed(t, s.Do(func() (err error) {
		c, err = net.ListenPacket("udp4", "0.0.0.0:9")
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return c
}
