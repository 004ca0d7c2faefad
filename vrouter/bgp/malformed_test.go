package bgp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/bgp/bgptest"
	"windtunnel/vrouter/model"
)

// connect establishes a session from the address of b with a.
func connect(t *testing.T, a, b *end) *bgptest.Peer {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: b.node.Underlay[0].AsSlice()}, Timeout: 10 * time.Second}
	var r *bgptest.Peer
	a.await(t, "the session is established", func() bool {
		if r == nil {
			c := must.Get(d.Dial("tcp", netip.AddrPortFrom(a.node.Underlay[0], a.node.BGP.Port).String()))(t)
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(60 * time.Second))
			r, _ = bgptest.Open(c, b.node.BGP.RouterID) // the speaker refuses connections until it is ready
		}
		return r != nil && a.state() == "established"
	})
	return r
}

// A malformed UPDATE message withdraws its routes, or loses the attribute, or ends the session, as RFC 7606 says. The
// other routes of the neighbour stay unless the session ends. The state of the neighbour has the reason.
func TestMalformedUpdatesAreHandledByTheirKind(t *testing.T) {
	const optional, transitive = bgp.BGP_ATTR_FLAG_OPTIONAL, bgp.BGP_ATTR_FLAG_TRANSITIVE
	prefix := func(n byte) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, n}), 24) }
	reach := func(n byte) []byte { return bgptest.Reach(router, 300, prefix(n)) }
	attribute, origin, asPath, preference, targets := bgptest.Attribute, bgptest.Origin, bgptest.ASPath, bgptest.Preference, bgptest.Target(1)
	withdraws, ignores, ends := []byte{2, 3}, []byte{1, 2, 3}, []byte(nil)
	short := reach(1)
	short[len(short)-15] = 24 + 64 + 32 // the prefix has only 3 bytes
	for name, c := range map[string]struct {
		attributes [][]byte
		stay       []byte // N of the prefixes 10.9.N.0/24
		reason     string
	}{
		"an unknown origin":                {[][]byte{reach(1), attribute(transitive, bgp.BGP_ATTR_TYPE_ORIGIN, 9), asPath, preference, targets}, withdraws, "invalid origin attribute. value : 9"},
		"an origin of 2 bytes":             {[][]byte{reach(1), attribute(transitive, bgp.BGP_ATTR_TYPE_ORIGIN, 0, 0), asPath, preference, targets}, withdraws, "Origin attribute length is incorrect"},
		"no origin":                        {[][]byte{reach(1), asPath, preference, targets}, withdraws, "well-known mandatory attributes are not present. type : 1"},
		"no AS path":                       {[][]byte{reach(1), origin, preference, targets}, withdraws, "well-known mandatory attributes are not present. type : 2"},
		"an AS path segment that is short": {[][]byte{reach(1), origin, attribute(transitive, bgp.BGP_ATTR_TYPE_AS_PATH, 2, 9, 0, 0), preference, targets}, withdraws, "seg length is short"},
		"a local preference of 3 bytes":    {[][]byte{reach(1), origin, asPath, attribute(transitive, bgp.BGP_ATTR_TYPE_LOCAL_PREF, 0, 0, 1), targets}, withdraws, "local pref length isn't correct"},
		"a cut extended community":         {[][]byte{reach(1), origin, asPath, preference, attribute(optional|transitive, bgp.BGP_ATTR_TYPE_EXTENDED_COMMUNITIES, 0, 2, 0xfc, 0, 0)}, withdraws, "extendedcommunities length isn't correct"},
		"an aggregator of 3 bytes":         {[][]byte{reach(1), origin, asPath, preference, targets, attribute(optional|transitive, bgp.BGP_ATTR_TYPE_AGGREGATOR, 0, 0, 1)}, ignores, "aggregator length isn't correct"},
		"an unknown optional attribute":    {[][]byte{reach(1), origin, asPath, preference, targets, attribute(optional|transitive, 200, 1, 2, 3)}, ignores, ""},
		"a prefix that is short":           {[][]byte{short, origin, asPath, preference, targets}, ends, "notification-sent code 3(update) subcode 10(invalid network field)"},
		"a next hop of 3 bytes":            {[][]byte{attribute(optional, bgp.BGP_ATTR_TYPE_MP_REACH_NLRI, 0, 1, 128, 3, 10, 0, 0, 0), origin, asPath, preference, targets}, ends, "notification-sent code 3(update) subcode 5(attribute length error)"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, func(a, _ *model.BGP) { a.Families = []model.BGPFamily{model.VPNv4} })
			a.start(t, nil, nil)
			r := connect(t, a, b)
			update := func(attributes ...[]byte) {
				t.Helper()
				_, err := r.Write(bgptest.Update(attributes...))
				must.Succeed(t, err)
			}
			await := func(want []byte) {
				t.Helper()
				a.await(t, fmt.Sprint("a has the paths to 10.9.N.0/24 for N of ", want), func() bool {
					var got []byte
					for _, p := range a.Received() {
						got = append(got, p.Prefix.Addr().As4()[2])
					}
					return slices.Equal(got, want)
				})
			}
			for n := byte(1); n <= 2; n++ {
				update(reach(n), origin, asPath, preference, targets)
			}
			await([]byte{1, 2})
			update(c.attributes...)
			if c.stay != nil {
				update(reach(3), origin, asPath, preference, targets)
			}
			await(c.stay)
			for kind := uint8(0); c.stay == nil && kind != bgp.BGP_MSG_NOTIFICATION; {
				var body []byte
				var err error
				kind, body, err = r.Next()
				must.Succeed(t, err)
				if kind == bgp.BGP_MSG_NOTIFICATION && body[0] != bgp.BGP_ERROR_UPDATE_MESSAGE_ERROR {
					t.Errorf("the session ends with code %d, want %d (UPDATE message error)", body[0], bgp.BGP_ERROR_UPDATE_MESSAGE_ERROR)
				}
			}
			var n Neighbor
			a.await(t, "a has the state of its neighbour", func() bool {
				all := must.Get(a.Neighbors())(t)
				n = all[0]
				return c.reason == "" || n.Reason+n.Malformed != ""
			})
			want := c.reason
			switch {
			case slices.Equal(c.stay, withdraws):
				want = "a malformed UPDATE message: " + want + "; its routes are withdrawn"
			case want != "" && c.stay != nil:
				want = "a malformed UPDATE message: " + want + "; the attribute is ignored"
			}
			if up := n.State == "established"; up != (c.stay != nil) || !strings.HasPrefix(n.Reason+n.Malformed, want) || want == "" && n.Malformed != "" || (n.MalformedCount == 1) != (n.Malformed != "") {
				t.Errorf("the session is %s, with reason %q and the malformed message %q; want %q", n.State, n.Reason, n.Malformed, want)
			}
		})
	}
}

// A path whose AS path contains the node's AS withdraws the earlier path to the same prefix (RFC 4271 section 9).
func TestAPathWithTheNodesASWithdrawsTheFormerPath(t *testing.T) {
	a, b := pair(t, func(a, _ *model.BGP) { a.Families = []model.BGPFamily{model.VPNv4} })
	a.start(t, nil, nil)
	r := connect(t, a, b)
	for n, asPath := range [][]byte{
		bgptest.ASPath,
		bgptest.Attribute(bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_AS_PATH, 2, 2, 0, 0, 0xfd, 0xe8, 0, 0, 0xfc, 0), // 65000 64512
		bgptest.ASPath,
	} {
		_, err := r.Write(bgptest.Update(bgptest.Reach(router, 300, netip.MustParsePrefix("10.9.1.0/24")), bgptest.Origin, asPath, bgptest.Preference, bgptest.Target(1)))
		must.Succeed(t, err)
		want := 1 - n%2
		a.await(t, fmt.Sprintf("a has %d paths after update %d", want, n), func() bool { return len(a.Received()) == want })
	}
}
