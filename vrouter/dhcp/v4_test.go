package dhcp

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"

	"windtunnel/internal/lists"
	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

func prefixes(texts ...string) []netip.Prefix {
	return lists.Map(texts, netip.MustParsePrefix)
}

func testLease() *Lease {
	return &Lease{
		MAC: model.MAC{2, 0, 0, 0, 7, 10}, Addresses: prefixes("10.7.0.10/24", "fd07::10/64"), Gateways: []netip.Addr{netip.MustParseAddr("10.7.0.1"), netip.MustParseAddr("fd07::1")},
		Subnets: prefixes("10.7.0.0/24", "10.8.0.0/16", "fd07::/64"), MTU: 1450, Name: "web1", Network: "red", DHCP: true, DNS: []netip.Addr{netip.MustParseAddr("10.7.0.2"), netip.MustParseAddr("fd07::2")},
	}
}

// answerTo parses a frame and returns the frame that answers it.
func (l *Lease) answerTo(data []byte) ([]byte, error) {
	f, ok := parse(data)
	if !ok {
		return nil, nil
	}
	return l.answer(f)
}

// exchange4 sends a DHCPv4 message to the server of a lease and returns its answer.
func exchange4(t *testing.T, l *Lease, from, to string, m *dhcpv4.DHCPv4) (*dhcpv4.DHCPv4, frame, error) {
	t.Helper()
	request := must.Get(udp(l.MAC, netip.AddrPortFrom(netip.MustParseAddr(from), 68), netip.AddrPortFrom(netip.MustParseAddr(to), 67), m.ToBytes()))(t)
	copy(request[6:], l.MAC[:])
	data, err := l.answerTo(request)
	if err != nil || data == nil {
		return nil, frame{}, err
	}
	f, ok := parse(data)
	if !ok || f.from != netip.MustParseAddr("10.7.0.1") || f.ports != [2]uint16{67, 68} || f.mac != model.RouterMAC {
		t.Errorf("the answer has the frame %+v, want one from 10.7.0.1 port 67 to port 68", f)
	}
	answer := must.Get(dhcpv4.FromBytes(f.payload))(t)
	return answer, f, nil
}

func message(t *testing.T, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	mac := testLease().MAC
	m := must.Get(dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(mac[:]), dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover)}, change...)...))(t)
	return m
}

func TestAClientGetsItsPortsAddress(t *testing.T) {
	l := testLease()
	discover := message(t)
	offer, f, err := exchange4(t, l, "0.0.0.0", "255.255.255.255", discover)
	must.Succeed(t, err)
	request, err := dhcpv4.NewRequestFromOffer(offer)
	must.Succeed(t, err)
	if offer.MessageType() != dhcpv4.MessageTypeOffer || f.to != netip.MustParseAddr("10.7.0.10") {
		t.Errorf("the answer to a discover, sent to %s: %s", f.to, offer.Summary())
	}
	ack, _, err := exchange4(t, l, "0.0.0.0", "255.255.255.255", request)
	must.Succeed(t, err)
	mtu, err := dhcpv4.GetUint16(dhcpv4.OptionInterfaceMTU, ack.Options)
	must.Succeed(t, err)
	var routes []string
	for _, r := range ack.ClasslessStaticRoute() {
		routes = append(routes, r.Dest.String()+" "+r.Router.String())
	}
	got := []any{ack.MessageType().String(), ack.YourIPAddr.String(), net.IP(ack.SubnetMask()).String(), ack.Router()[0].String(), ack.ServerIdentifier().String(), mtu, ack.IPAddressLeaseTime(0), ack.HostName(), ack.DNS()[0].String(), ack.DomainName(), routes}
	want := []any{"ACK", "10.7.0.10", "255.255.255.0", "10.7.0.1", "10.7.0.1", uint16(1450), leaseTime, "web1", "10.7.0.2", "red", []string{"0.0.0.0/0 10.7.0.1", "10.8.0.0/16 10.7.0.1"}}
	must.Equal(t, want, got)
	renew := message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithClientIP(ack.YourIPAddr))
	for _, to := range []string{"10.7.0.1", "255.255.255.255"} { // renew, rebind
		if again, f, err := exchange4(t, l, "10.7.0.10", to, renew); err != nil || again.MessageType() != dhcpv4.MessageTypeAck || f.to.String() != "10.7.0.10" {
			t.Errorf("the answer to a renewal at %s: %v, sent to %s, error %v", to, again, f.to, err)
		}
	}
	renew.SetBroadcast()
	if _, f, err := exchange4(t, l, "10.7.0.10", "10.7.0.1", renew); err != nil || f.to.String() != "10.7.0.10" {
		t.Errorf("the answer to a renewal with the broadcast flag is sent to %s, error %v; want 10.7.0.10", f.to, err)
	}
	inform := message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeInform), dhcpv4.WithClientIP(ack.YourIPAddr))
	if answer, _, err := exchange4(t, l, "10.7.0.10", "10.7.0.1", inform); err != nil || !answer.YourIPAddr.IsUnspecified() || answer.IPAddressLeaseTime(0) != 0 || len(answer.Router()) != 1 {
		t.Errorf("the answer to an inform: %v, error %v", answer, err)
	}
	discover.SetBroadcast()
	if _, f, err := exchange4(t, l, "0.0.0.0", "255.255.255.255", discover); err != nil || f.to.String() != "255.255.255.255" {
		t.Errorf("the answer to a client with the broadcast flag is sent to %s, error %v", f.to, err)
	}
}

// A client that asks for another address gets a NAK, so it starts again.
func TestAWrongAddressIsRefused(t *testing.T) {
	for name, m := range map[string]*dhcpv4.DHCPv4{
		"asks":   message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IP{10, 7, 0, 11}))),
		"renews": message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithClientIP(net.IP{10, 9, 0, 1})),
		"empty":  message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest)),
	} {
		nak, f, err := exchange4(t, testLease(), "0.0.0.0", "255.255.255.255", m)
		if err != nil || nak.MessageType() != dhcpv4.MessageTypeNak || !nak.YourIPAddr.IsUnspecified() || nak.ServerIdentifier() == nil || f.to.String() != "255.255.255.255" {
			t.Errorf("%s: the answer is %v, sent to %s, error %v; want a NAK", name, nak, f.to, err)
		}
	}
}

func TestMessagesWithoutAnAnswerHaveAReason(t *testing.T) {
	other := dhcpv4.WithHwAddr(net.HardwareAddr{2, 0, 0, 0, 7, 99})
	reply := message(t)
	reply.OpCode = dhcpv4.OpcodeBootReply
	six := testLease()
	six.Addresses = six.Addresses[1:]
	for name, c := range map[string]struct {
		lease *Lease
		from  string
		m     *dhcpv4.DHCPv4
		want  Result
	}{
		"another MAC":     {testLease(), "0.0.0.0", message(t, other), foreignMAC},
		"another source":  {testLease(), "10.7.0.77", message(t), foreignAddress},
		"a reply":         {testLease(), "0.0.0.0", reply, notARequest},
		"an offer":        {testLease(), "0.0.0.0", message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeOffer)), notARequest},
		"a relay agent":   {testLease(), "0.0.0.0", message(t, dhcpv4.WithGatewayIP(net.IP{10, 7, 0, 3})), relayed},
		"another server":  {testLease(), "0.0.0.0", message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{10, 7, 0, 3}))), otherServer},
		"declined":        {testLease(), "0.0.0.0", message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeDecline)), declined},
		"informs, wrong":  {testLease(), "10.7.0.10", message(t, dhcpv4.WithMessageType(dhcpv4.MessageTypeInform), dhcpv4.WithClientIP(net.IP{10, 7, 0, 4})), foreignAddress},
		"no IPv4 address": {six, "0.0.0.0", message(t), noAddress},
	} {
		answer, _, err := exchange4(t, c.lease, c.from, "255.255.255.255", c.m)
		var r *refusal
		if answer != nil || !errors.As(err, &r) || r.result != c.want || r.text == "" {
			t.Errorf("%s: the answer is %v, the error %v; want only an error with the result %s", name, answer, err, c.want)
		}
	}
}

// A message needs the port's MAC address as the source of its frame. A DHCPv6 message needs a link-local source.
func TestFramesFromOtherSourcesAreRefused(t *testing.T) {
	l := testLease()
	six := solicit(t).ToBytes()
	for _, c := range []struct {
		from, to string
		mac      model.MAC
		message  []byte
		want     Result
	}{
		{"0.0.0.0:68", "255.255.255.255:67", model.MAC{2, 9}, message(t).ToBytes(), foreignMAC},
		{"[fe80::1234]:546", "[ff02::1:2]:547", model.MAC{2, 9}, six, foreignMAC},
		{"[fd07::10]:546", "[ff02::1:2]:547", l.MAC, six, foreignAddress},
	} {
		data := must.Get(udp(l.MAC, netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to), c.message))(t)
		copy(data[6:], c.mac[:])
		answer, err := l.answerTo(data)
		var r *refusal
		if answer != nil || !errors.As(err, &r) || r.result != c.want {
			t.Errorf("a message from %s with MAC %s: the answer is %x, the error %v; want only an error with the result %s", c.from, c.mac, answer, err, c.want)
		}
	}
}

// A packet is a query only if its source is the port's, and its destination is a DNS address of the network.
func TestQueriesGoToTheDNSAddress(t *testing.T) {
	for _, c := range []struct {
		from, to string
		mac      model.MAC
		want     bool
	}{
		{"10.7.0.10:4000", "10.7.0.2:53", testLease().MAC, true},
		{"[fd07::10]:4000", "[fd07::2]:53", testLease().MAC, true},
		{"10.7.0.10:4000", "10.7.0.1:53", testLease().MAC, false},
		{"10.7.0.11:4000", "10.7.0.2:53", testLease().MAC, false},
		{"10.7.0.10:4000", "10.7.0.2:54", testLease().MAC, false},
		{"10.7.0.10:4000", "10.7.0.2:53", model.MAC{2, 9}, false},
	} {
		data := must.Get(udp(testLease().MAC, netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to), []byte("a query")))(t)
		copy(data[6:], c.mac[:])
		f, ok := parse(data)
		if is := testLease().isQuery(f); !ok || is != c.want || string(f.payload) != "a query" {
			t.Errorf("from %s to %s with MAC %s: isQuery is %v, want %v, for %+v", c.from, c.to, c.mac, is, c.want, f)
		}
	}
}

// A network can have DNS without DHCP.
func TestANetworkWithoutDHCPAnswersNoClient(t *testing.T) {
	l := testLease()
	l.DHCP = false
	if answer, _, err := exchange4(t, l, "0.0.0.0", "255.255.255.255", message(t)); answer != nil || err != nil {
		t.Errorf("the answer is %v, the error %v; want none", answer, err)
	}
}

// The messages of workloads are hostile input: no message may end the agent.
func FuzzAnswer(f *testing.F) {
	l := testLease()
	four := must.Get(dhcpv4.NewDiscovery(l.MAC[:]))(f)
	six := must.Get(dhcpv6.NewSolicit(l.MAC[:]))(f)
	for _, c := range []struct {
		from, to string
		message  []byte
	}{{"0.0.0.0:68", "255.255.255.255:67", four.ToBytes()}, {"[fe80::1234]:546", "[ff02::1:2]:547", six.ToBytes()}} {
		data := must.Get(udp(l.MAC, netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to), c.message))(f)
		copy(data[6:], l.MAC[:])
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		answer, err := l.answerTo(data)
		if answer != nil && err != nil {
			t.Errorf("both an answer of %d bytes and the error %v", len(answer), err)
		}
		if _, ok := parse(answer); answer != nil && !ok {
			t.Errorf("the answer is not a packet: %x", answer)
		}
	})
}
