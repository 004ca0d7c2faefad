package inspect

import (
	"net/netip"
	"testing"

	"windtunnel/internal/must"
)

func TestMatchCovers(t *testing.T) {
	v4 := Flow{Protocol: 6, Local: addrPort("10.0.0.3:80"), Remote: addrPort("10.0.0.4:51820")}
	v6 := Flow{Protocol: 17, Local: addrPort("[2001:db8::3]:5353"), Remote: addrPort("[2001:db8::4]:53")}
	for _, c := range []struct {
		match  string
		v4, v6 bool
	}{
		{"10.0.0.3", true, false},
		{"10.0.0.4:51820", true, false},
		{"10.0.0.4:80", false, false}, // the port is the other end's
		{"10.0.0.0/24", true, false},
		{"10.0.0.9/24:80", true, false},
		{":80", true, false},
		{":53", false, true},
		{"10.0.0.4,10.0.0.3:80", true, false},
		{"10.0.0.3,10.0.0.3", false, false}, // one end cannot be both
		{"[2001:db8::4]:53,2001:db8::/32", false, true},
		{"2001:db8::3", false, true},
		{"::/0", false, true},
		{"::ffff:10.0.0.3", true, false},
		{"&proto udp", false, true},
		{"10.0.0.3 & proto tcp", true, false},
		{"10.0.0.3&proto udp", false, false},
	} {
		m, err := ParseMatch(c.match)
		if err != nil {
			t.Errorf("parse the match %q: %v", c.match, err)
			continue
		}
		if got := m.Covers(v4); got != c.v4 {
			t.Errorf("%q covers the IPv4 flow: %v", c.match, got)
		}
		if got := m.Covers(v6); got != c.v6 {
			t.Errorf("%q covers the IPv6 flow: %v", c.match, got)
		}
	}
}

func TestErrorsOfParseMatchHaveTheReason(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "has no end and no protocol",
		"10.0.0.300":               "neither an address nor a prefix",
		"10.0.0.1:0":               "a port is a number from 1 to 65535",
		"10.0.0.1:http":            "a port is a number",
		"[2001:db8::1]80":          "write :PORT after the bracket",
		"10.0.0.1,10.0.0.2,:3":     "it has 3 ends, a flow has two",
		"10.0.0.1&vrf 3":           `write "proto NAME" after &`,
		"10.0.0.1&proto quic":      `"quic" is not a protocol`,
		"10.0.0.1,":                "neither an address nor a prefix",
		"fe80::1%eth0":             "neither an address nor a prefix",
		"10.0.0.1:80:90":           "neither an address nor a prefix",
		"&proto 256":               `"256" is not a protocol`,
		"[2001:db8::1]:":           "a port is a number",
		"10.0.0.0/33":              "neither an address nor a prefix",
		"10.0.0.1 & proto tcp udp": `"tcp udp" is not a protocol`,
		"10.0.0.1:-1":              "a port is a number",
		"10.0.0.1:65536":           "a port is a number",
		" & ":                      `write "proto NAME" after &`,
		"[10.0.0.1":                "neither an address nor a prefix",
	} {
		_, err := ParseMatch(text)
		must.Fail(t, err, want)
	}
}

func FuzzParseMatch(f *testing.F) {
	for _, s := range []string{"10.0.0.1:80", "[::1]:1,:2&proto 6", "&proto icmp6", "::/0", "[", ":", "a,b&", "10.0.0.0/8:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMatch(s)
		if err != nil {
			return
		}
		if len(m.Ends) > 2 || len(m.Ends) == 0 && m.Protocol == nil {
			t.Fatalf("the match %q is %+v, want 1 or 2 ends, or a protocol", s, m)
		}
		// A flow made of the ends asked for is covered.
		flow := Flow{Local: m.endOf(0), Remote: m.endOf(1)}
		if m.Protocol != nil {
			flow.Protocol = *m.Protocol
		}
		if !m.Covers(flow) {
			t.Fatalf("%q does not cover %+v", s, flow)
		}
	})
}

func (m Match) endOf(i int) netip.AddrPort {
	a := addr("192.0.2.1")
	if i >= len(m.Ends) {
		return netip.AddrPortFrom(a, 1)
	}
	if m.Ends[i].Prefix.IsValid() {
		a = m.Ends[i].Prefix.Addr()
	}
	return netip.AddrPortFrom(a, max(m.Ends[i].Port, 1))
}
