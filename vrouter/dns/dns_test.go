package dns

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"windtunnel/internal/must"
)

func query(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 4711, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	packed := must.Get(m.Pack())(t)
	return packed
}

// resolver returns a forwarder to a name server on loopback that answers each query with n addresses. Before
// that, the server sends answers with another id or question, which the forwarder must ignore.
func resolver(t testing.TB, n int) *Forwarder {
	t.Helper()
	server := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { server.Close() })
	go func() {
		for buffer := make([]byte, 4096); ; {
			size, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:size]) != nil {
				continue
			}
			m.Response = true
			for i := range n {
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, byte(i + 1)}}})
			}
			q := m.Questions[0]
			forged := []dnsmessage.Message{
				{Header: dnsmessage.Header{ID: m.ID + 1, Response: true}, Questions: m.Questions},
				{Header: m.Header, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("example.org."), Type: q.Type, Class: q.Class}}},
				{Header: m.Header, Questions: []dnsmessage.Question{{Name: q.Name, Type: dnsmessage.TypeMX, Class: q.Class}}},
			}
			for _, answer := range append(forged, m) {
				packed, _ := answer.Pack()
				server.WriteTo(packed, from)
			}
		}
	}()
	return &Forwarder{
		Resolvers: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
		Dial: func(context.Context, netip.Addr) (net.Conn, error) {
			return net.Dial("udp", server.LocalAddr().String())
		},
	}
}

func testZone() Zone {
	return Zone{Name: "Red", Port: func(name string) ([]netip.Addr, bool) {
		return []netip.Addr{netip.MustParseAddr("10.7.0.10"), netip.MustParseAddr("fd07::10")}, name == "web.1"
	}}
}

func TestNamesOfPortsAndOthers(t *testing.T) {
	f := resolver(t, 2)
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"web.1.red.", dnsmessage.TypeA, "RCodeSuccess 10.7.0.10"},
		{"WEB.1.RED.", dnsmessage.TypeAAAA, "RCodeSuccess fd07::10"},
		{"web.1.red.", dnsmessage.TypeALL, "RCodeSuccess 10.7.0.10 fd07::10"},
		{"web.1.red.", dnsmessage.TypeMX, "RCodeSuccess"},
		{"red.", dnsmessage.TypeA, "RCodeSuccess"},
		{"web2.red.", dnsmessage.TypeA, "RCodeNameError"},
		{"example.net.", dnsmessage.TypeA, "RCodeSuccess 192.0.2.1 192.0.2.2"},
		{"web1.blue.", dnsmessage.TypeA, "RCodeSuccess 192.0.2.1 192.0.2.2"}, // the name of a port in another network
	} {
		var m dnsmessage.Message
		must.Succeed(t, m.Unpack(f.Answer(t.Context(), query(t, c.name, c.kind), testZone(), 1200)))
		got := []string{m.RCode.String()}
		for _, a := range m.Answers {
			switch b := a.Body.(type) {
			case *dnsmessage.AResource:
				got = append(got, netip.AddrFrom4(b.A).String())
			case *dnsmessage.AAAAResource:
				got = append(got, netip.AddrFrom16(b.AAAA).String())
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" || m.ID != 4711 || !m.Response || len(m.Questions) != 1 {
			t.Errorf("the answer about %s %s has the header %+v, and %d questions; addresses: %s", c.name, c.kind, m.Header, len(m.Questions), diff)
		}
	}
}

func TestAnswersThatDoNotFitAreTruncated(t *testing.T) {
	for _, c := range []struct {
		addresses, size int
		truncated       bool
	}{{100, 1200, true}, {500, 8900, false}, {600, 8900, true}} {
		answer := resolver(t, c.addresses).Answer(t.Context(), query(t, "example.net.", dnsmessage.TypeA), testZone(), c.size)
		var m dnsmessage.Message
		must.Succeed(t, m.Unpack(answer))
		want := c.addresses
		if c.truncated {
			want = 0
		}
		if m.Truncated != c.truncated || len(m.Answers) != want || len(answer) > c.size || m.ID != 4711 {
			t.Errorf("the answer with %d addresses, of at most %d bytes, has %d bytes, %d addresses, and the header %+v; want truncated %v", c.addresses, c.size, len(answer), len(m.Answers), m.Header, c.truncated)
		}
	}
}

func TestLongAnswersAboutPortsAreTruncated(t *testing.T) {
	var m dnsmessage.Message
	answer := new(Forwarder).Answer(t.Context(), query(t, "web.1.red.", dnsmessage.TypeALL), testZone(), 50)
	if must.Succeed(t, m.Unpack(answer)); !m.Truncated || len(m.Answers) > 0 || len(answer) > 50 {
		t.Errorf("the answer of at most 50 bytes has %d bytes, %d addresses, and the header %+v", len(answer), len(m.Answers), m.Header)
	}
}

func TestOtherMessagesThanQueries(t *testing.T) {
	message := func(change func(m *dnsmessage.Message)) []byte {
		var m dnsmessage.Message
		must.Succeed(t, m.Unpack(query(t, "web.1.red.", dnsmessage.TypeA)))
		change(&m)
		packed := must.Get(m.Pack())(t)
		return packed
	}
	for name, c := range map[string]struct {
		message []byte
		want    string // error code of the answer
	}{
		"an answer":     {message(func(m *dnsmessage.Message) { m.Response = true }), "none"},
		"no DNS":        {[]byte("x"), "none"},
		"no question":   {message(func(m *dnsmessage.Message) { m.Questions = nil }), "RCodeFormatError"},
		"two questions": {message(func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions...) }), "RCodeFormatError"},
		"an update":     {message(func(m *dnsmessage.Message) { m.OpCode = 5 }), "RCodeNotImplemented"},
	} {
		got := "none"
		if answer := new(Forwarder).Answer(t.Context(), c.message, testZone(), 1200); answer != nil {
			var m dnsmessage.Message
			must.Succeed(t, m.Unpack(answer))
			got = m.RCode.String()
		}
		if got != c.want {
			t.Errorf("%s: the answer has the code %s, want %s", name, got, c.want)
		}
	}
}

func TestQueriesWithoutAResolverFail(t *testing.T) {
	f := &Forwarder{Resolvers: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Dial: func(context.Context, netip.Addr) (net.Conn, error) { return net.Dial("udp", "127.0.0.1:1") }}
	var m dnsmessage.Message
	if must.Succeed(t, m.Unpack(f.Answer(t.Context(), query(t, "example.net.", dnsmessage.TypeA), testZone(), 1200))); m.RCode != dnsmessage.RCodeServerFailure {
		t.Errorf("the answer has the header %+v, want ServerFailure", m.Header)
	}
}

// The queries of workloads are hostile input.
func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "web.1.red.", dnsmessage.TypeA))
	f.Add(query(f, "example.net.", dnsmessage.TypeA))
	forwarder := &Forwarder{Resolvers: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Dial: func(context.Context, netip.Addr) (net.Conn, error) { return nil, net.ErrClosed }}
	f.Fuzz(func(t *testing.T, data []byte) {
		answer := forwarder.Answer(context.Background(), data, testZone(), 1200)
		var p dnsmessage.Parser
		if answer == nil {
			return
		}
		if h, err := p.Start(answer); err != nil || !h.Response || len(answer) > 1200 {
			t.Errorf("the answer is %x: %v", answer, err)
		}
	})
}
