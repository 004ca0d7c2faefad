package dhcp

import (
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// leaseTime is the lease time of addresses. A client renews after half of it, and then gets the changes
// of its port.
const leaseTime = time.Hour

// answer4 returns the answer to a DHCPv4 message (RFC 2131) and the destination of the answer. The
// answer is nil if the client expects none, or if the message is refused with the reason in err.
func (l *Lease) answer4(m *dhcpv4.DHCPv4) (answer *dhcpv4.DHCPv4, to netip.Addr, err error) {
	address := l.address(netip.Addr.Is4)
	server := l.gateway(netip.Addr.Is4)
	requested := requested4(m)
	switch {
	case m.OpCode != dhcpv4.OpcodeBootRequest:
		return nil, to, refused(notARequest, "the message is not a request")
	case m.HWType != iana.HWTypeEthernet || string(m.ClientHWAddr) != string(l.MAC[:]):
		return nil, to, refused(foreignMAC, "the hardware address %s in the message is not the port's, %s", m.ClientHWAddr, l.MAC)
	case !address.IsValid() || !server.IsValid():
		return nil, to, refused(noAddress, "the port has no IPv4 address of a subnet")
	case isSet(m.GatewayIPAddr):
		return nil, to, refused(relayed, "a relay agent, %s, has forwarded the message", m.GatewayIPAddr)
	}
	kind := dhcpv4.MessageTypeAck
	switch chosen := m.ServerIdentifier(); m.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		kind = dhcpv4.MessageTypeOffer
	case dhcpv4.MessageTypeRequest:
		if chosen != nil && !chosen.Equal(server.AsSlice()) {
			return nil, to, refused(otherServer, "the client chose another server, %s", chosen)
		}
		if requested != address.Addr() {
			kind = dhcpv4.MessageTypeNak
		}
	case dhcpv4.MessageTypeInform:
		if requested != address.Addr() {
			return nil, to, refused(foreignAddress, "the client has the address %s, which is not the port's, %s", requested, address.Addr())
		}
	case dhcpv4.MessageTypeDecline:
		return nil, to, refused(declined, "the client declined %s: another host on its link answered for the address", address.Addr())
	case dhcpv4.MessageTypeRelease:
		return nil, to, nil
	default:
		return nil, to, refused(notARequest, "the message has the type %s", m.MessageType())
	}
	options := []dhcpv4.Modifier{dhcpv4.WithMessageType(kind), dhcpv4.WithServerIP(server.AsSlice()), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(server.AsSlice()))}
	if kind != dhcpv4.MessageTypeNak {
		options = append(options, l.options4(address, server)...)
		if m.MessageType() != dhcpv4.MessageTypeInform {
			options = append(options, dhcpv4.WithYourIP(address.Addr().AsSlice()), dhcpv4.WithLeaseTime(uint32(leaseTime/time.Second)))
		}
	}
	answer, err = dhcpv4.NewReplyFromRequest(m, options...)
	if err != nil {
		return nil, to, refused(notARequest, "%v", err)
	}
	return answer, destination4(m, answer, address.Addr()), nil
}

// options4 returns the options with the configuration. RFC 3442 demands the default route in the
// classless routes, too, because clients that know this option ignore the router option.
func (l *Lease) options4(address netip.Prefix, router netip.Addr) []dhcpv4.Modifier {
	gateway := router.AsSlice()
	routes := []*dhcpv4.Route{{Dest: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, Router: gateway}}
	for _, s := range l.Subnets {
		if s.Addr().Is4() && !s.Contains(address.Addr()) {
			routes = append(routes, &dhcpv4.Route{Dest: &net.IPNet{IP: s.Masked().Addr().AsSlice(), Mask: net.CIDRMask(s.Bits(), 32)}, Router: gateway})
		}
	}
	mtu := []byte{byte(l.MTU >> 8), byte(l.MTU)}
	options := []dhcpv4.Modifier{
		dhcpv4.WithNetmask(net.CIDRMask(address.Bits(), 32)), dhcpv4.WithRouter(gateway), dhcpv4.WithOption(dhcpv4.OptClasslessStaticRoute(routes...)),
		dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, mtu)), dhcpv4.WithOption(dhcpv4.OptHostName(l.Name)),
	}
	if servers := l.dnsServers(netip.Addr.Is4); len(servers) > 0 {
		options = append(options, dhcpv4.WithDNS(servers...), dhcpv4.WithOption(dhcpv4.OptDomainName(l.Network)))
	}
	return options
}

// requested4 returns the address that a client asks for, or that it has.
func requested4(m *dhcpv4.DHCPv4) netip.Addr {
	ip := m.RequestedIPAddress()
	if len(ip) == 0 || isSet(m.ClientIPAddr) {
		ip = m.ClientIPAddr
	}
	a, _ := netip.AddrFromSlice(ip.To4())
	return a
}

// destination4 returns the destination of an answer (RFC 2131, section 4.1).
func destination4(m, answer *dhcpv4.DHCPv4, address netip.Addr) netip.Addr {
	if answer.MessageType() == dhcpv4.MessageTypeNak || m.IsBroadcast() && !isSet(m.ClientIPAddr) {
		return netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	return address
}

func isSet(ip net.IP) bool { return len(ip) > 0 && !ip.IsUnspecified() }
