package direct

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv6"
)

// listenEcho opens a socket for ICMPv6 echo replies to an address of this node.
func listenEcho(source netip.Addr) (net.PacketConn, error) {
	c, err := icmp.ListenPacket("ip6:ipv6-icmp", source.String())
	if err != nil {
		return nil, fmt.Errorf("open an ICMPv6 socket at %s: %w", source, err)
	}
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeEchoReply)
	if err := c.IPv6PacketConn().SetICMPFilter(&only); err != nil {
		c.Close()
		return nil, fmt.Errorf("receive only echo replies: %w", err)
	}
	return c, nil
}

// echoMagic is the identifier of the Tester's echo requests.
const echoMagic = 0x7664

// echoRequest returns an ICMPv6 echo request with the number of a test. The kernel writes
// its checksum.
func echoRequest(number uint64) []byte {
	m := icmp.Message{Type: ipv6.ICMPTypeEchoRequest, Body: &icmp.Echo{ID: echoMagic, Seq: int(uint16(number)), Data: binary.BigEndian.AppendUint64([]byte(magic), number)}}
	b, err := m.Marshal(nil)
	if err != nil {
		panic(err) // an echo always has a binary form
	}
	return b
}

// parseEcho returns the sender of an echo reply and the number of its test. ok is false for
// other messages.
func parseEcho(b []byte, from net.Addr) (sender netip.Addr, number uint64, ok bool) {
	m, err := icmp.ParseMessage(ipv6.ICMPTypeEchoReply.Protocol(), b)
	if err != nil || m.Type != ipv6.ICMPTypeEchoReply {
		return sender, 0, false
	}
	e, isEcho := m.Body.(*icmp.Echo)
	a, isIP := from.(*net.IPAddr)
	if !isEcho || !isIP || e.ID != echoMagic || len(e.Data) != len(magic)+8 || string(e.Data[:len(magic)]) != magic {
		return sender, 0, false
	}
	sender, ok = netip.AddrFromSlice(a.IP)
	return sender, binary.BigEndian.Uint64(e.Data[len(magic):]), ok
}
