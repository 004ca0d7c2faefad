package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// translated is a packet as datapath/testdata/translator.py read it.
type translated struct {
	Version, Protocol, Fragments, Length, Network int
	From, To                                      string
	Neutral                                       bool
	SameAsBuilt                                   bool `json:"same_as_built"`
	OuterChecksum                                 bool `json:"outer_checksum"`
	InnerChecksum                                 bool `json:"inner_checksum"`
}

// echoed sends a datagram to an address and returns the answer.
func echoed(t *testing.T, from *workload, to, data string) string {
	t.Helper()
	c, err := from.dial("udp", to)
	must.Succeed(t, err)
	defer c.Close()
	fmt.Fprint(c, data)
	b := make([]byte, 2000)
	c.SetReadDeadline(time.Now().Add(3 * time.Second))
	n, err := c.Read(b)
	if err != nil {
		t.Errorf("read the answer of %s: %v", to, err)
	}
	return string(b[:n])
}

// longLocator returns a prefix of 80 bits that the router routes to the node.
func (n *node) longLocator() netip.Prefix {
	a := n.locator().Addr().As16()
	a[8], a[9] = 0xab, byte(0xc0+n.index)
	return netip.PrefixFrom(netip.AddrFrom16(a), model.LongLocatorBits)
}

// locatorLengths are the lengths of the locators of two nodes.
var locatorLengths = [][2]int{{64, 64}, {64, 80}, {80, 64}, {80, 80}}

// ofLength returns the node's locator with 64 or 80 bits.
func (n *node) ofLength(bits int) netip.Prefix {
	if bits == model.LongLocatorBits {
		return n.longLocator()
	}
	return n.locator()
}

// translator runs the Scapy translator on a node without an agent. The returned function ends
// it and returns the packets that it read.
func translator(t *testing.T, n *node, own, far netip.Prefix) func() []translated {
	t.Helper()
	return scapyPeer[translated](t, n, "../datapath/testdata/translator.py", "fab", own.String(), far.String(), "291", "fd00:1::/96")
}

// A translator of Scapy reads the packets of IPv4 and IPv6 workloads as docs/datapath.md
// describes them, and its answers arrive, for all lengths of locators. IPv6 fragments are
// translated too.
func TestScapyTranslates(t *testing.T) {
	must.Long(t)
	t.Parallel()
	scapy(t)
	b := newBed(t, options{routed: true, bare: 1, offload: "none"})
	peer := b.nodes[1]
	for _, bits := range locatorLengths {
		b.run(fmt.Sprint(bits), func(t *testing.T) {
			b.state.Nodes = b.nodesOf(false, model.Direct, model.VXLAN)
			for i, n := range b.nodes {
				b.state.Nodes[i].Locator = n.ofLength(bits[i])
			}
			b.state.Networks = []model.Network{{Name: "red", ID: 291, VNI: 1001, Subnets: subnets("10.1.0.0/16", "fd00:1::/64")}}
			x := b.workload("x", "red", 0, "10.1.0.10", "fd00:1::10")
			b.state.Ports = append(b.state.Ports, model.Port{Name: "y", Network: "red", Node: peer.name, MAC: model.MAC{2, 0, 0, 0, 0, 9}, IPs: addresses("10.1.0.11", "fd00:1::11")})
			own := b.state.Nodes[1].Locator
			peer.ip("address replace " + own.Addr().Next().String() + "/128 dev lo nodad")
			peer.answerTests(t, own.Addr().Next())
			b.up()
			b.nodes[0].awaitWays("b", "translated", "vxlan")
			ended := translator(t, peer, own, b.state.Nodes[0].Locator)
			for _, c := range []struct {
				to, size string
			}{{"10.1.0.11", "56"}, {"fd00:1::11", "56"}, {"10.1.0.11", "1001"}, {"fd00:1::11", "3001"}} {
				if out, err := x.command("ping", "-c", "2", "-i", "0.3", "-W", "10", "-M", map[bool]string{true: "dont", false: "do"}[c.size == "3001"], "-s", c.size, c.to); err != nil || !strings.Contains(out, " 0% packet loss") {
					t.Errorf("ping of %s with %s bytes: %v\n%s", c.to, c.size, err, out)
				}
			}
			for _, version := range []int{4, 6} {
				to := map[int]string{4: "10.1.0.11:7777", 6: "[fd00:1::11]:7777"}[version]
				if got := echoed(t, x, to, "odd length"+strings.Repeat("-", 101)); got != "odd length"+strings.Repeat("-", 101) {
					t.Errorf("the answer to a datagram by IPv%d is %q", version, got)
				}
			}
			all := ended()
			kinds := map[string]int{}
			for _, p := range all {
				ends := map[int]string{4: "10.1.0.10 10.1.0.11", 6: "fd00:1::10 fd00:1::11"}[p.Version]
				if p.Network != 291 || p.From+" "+p.To != ends || !p.Neutral || !p.SameAsBuilt || !p.OuterChecksum || !p.InnerChecksum {
					t.Errorf("the translator has read %+v, want network 291, addresses %s, and right addresses and checksums", p, ends)
				}
				kinds[fmt.Sprintf("%d/%d/%v", p.Version, p.Protocol, p.Fragments > 1)]++
			}
			for _, kind := range []string{"4/58/false", "6/58/false", "6/58/true", "4/17/false", "6/17/false"} {
				if kinds[kind] == 0 {
					t.Errorf("no packet with version/protocol/fragments %s was translated; packets by kind: %v", kind, kinds)
				}
			}
		})
	}
}

// Nodes translate packets to each other if one of their locators or both have 80 bits.
// `vrouter trace` shows the addresses on the underlay.
func TestLocatorsOfAllLengthsWorkTogether(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for _, bits := range locatorLengths[1:] {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			b := newBed(t, options{routed: true})
			x, y := routedState(b, model.VXLAN)
			for i, n := range b.nodes {
				b.state.Nodes[i].Locator = n.ofLength(bits[i])
			}
			b.up()
			b.awaitWays("translated", "vxlan")
			for _, ends := range [][2]*workload{{x, y}, {y, x}} {
				for _, version := range []int{4, 6} {
					checkTransfer(ends[0], ends[1], version, 20<<20)
				}
			}
			for _, n := range b.nodes {
				if sent := n.sent(model.Translated); sent < 40<<20 {
					t.Errorf("node %s has sent %d bytes in translated packets, want at least the %d of an IPv4 and an IPv6 transfer", n.name, sent, 40<<20)
				}
				if drops := n.drops(); drops["untranslatable"]+drops["unknown_source"]+drops["forged_source"] > 0 {
					t.Errorf("drops by reason on node %s: %v, want none of a translated packet", n.name, drops)
				}
			}
			for _, version := range []int{4, 6} {
				trace := b.nodes[0].run("trace", "--from", "x", "--to", y.ip(version).String())
				_, verdict, _ := strings.Cut(trace, "forwarded to node b by translated, network 291, ")
				var from, to string
				fmt.Sscanf(verdict, "from %s to %s", &from, &to)
				for i, text := range []string{from, to} {
					if a, err := netip.ParseAddr(text); err != nil || !b.state.Nodes[i].Locator.Contains(a) {
						t.Errorf("IPv%d: the trace shows the address %q, want one in %s:\n%s", version, text, b.state.Nodes[i].Locator, trace)
					}
				}
			}
		})
	}
}

// `vrouter node add --locator auto` gives a node a locator of the pool. The node keeps it. The node of
// the agent gets none that its host uses.
func TestANodeGetsALocatorOfThePool(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{})
	routedState(b, model.VXLAN)
	b.state.Settings.Locators = netip.MustParsePrefix("fd00:77::/48")
	b.state.Nodes[0].Locator = netip.Prefix{}
	b.up()
	a := b.nodes[0]
	a.ip("address add fd00:77:0:2::7/64 dev fab nodad")
	for _, c := range []struct{ node, underlay, want string }{
		{"c", "172.30.0.99", "fd00:77:0:1::/64"}, {"c", "172.30.0.99", "fd00:77:0:1::/64"}, {"a", a.v4.String(), "fd00:77:0:3::/64"},
	} {
		a.run("node", "add", c.node, "--underlay", c.underlay, "--locator", "auto")
		found := ""
		for _, n := range answer(a, (*api.Client).Nodes) {
			if n.Name == c.node {
				found = n.Locator.String()
			}
		}
		if found != c.want {
			t.Errorf("node %s has the locator %q, want %s, the first of the pool fd00:77::/48 that is free", c.node, found, c.want)
		}
	}
	if out, err := a.try("node", "add", "d", "--underlay", "172.30.0.98", "--locator", "fd00:77:0:1:5::/80"); err == nil || !strings.Contains(err.Error()+out, `overlaps the locator of node "c"`) {
		t.Errorf("a locator in the locator of node c: %v\n%s", err, out)
	}
}
