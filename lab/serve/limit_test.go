package serve

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// Clients that connect and send nothing must not keep others out.
func TestSilentClientsDoNotKeepOthersOut(t *testing.T) {
	_, reader, _, _ := filled(t)
	at, _ := running(t, New(Options{Store: reader}))
	for range mostConnections + 50 {
		c := must.Get(net.Dial("tcp", at[len("http://"):]))(t)
		defer c.Close()
	}
	client := http.Client{Timeout: 5 * time.Second}
	answer := must.Get(client.Get(at + "/api/runs"))(t)
	answer.Body.Close()
}

func TestANewConnectionReplacesTheOldestOfTheClientWithMost(t *testing.T) {
	inner := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer inner.Close()
	l := &limiter{Listener: inner, all: 4, each: 3}
	connect := func(from string) *connection {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		far := must.Get(d.Dial("tcp", inner.Addr().String()))(t)
		t.Cleanup(func() { far.Close() })
		c := must.Get(l.Accept())(t)
		t.Cleanup(func() { c.Close() })
		return c.(*connection)
	}
	open := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range l.open {
			got = append(got, c.client.Addr().String())
		}
		must.Equal(t, want, got)
	}
	first := connect("127.0.0.2")
	connect("127.0.0.3")
	busy := connect("127.0.0.2")
	l.note(busy, http.StateActive)
	connect("127.0.0.2")
	open("127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.2")
	connect("127.0.0.2") // its fourth: replaces its first
	open("127.0.0.3", "127.0.0.2", "127.0.0.2", "127.0.0.2")
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("the replaced connection is open")
	}
	connect("127.0.0.4") // the fifth of all: replaces the oldest of 127.0.0.2 that is not busy
	open("127.0.0.3", "127.0.0.2", "127.0.0.2", "127.0.0.4")
	if l.open[1] != busy {
		t.Error("a connection with a request in progress was replaced")
	}
	l.note(busy, http.StateClosed)
	open("127.0.0.3", "127.0.0.2", "127.0.0.4")
}

func TestAClientIsAnAddressOrAnIPv6Network(t *testing.T) {
	for at, want := range map[string]string{"192.0.2.7": "192.0.2.7/32", "2001:db8::1:2": "2001:db8::/64", "::ffff:192.0.2.7": "192.0.2.7/32"} {
		remote := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(at), 1))
		if got := clientOf(remote).String(); got != want {
			t.Errorf("%s is client %s, want %s", at, got, want)
		}
	}
}
