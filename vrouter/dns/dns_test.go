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
	packed, err := m.Pack()
	must.Succeed(t, err)
	return packed
}

// resolver is a name server on loopback that answers each query with n addresses.
func resolver(t testing.TB, n int) *Forwarder {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { server.Close() })
	go func() {
		for buffer := make([]byte, most); ; {
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
			forged := m
			forged.ID++
			forged.Answers = nil
			for _, answer := range []dnsmessage.Message{forged, m} { // the first one must be ignored
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
		{"web1.blue.", dnsmessage.TypeA, "RCodeSuccess 192.0.2.1 192.0.2.2"}, // another network's names are not known here
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
			t.Errorf("%s %s: %+v %s", c.name, c.kind, m.Header, diff)
		}
	}
}

func TestAnswersThatDoNotFitAreTruncated(t *testing.T) {
	var m dnsmessage.Message
	answer := resolver(t, 100).Answer(t.Context(), query(t, "example.net.", dnsmessage.TypeA), testZone(), 1200)
	if must.Succeed(t, m.Unpack(answer)); !m.Truncated || len(m.Answers) > 0 || len(answer) > 1200 || m.ID != 4711 {
		t.Errorf("%d bytes: %+v", len(answer), m.Header)
	}
}

func TestQueriesWithoutAResolverFail(t *testing.T) {
	f := &Forwarder{Resolvers: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Dial: func(context.Context, netip.Addr) (net.Conn, error) { return net.Dial("udp", "127.0.0.1:1") }}
	var m dnsmessage.Message
	if must.Succeed(t, m.Unpack(f.Answer(t.Context(), query(t, "example.net.", dnsmessage.TypeA), testZone(), 1200))); m.RCode != dnsmessage.RCodeServerFailure {
		t.Errorf("%+v", m.Header)
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
