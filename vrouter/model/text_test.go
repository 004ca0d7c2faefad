package model

import (
	"strings"
	"testing"
)

func FuzzParseMAC(f *testing.F) {
	for _, text := range []string{"", "02:00:00:00:00:01", "02-AB-cd-00-01-02", "0200.0000.0001", "02:00:00:00:00:00:00:01", "02:00-00:00:00:01", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMAC(text)
		if err != nil {
			if !strings.Contains(err.Error(), "is not a MAC address; write six bytes such as 02:00:00:00:00:01") || m != (MAC{}) {
				t.Errorf("ParseMAC(%q) is %s with error %v, want no MAC and an error that shows how to write one", text, m, err)
			}
			return
		}
		if want := strings.ToLower(strings.ReplaceAll(text, "-", ":")); m.String() != want {
			t.Errorf("%q is read as %s", text, m)
		}
		if again, err := ParseMAC(m.String()); err != nil || again != m {
			t.Errorf("%s is written and read as %s, %v", m, again, err)
		}
	})
}

func FuzzRule(f *testing.F) {
	for _, c := range [][2]string{{"", ""}, {"tcp", "80"}, {"UDP", "8000-8080"}, {"256", "0"}, {"-1", "-"}, {"+6", "1-+2"}, {"icmp6", "90-80"}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, protocol, ports string) {
		r := Rule{Protocol: protocol, Ports: ports}
		if n, err := r.ProtocolNumber(); err == nil && (n == 0) != (protocol == "") {
			t.Errorf("protocol %q is %d", protocol, n)
		}
		first, last, err := r.PortRange()
		if err == nil && (last < first || (first == 0) != (ports == "")) {
			t.Errorf("ports %q are %d to %d", ports, first, last)
		}
	})
}
