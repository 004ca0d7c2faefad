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
		return nil, fmt.Errorf("open an ICMPv6 socket for address %s: %w", source, err)
	}
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeEchoReply)
	if err := c.IPv6PacketConn().SetICMPFilter(&only); err != nil {
		c.Close()
		return nil, fmt.Errorf("set the filter for echo replies on an ICMPv6 socket: %w", err)
	}
	return c, nil
}

// echoMagic is the identifier of the Tester's echo requests (ECHO_ID of
// datapath/bpf/translate.h).
const echoMagic = 0x7664

// echoRequest returns an ICMPv6 echo request with the number of a test. The kernel writes
// its checksum. The program fabric_tc of the other node writes another kind into its reply.
// The other node's kernel copies the kind, and parseEcho refuses the reply of a kernel: it
// does not show that the request came by a fabric device.
func echoRequest(number uint64) []byte {
	data := append([]byte(magic), 0, request)
	m := icmp.Message{Type: ipv6.ICMPTypeEchoRequest, Body: &icmp.Echo{ID: echoMagic, Seq: int(uint16(number)), Data: binary.BigEndian.AppendUint64(data, number)}}
	b, err := m.Marshal(nil)
	if err != nil {
		panic(err) // Marshal does not fail for an echo
	}
	return b
}

// parseEcho returns the sender of a program's echo reply and the number of the test. ok is
// false for all other messages.
func parseEcho(b []byte, from net.Addr) (sender netip.Addr, number uint64, ok bool) {
	m, err := icmp.ParseMessage(ipv6.ICMPTypeEchoReply.Protocol(), b)
	if err != nil || m.Type != ipv6.ICMPTypeEchoReply {
		return sender, 0, false
	}
	e, isEcho := m.Body.(*icmp.Echo)
	a, isIP := from.(*net.IPAddr)
	const length = len(magic) + 2 + 8
	if !isEcho || !isIP || e.ID != echoMagic || len(e.Data) != length || string(e.Data[:len(magic)]) != magic || e.Data[len(magic)+1] != reply {
		return sender, 0, false
	}
	sender, ok = netip.AddrFromSlice(a.IP)
	return sender, binary.BigEndian.Uint64(e.Data[length-8:]), ok
}
