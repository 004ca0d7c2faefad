package bgp

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// raw is a neighbour that sends bytes of the test's choice.
type raw struct {
	net.Conn
	t       *testing.T
	speaker *end
}

// connect establishes a session from the address of b with a, for VPNv4.
func connect(t *testing.T, a, b *end) *raw {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: b.node.Underlay[0].AsSlice()}, Timeout: 10 * time.Second}
	limit := time.Now().Add(60 * time.Second)
	for {
		c, err := d.Dial("tcp", netip.AddrPortFrom(a.node.Underlay[0], a.node.BGP.Port).String())
		must.Succeed(t, err)
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(limit)
		r := &raw{c, t, a}
		open, err := bgp.NewBGPOpenMessage(64512, 90, b.node.BGP.RouterID, []bgp.OptionParameterInterface{bgp.NewOptionParameterCapability([]bgp.ParameterCapabilityInterface{
			bgp.NewCapMultiProtocol(bgp.RF_IPv4_VPN), bgp.NewCapFourOctetASNumber(64512),
		})})
		must.Succeed(t, err)
		for kind := uint8(0); err == nil; kind, _, err = r.read() {
			switch kind {
			case 0:
				r.send(open)
			case bgp.BGP_MSG_OPEN:
				r.send(bgp.NewBGPKeepAliveMessage())
			case bgp.BGP_MSG_KEEPALIVE:
				a.await(t, "the session is established", func() bool { return a.state() == "established" })
				return r
			}
		}
		if time.Now().After(limit) { // a speaker refuses connections for a while after it has ended a session
			t.Fatalf("no session with %s: %v; its log is\n%s", a.node.Name, err, a.log.String())
		}
	}
}

// send sends a message.
func (r *raw) send(m *bgp.BGPMessage) {
	r.t.Helper()
	b, err := m.Serialize()
	must.Succeed(r.t, err)
	r.write(b)
}

func (r *raw) write(b []byte) {
	r.t.Helper()
	if _, err := r.Write(b); err != nil {
		r.t.Fatalf("%v; the log of the speaker is\n%s", err, r.speaker.log.String())
	}
}

// read returns the type and the body of the next message.
func (r *raw) read() (kind uint8, body []byte, err error) {
	header := make([]byte, bgp.BGP_HEADER_LENGTH)
	if _, err := io.ReadFull(r, header); err != nil {
		return 0, nil, err
	}
	body = make([]byte, int(binary.BigEndian.Uint16(header[16:]))-len(header))
	_, err = io.ReadFull(r, body)
	return header[18], body, err
}

// update sends an UPDATE message with path attributes.
func (r *raw) update(attributes ...[]byte) {
	r.t.Helper()
	all := slices.Concat(attributes...)
	b := slices.Concat(slices.Repeat([]byte{0xff}, 16), make([]byte, 7), all)
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)))
	b[18] = bgp.BGP_MSG_UPDATE
	binary.BigEndian.PutUint16(b[21:], uint16(len(all)))
	r.write(b)
}

// attribute returns a path attribute.
func attribute(flags bgp.BGPAttrFlag, kind bgp.BGPAttrType, value ...byte) []byte {
	return append([]byte{byte(flags), byte(kind), byte(len(value))}, value...)
}

// Attributes of a path to 10.9.N.0/24 that a speaker uses.
var (
	origin     = attribute(bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_ORIGIN, 0)
	asPath     = attribute(bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_AS_PATH)
	preference = attribute(bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_LOCAL_PREF, 0, 0, 0, 100)
	targets    = attribute(bgp.BGP_ATTR_FLAG_OPTIONAL|bgp.BGP_ATTR_FLAG_TRANSITIVE, bgp.BGP_ATTR_TYPE_EXTENDED_COMMUNITIES, 0, 2, 0xfc, 0, 0, 0, 0, 1)
)

// reach returns the attribute MP_REACH_NLRI of a VPNv4 path to 10.9.n.0/24 with label 300.
func reach(n byte) []byte {
	return attribute(bgp.BGP_ATTR_FLAG_OPTIONAL, bgp.BGP_ATTR_TYPE_MP_REACH_NLRI,
		0, 1, 128, 12, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 254, 0,
		24+64+24, 0, 0x12, 0xc1, 0, 0, 0xfc, 0, 0, 0, 0, 1, 10, 9, n)
}

// A malformed UPDATE message withdraws its routes, or loses the attribute, or ends the session, as RFC 7606 says. The
// other routes of the neighbour stay unless the session ends. The state of the neighbour has the reason.
func TestMalformedUpdatesAreHandledByTheirKind(t *testing.T) {
	const optional, transitive = bgp.BGP_ATTR_FLAG_OPTIONAL, bgp.BGP_ATTR_FLAG_TRANSITIVE
	withdraws, ignores, ends := []byte{2, 3}, []byte{1, 2, 3}, []byte(nil)
	short := reach(1)
	short[len(short)-15] = 24 + 64 + 32 // the prefix has only 3 bytes
	for name, c := range map[string]struct {
		attributes [][]byte
		stay       []byte // N of the prefixes 10.9.N.0/24
		reason     string
	}{
		"an unknown origin":                {[][]byte{reach(1), attribute(transitive, bgp.BGP_ATTR_TYPE_ORIGIN, 9), asPath, preference, targets}, withdraws, "a malformed UPDATE message: invalid origin attribute. value : 9; its routes are withdrawn"},
		"an origin of 2 bytes":             {[][]byte{reach(1), attribute(transitive, bgp.BGP_ATTR_TYPE_ORIGIN, 0, 0), asPath, preference, targets}, withdraws, "a malformed UPDATE message: Origin attribute length is incorrect; its routes are withdrawn"},
		"no origin":                        {[][]byte{reach(1), asPath, preference, targets}, withdraws, "a malformed UPDATE message: well-known mandatory attributes are not present. type : 1; its routes are withdrawn"},
		"no AS path":                       {[][]byte{reach(1), origin, preference, targets}, withdraws, "a malformed UPDATE message: well-known mandatory attributes are not present. type : 2; its routes are withdrawn"},
		"an AS path segment that is short": {[][]byte{reach(1), origin, attribute(transitive, bgp.BGP_ATTR_TYPE_AS_PATH, 2, 9, 0, 0), preference, targets}, withdraws, "a malformed UPDATE message: seg length is short; its routes are withdrawn"},
		"a local preference of 3 bytes":    {[][]byte{reach(1), origin, asPath, attribute(transitive, bgp.BGP_ATTR_TYPE_LOCAL_PREF, 0, 0, 1), targets}, withdraws, "a malformed UPDATE message: local pref length isn't correct; its routes are withdrawn"},
		"a cut extended community":         {[][]byte{reach(1), origin, asPath, preference, attribute(optional|transitive, bgp.BGP_ATTR_TYPE_EXTENDED_COMMUNITIES, 0, 2, 0xfc, 0, 0)}, withdraws, "a malformed UPDATE message: extendedcommunities length isn't correct; its routes are withdrawn"},
		"an aggregator of 3 bytes":         {[][]byte{reach(1), origin, asPath, preference, targets, attribute(optional|transitive, bgp.BGP_ATTR_TYPE_AGGREGATOR, 0, 0, 1)}, ignores, "a malformed UPDATE message: aggregator length isn't correct; the attribute is ignored"},
		"an unknown optional attribute":    {[][]byte{reach(1), origin, asPath, preference, targets, attribute(optional|transitive, 200, 1, 2, 3)}, ignores, ""},
		"a prefix that is short":           {[][]byte{short, origin, asPath, preference, targets}, ends, "notification-sent code 3(update) subcode 10(invalid network field)"},
		"a next hop of 3 bytes":            {[][]byte{attribute(optional, bgp.BGP_ATTR_TYPE_MP_REACH_NLRI, 0, 1, 128, 3, 10, 0, 0, 0), origin, asPath, preference, targets}, ends, "notification-sent code 3(update) subcode 5(attribute length error)"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, func(a, _ *model.BGP) { a.Families = []model.BGPFamily{model.VPNv4} })
			a.start(t, nil, nil)
			r := connect(t, a, b)
			has := func(want []byte) func() bool {
				return func() bool {
					var got []byte
					for _, p := range a.Received() {
						got = append(got, p.Prefix.Addr().As4()[2])
					}
					return slices.Equal(got, want)
				}
			}
			for n := byte(1); n <= 2; n++ {
				r.update(reach(n), origin, asPath, preference, targets)
			}
			a.await(t, "a has two paths", has([]byte{1, 2}))
			r.update(c.attributes...)
			if c.stay != nil {
				r.update(reach(3), origin, asPath, preference, targets)
			}
			a.await(t, fmt.Sprint("a has the paths to 10.9.N.0/24 for N of ", c.stay), has(c.stay))
			if c.stay == nil {
				for {
					kind, body, err := r.read()
					must.Succeed(t, err)
					if kind == bgp.BGP_MSG_NOTIFICATION {
						if body[0] != bgp.BGP_ERROR_UPDATE_MESSAGE_ERROR {
							t.Errorf("the session ends with code %d, want %d (UPDATE message error)", body[0], bgp.BGP_ERROR_UPDATE_MESSAGE_ERROR)
						}
						break
					}
				}
			}
			var n Neighbor
			a.await(t, "a has the state of its neighbour", func() bool {
				all, err := a.Neighbors()
				must.Succeed(t, err)
				n = all[0]
				return c.reason == "" || n.Reason+n.Malformed != ""
			})
			if up := n.State == "established"; up != (c.stay != nil) || !strings.HasPrefix(n.Reason+n.Malformed, c.reason) || c.reason == "" && n.Malformed != "" {
				t.Errorf("the session is %s, with reason %q and the malformed message %q; want the reason %q", n.State, n.Reason, n.Malformed, c.reason)
			}
		})
	}
}
