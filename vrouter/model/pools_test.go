package model

import (
	"fmt"
	"net/netip"
	"testing"

	"windtunnel/internal/must"
)

func TestARangeIsReadAsItIsWritten(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.0.10-10.1.0.99": "10.1.0.10-10.1.0.99",
		"10.1.0.16/28":        "10.1.0.16-10.1.0.31",
		"10.1.0.5":            "10.1.0.5",
		"fd00::/126":          "fd00::-fd00::3",
	} {
		r, err := ParseRange(text)
		if err != nil || r.String() != want {
			t.Errorf("ParseRange(%q) is %v (%v), want %s", text, r, err, want)
		}
		if again, err := ParseRange(r.String()); err != nil || again != r {
			t.Errorf("%q written and read again: %v, %v", text, again, err)
		}
	}
	for _, text := range []string{"", "x", "10.1.0.9-10.1.0.1", "10.1.0.1-fd00::1", "10.1.0.1-", "fe80::1%eth0"} {
		if r, err := ParseRange(text); err == nil {
			t.Errorf("%q was taken for %v", text, r)
		}
	}
}

func TestPoolsAreTheAddressesThatPortsCanHave(t *testing.T) {
	n := Network{Subnets: prefixes("10.1.0.0/29", "10.2.0.0/24", "fd00::/126")}
	for _, c := range []struct {
		ranges, within string
		four           bool
		want           string
	}{
		{"", "", true, "[10.1.0.2-10.1.0.6 10.2.0.2-10.2.0.254]"},
		{"", "", false, "[fd00::2-fd00::3]"},
		{"10.2.0.100-10.2.0.199", "", true, "[10.2.0.100-10.2.0.199]"},
		{"10.2.0.100-10.2.0.199", "", false, "[fd00::2-fd00::3]"},
		{"", "10.2.0.0/25", true, "[10.2.0.2-10.2.0.127]"},
		{"10.2.0.100-10.2.0.199", "10.2.0.128/25", true, "[10.2.0.128-10.2.0.199]"},
		{"", "10.9.0.0/16", true, "[]"},
	} {
		n.Ranges = nil
		if c.ranges != "" {
			r := must.Get(ParseRange(c.ranges))(t)
			n.Ranges = []Range{r}
		}
		var within []Range
		if c.within != "" {
			within = []Range{RangeOf(netip.MustParsePrefix(c.within))}
		}
		family := netip.Addr.Is6
		if c.four {
			family = netip.Addr.Is4
		}
		if got := fmt.Sprint(Pools(n, within, family)); got != c.want {
			t.Errorf("ranges %q within %q: %s, want %s", c.ranges, c.within, got, c.want)
		}
	}
}
