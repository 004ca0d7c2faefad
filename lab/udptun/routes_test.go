package udptun

import (
	"net/netip"
	"strings"
	"testing"
)

func routes(t *testing.T, texts ...string) []Route {
	t.Helper()
	var list []Route
	for _, text := range texts {
		r, err := ParseRoute(text)
		if err != nil {
			t.Fatal(err)
		}
		if r.String() != text {
			t.Errorf("%q is written back as %q", text, r)
		}
		list = append(list, r)
	}
	return list
}

func TestTheLongestPrefixDecides(t *testing.T) {
	table, err := NewRoutes(routes(t,
		"10.0.0.0/8=192.0.2.1:8285", "10.5.1.0/24=192.0.2.2:8285", "10.5.1.7/32=192.0.2.3:8285",
		"fd00::/8=[2001:db8::1]:8285", "fd05:1::/64=[2001:db8::2]:8285"))
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"10.9.9.9":       "192.0.2.1:8285",
		"10.5.1.6":       "192.0.2.2:8285",
		"10.5.1.7":       "192.0.2.3:8285",
		"10.5.2.7":       "192.0.2.1:8285",
		"11.0.0.1":       "",
		"fd05:2::1":      "[2001:db8::1]:8285",
		"fd05:1::1":      "[2001:db8::2]:8285",
		"2001:db8::1":    "",
		"::ffff:a05:107": "", // no IPv4 address, though it holds one
	} {
		peer, ok := table.Lookup(netip.MustParseAddr(address))
		if ok != (want != "") || ok && peer.String() != want {
			t.Errorf("%s lies behind %v (%v), want %q", address, peer, ok, want)
		}
	}
	if len(table.Peers()) != 5 || !table.Knows(netip.MustParseAddrPort("192.0.2.3:8285")) {
		t.Errorf("peers %v", table.Peers())
	}
	if table.Knows(netip.MustParseAddrPort("192.0.2.3:8286")) {
		t.Error("another port passes for a peer")
	}
}

func TestADefaultRouteHoldsEverythingOfItsVersion(t *testing.T) {
	table, err := NewRoutes(routes(t, "0.0.0.0/0=192.0.2.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := table.Lookup(netip.MustParseAddr("203.0.113.9")); !ok {
		t.Error("an IPv4 address has no route")
	}
	if _, ok := table.Lookup(netip.MustParseAddr("2001:db8::9")); ok {
		t.Error("an IPv6 address has IPv4's route")
	}
}

func TestAWrongRouteIsToldWithItsRemedy(t *testing.T) {
	for text, say := range map[string]string{
		"":                                "PREFIX=ADDRESS:PORT",
		"10.5.1.0/24":                     "PREFIX=ADDRESS:PORT",
		"10.5.1.0=192.0.2.2:8285":         "the network",
		"10.5.1.0/33=192.0.2.2:8285":      "the network",
		"10.5.1.0/24=192.0.2.2":           "the peer",
		"10.5.1.0/24=192.0.2.2:70000":     "the peer",
		"10.5.1.0/24=192.0.2.2:0":         "cannot be sent to this peer",
		"10.5.1.0/24=0.0.0.0:8285":        "cannot be sent to this peer",
		"10.5.1.0/24=224.0.0.1:8285":      "cannot be sent to this peer",
		"10.5.1.9/24=192.0.2.2:8285":      "write 10.5.1.0/24",
		"::ffff:a05:100/120=192.0.2.2:82": "::ffff",
	} {
		if _, err := ParseRoute(text); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v, want %q", text, err, say)
		}
	}
	if _, err := NewRoutes(nil); err == nil {
		t.Error("a table without routes is taken")
	}
	if _, err := NewRoutes([]Route{{}}); err == nil {
		t.Error("an empty route is taken")
	}
	_, err := NewRoutes(routes(t, "10.5.1.0/24=192.0.2.2:8285", "10.5.1.0/24=192.0.2.3:8285"))
	if err == nil || !strings.Contains(err.Error(), "192.0.2.2:8285 and 192.0.2.3:8285") {
		t.Errorf("one network behind two peers: %v", err)
	}
}

func FuzzParseRoute(f *testing.F) {
	f.Add("10.5.1.0/24=192.0.2.2:8285")
	f.Add("fd05:1::/64=[2001:db8::2]:8285")
	f.Add("0.0.0.0/0=[fe80::1%eth0]:1")
	f.Add("=")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRoute(text)
		if err != nil {
			return
		}
		table, err := NewRoutes([]Route{r})
		if err != nil {
			t.Fatalf("%q parses and is refused: %v", text, err)
		}
		if peer, ok := table.Lookup(r.To.Addr()); !ok || peer != r.Peer {
			t.Errorf("%q: its first address lies behind %v", text, peer)
		}
		again, err := ParseRoute(r.String())
		if err != nil || again != r {
			t.Errorf("%q is written as %q, which reads as %v (%v)", text, r, again, err)
		}
	})
}
