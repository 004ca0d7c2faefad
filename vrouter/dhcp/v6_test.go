package dhcp

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// exchange6 sends a DHCPv6 message to the server of a lease and returns its answer.
func exchange6(t *testing.T, l *Lease, m dhcpv6.DHCPv6) (*dhcpv6.Message, error) {
	t.Helper()
	client := netip.MustParseAddr("fe80::1234")
	request := must.Get(udp(l.MAC, netip.AddrPortFrom(client, 546), netip.MustParseAddrPort("[ff02::1:2]:547"), m.ToBytes()))(t)
	copy(request[6:], l.MAC[:])
	data, err := l.answerTo(request)
	if err != nil || data == nil {
		return nil, err
	}
	f, ok := parse(data)
	if !ok || f.from != routerAddress || f.to != client || f.ports != [2]uint16{547, 546} || f.mac != model.RouterMAC {
		t.Errorf("the answer has the frame %+v, want one from %s port 547 to %s port 546", f, routerAddress, client)
	}
	answer := must.Get(dhcpv6.MessageFromBytes(f.payload))(t)
	return answer, nil
}

func solicit(t *testing.T, change ...dhcpv6.Modifier) *dhcpv6.Message {
	t.Helper()
	mac := testLease().MAC
	m := must.Get(dhcpv6.NewSolicit(mac[:], change...))(t)
	return m
}

func addressOf(m *dhcpv6.Message) string {
	ia := m.Options.OneIANA()
	if ia == nil || ia.Options.OneAddress() == nil {
		return "none"
	}
	return ia.Options.OneAddress().IPv6Addr.String()
}

func TestAnIPv6ClientGetsItsPortsAddress(t *testing.T) {
	l := testLease()
	offer := must.Get(exchange6(t, l, solicit(t)))(t)
	request := must.Get(dhcpv6.NewRequestFromAdvertise(offer))(t)
	reply := must.Get(exchange6(t, l, request))(t)
	got := []any{offer.Type().String(), addressOf(offer), reply.Type().String(), addressOf(reply), reply.Options.OneIANA().Options.OneAddress().ValidLifetime, reply.Options.OneIANA().IaId, reply.Options.DNS()[0].String(), reply.Options.DomainSearchList().Labels[0]}
	want := []any{"ADVERTISE", "fd07::10", "REPLY", "fd07::10", leaseTime, request.Options.OneIANA().IaId, "fd07::2", "red"}
	must.Equal(t, want, got)
	quick, err := exchange6(t, l, solicit(t, dhcpv6.WithRapidCommit))
	if must.Succeed(t, err); quick.Type() != dhcpv6.MessageTypeReply || quick.GetOneOption(dhcpv6.OptionRapidCommit) == nil || addressOf(quick) != "fd07::10" {
		t.Errorf("the answer to a solicit with rapid commit: %s", quick.Summary())
	}
	for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind} {
		request.MessageType = kind
		if again, err := exchange6(t, l, request); err != nil || again.Type() != dhcpv6.MessageTypeReply || addressOf(again) != "fd07::10" {
			t.Errorf("the answer to a %s: %v, error %v", kind, again, err)
		}
	}
}

// A client that renews another address gets the port's address, and the other one with a lifetime of 0.
func TestAnotherIPv6AddressExpires(t *testing.T) {
	old := dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP("fd07::99"), ValidLifetime: leaseTime, PreferredLifetime: leaseTime}
	m := solicit(t, dhcpv6.WithServerID(serverID), dhcpv6.WithIANA(old))
	m.MessageType = dhcpv6.MessageTypeRenew
	reply := must.Get(exchange6(t, testLease(), m))(t)
	lifetimes := map[string]bool{}
	for _, a := range reply.Options.OneIANA().Options.Addresses() {
		lifetimes[a.IPv6Addr.String()] = a.ValidLifetime > 0
	}
	must.Equal(t, map[string]bool{"fd07::10": true, "fd07::99": false}, lifetimes)
	m.MessageType = dhcpv6.MessageTypeConfirm
	confirmed, err := exchange6(t, testLease(), m)
	if must.Succeed(t, err); confirmed.Options.Status().StatusCode.String() != "NotOnLink" {
		t.Errorf("the answer to a confirm of another address: %s, want NotOnLink", confirmed.Summary())
	}
}

func TestIPv6MessagesWithoutAnAnswerHaveAReason(t *testing.T) {
	kind := func(k dhcpv6.MessageType, change ...dhcpv6.Modifier) *dhcpv6.Message {
		m := solicit(t, change...)
		m.MessageType = k
		return m
	}
	four := testLease()
	four.Addresses = four.Addresses[:1]
	relay := must.Get(dhcpv6.EncapsulateRelay(solicit(t), dhcpv6.MessageTypeRelayForward, net.IPv6unspecified, net.ParseIP("fe80::1")))(t)
	nameless := solicit(t)
	nameless.Options.Del(dhcpv6.OptionClientID)
	for name, c := range map[string]struct {
		lease *Lease
		m     dhcpv6.DHCPv6
		want  Result
	}{
		"another server":  {testLease(), kind(dhcpv6.MessageTypeRequest, dhcpv6.WithServerID(&dhcpv6.DUIDLL{HWType: 1, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}})), otherServer},
		"a relay agent":   {testLease(), relay, relayed},
		"declined":        {testLease(), kind(dhcpv6.MessageTypeDecline), declined},
		"a reply":         {testLease(), kind(dhcpv6.MessageTypeReply), notARequest},
		"no client id":    {testLease(), nameless, malformed},
		"no IPv6 address": {four, solicit(t), noAddress},
	} {
		answer, err := exchange6(t, c.lease, c.m)
		var r *refusal
		if answer != nil || !errors.As(err, &r) || r.result != c.want || r.text == "" {
			t.Errorf("%s: the answer is %v, the error %v; want only an error with the result %s", name, answer, err, c.want)
		}
	}
}

func TestARouterSolicitationIsAnswered(t *testing.T) {
	l := testLease()
	ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolICMPv6, SrcIP: net.ParseIP("fe80::1234"), DstIP: net.ParseIP("ff02::2")}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeRouterSolicitation, 0)}
	must.Succeed(t, icmp.SetNetworkLayerForChecksum(ip))
	request := must.Get(serialize(&layers.Ethernet{SrcMAC: l.MAC[:], DstMAC: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv6}, ip, icmp, &layers.ICMPv6RouterSolicitation{}))(t)
	data := must.Get(l.answerTo(request))(t)
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
	ra, ok := p.Layer(layers.LayerTypeICMPv6RouterAdvertisement).(*layers.ICMPv6RouterAdvertisement)
	if !ok {
		t.Fatalf("the answer is %v, want a router advertisement", p)
	}
	var options []string
	for _, o := range ra.Options {
		options = append(options, o.String())
	}
	slices.Sort(options)
	want := []string{"ICMPv6Option(MTU:1450)", "ICMPv6Option(PrefixInfo:fd07::/64:true:false:720h0m0s:720h0m0s)", "ICMPv6Option(RecursiveDNSServer:30m0s:fd07::2)", "ICMPv6Option(SourceAddress:00:00:5e:00:01:00)"}
	if diff := cmp.Diff(want, options); diff != "" || !ra.ManagedAddressConfig() || ra.RouterLifetime != 1800 || routerAddress.String() != "fe80::200:5eff:fe00:100" {
		t.Errorf("the advertisement is %+v, from %s; options: %s", ra, routerAddress, diff)
	}
	routed := slices.Clone(request)
	routed[14+7] = 64 // the hop limit
	if data, err := l.answerTo(routed); data != nil || err != nil {
		t.Errorf("a solicitation from another link gets the answer %x, error %v", data, err)
	}
	l.Addresses = l.Addresses[:1]
	if data, err := l.answerTo(request); data != nil || err != nil {
		t.Errorf("a port without an IPv6 address gets the advertisement %x, error %v", data, err)
	}
}
