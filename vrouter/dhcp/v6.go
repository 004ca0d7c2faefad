package dhcp

import (
	"net"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"windtunnel/vrouter/model"
)

// serverID is the server identifier of all nodes, because all agents give the same answers.
var serverID = &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: model.RouterMAC[:]}

// answer6 returns the answer to a DHCPv6 message (RFC 8415, section 18.3). The answer is nil if the
// message is refused with the reason in err.
func (l *Lease) answer6(data []byte) (*dhcpv6.Message, error) {
	decoded, err := dhcpv6.FromBytes(data)
	if err != nil {
		return nil, refused(malformed, "the DHCPv6 message cannot be decoded: %v", err)
	}
	m, ok := decoded.(*dhcpv6.Message)
	if !ok {
		return nil, refused(relayed, "a relay agent has forwarded the DHCPv6 message")
	}
	address := l.address(netip.Addr.Is6)
	if !address.IsValid() {
		return nil, refused(noAddress, "the port has no IPv6 address of a subnet")
	}
	if chosen := m.Options.ServerID(); chosen != nil && !chosen.Equal(serverID) {
		return nil, refused(otherServer, "the client chose another server, %s", chosen)
	}
	answer := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeReply, TransactionID: m.TransactionID}
	answer.AddOption(dhcpv6.OptServerID(serverID))
	if servers := l.dnsServers(netip.Addr.Is6); len(servers) > 0 {
		dhcpv6.WithDNS(servers...)(answer)
		dhcpv6.WithDomainSearchList(l.Network)(answer)
	}
	client := m.Options.ClientID()
	if client != nil {
		answer.AddOption(dhcpv6.OptClientID(client))
	} else if m.Type() != dhcpv6.MessageTypeInformationRequest {
		return nil, refused(malformed, "the DHCPv6 message has no client identifier")
	}
	switch m.Type() {
	case dhcpv6.MessageTypeSolicit:
		if m.GetOneOption(dhcpv6.OptionRapidCommit) == nil {
			answer.MessageType = dhcpv6.MessageTypeAdvertise
		} else {
			dhcpv6.WithRapidCommit(answer)
		}
		l.bind(m, answer, address.Addr())
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind:
		l.bind(m, answer, address.Addr())
	case dhcpv6.MessageTypeConfirm:
		status := iana.StatusSuccess
		if slices.ContainsFunc(boundAddresses(m), func(a netip.Addr) bool { return a != address.Addr() }) {
			status = iana.StatusNotOnLink
		}
		answer.AddOption(&dhcpv6.OptStatusCode{StatusCode: status})
	case dhcpv6.MessageTypeRelease:
		answer.AddOption(&dhcpv6.OptStatusCode{StatusCode: iana.StatusSuccess})
	case dhcpv6.MessageTypeDecline:
		return nil, refused(declined, "the client declined %s: another host on its link answered for the address", address.Addr())
	case dhcpv6.MessageTypeInformationRequest:
	default:
		return nil, refused(notARequest, "the DHCPv6 message has the type %s", m.Type())
	}
	return answer, nil
}

// bind adds the port's address to each identity association of the client. Other addresses in the
// client's message get lifetimes of 0, so the client stops using them.
func (l *Lease) bind(m, answer *dhcpv6.Message, address netip.Addr) {
	for _, asked := range m.Options.IANA() {
		given := &dhcpv6.OptIANA{IaId: asked.IaId, T1: leaseTime / 2, T2: leaseTime * 4 / 5}
		given.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: address.AsSlice(), PreferredLifetime: leaseTime, ValidLifetime: leaseTime})
		for _, old := range asked.Options.Addresses() {
			if !old.IPv6Addr.Equal(address.AsSlice()) {
				given.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: old.IPv6Addr})
			}
		}
		answer.AddOption(given)
	}
}

// boundAddresses returns the addresses in a client's message.
func boundAddresses(m *dhcpv6.Message) (all []netip.Addr) {
	for _, ia := range m.Options.IANA() {
		for _, a := range ia.Options.Addresses() {
			ip, _ := netip.AddrFromSlice(net.IP(a.IPv6Addr).To16())
			all = append(all, ip)
		}
	}
	return all
}
