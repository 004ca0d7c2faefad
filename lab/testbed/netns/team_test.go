package netns

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

func teamOf(links int) suite.Fabric {
	return fabric(func(f *suite.Fabric) { f.Links, f.Team = links, suite.Bond })
}

// receivedBy holds the counters of a node's NIC on one link.
func receivedBy(t *testing.T, tb *Testbed, node, link int) *netlink.LinkStatistics {
	t.Helper()
	nic := must.Get(tb.nodes[node].space.Link(fabricDevice(node, link)))(t)
	return nic.Attrs().Statistics
}

// carried is how many bytes each link delivered to a node.
func carried(t *testing.T, tb *Testbed, node int) []uint64 {
	t.Helper()
	var bytes []uint64
	for l := range tb.spec.Fabric.Links {
		bytes = append(bytes, receivedBy(t, tb, node, l).RxBytes)
	}
	return bytes
}

// Every system sees one device, flows go over both links, and each link counts
// what it carried, once.
func TestATeamIsOneDeviceThatSpreadsFlows(t *testing.T) {
	for _, system := range []string{"raw", "bridge", "vxlan", "macvlan"} {
		t.Run(system, func(t *testing.T) {
			tb := up(t, executor(t), 2, teamOf(2))
			attachment := tb.nodes[0].Attachment()
			if len(attachment.Fabric) != 1 || len(attachment.Team) != 2 {
				t.Fatalf("the attachment has the devices %v and the team ports %v, want one device and two ports", attachment.Fabric, attachment.Team)
			}
			endpoint := attach(t, tb, system)
			mtu := 1500
			if system == "vxlan" {
				mtu = 1450
			}
			prove(t, tb, endpoint, 1, 0, 4, mtu)
			prove(t, tb, endpoint, 0, 1, 6, mtu)
			// Ports, and so links, are by chance: until every link has had a flow.
			before := carried(t, tb, 1)
			var bytes []uint64
			flows := uint64(0)
			for flows < 24 && (flows == 0 || slices.Min(bytes) < 10<<20) {
				prove(t, tb, endpoint, 0, 1, 4, mtu) // 10 MiB each way
				flows++
				bytes = carried(t, tb, 1)
				for l := range bytes {
					bytes[l] -= before[l]
				}
			}
			if slices.Min(bytes) < 10<<20 {
				t.Errorf("in %d flows of 10 MiB the links carried %v bytes", flows, bytes)
			}
			// Headers, acknowledgements and what TCP sends again are some per cent.
			if sum, least := bytes[0]+bytes[1], flows*10<<20; sum < least || sum > least*11/10 {
				t.Errorf("both links together counted %d bytes for %d of payload", sum, least)
			}
		})
	}
}

// One flow keeps to one link, both of whose ends have the same number.
func TestAFlowKeepsToOneLinkOfATeam(t *testing.T) {
	tb := up(t, executor(t), 2, teamOf(3))
	before := carried(t, tb, 1)
	bytes := flow{network: "tcp", duration: 200 * time.Millisecond}.run(t, tb, "")
	var busy int
	for l, after := range carried(t, tb, 1) {
		switch n := after - before[l]; {
		case n > uint64(bytes):
			busy++
		case n > 100_000:
			t.Errorf("link %d carried %d bytes of a flow of %d that is on another", l, n, bytes)
		}
	}
	must.Equal(t, 1, busy)
}

// The wire learns a team's address on whatever link it is heard, and delivers
// to it on all.
func TestThreeNodesReachEachOtherOverTeams(t *testing.T) {
	tb := up(t, executor(t), 3, teamOf(2))
	endpoint := attach(t, tb, "bridge")
	for from := range 3 {
		for to := range 3 {
			if from != to {
				prove(t, tb, endpoint, from, to, 4, 1500)
			}
		}
	}
	before := carried(t, tb, 2)
	for range 4 {
		prove(t, tb, endpoint, 0, 1, 4, 1500)
	}
	for l, after := range carried(t, tb, 2) {
		if n := after - before[l]; n > 100_000 {
			t.Errorf("%d bytes between two nodes were flooded to the third over link %d", n, l)
		}
	}
}

// As over one link, nothing that a paced sender sends is lost.
func TestATeamLosesNothing(t *testing.T) {
	x := executor(t)
	for _, profile := range profiles {
		t.Run(string(profile), func(t *testing.T) {
			f := teamOf(2)
			f.Offload = profile
			tb := up(t, x, 2, f)
			prove(t, tb, "", 0, 1, 4, 1500)
			before := countersOf(t, tb)
			flow{network: "tcp", pace: 2e8, duration: 500 * time.Millisecond}.run(t, tb, "")
			if c := arrived(t, tb, before); c.lost() != 0 || c.segments == 0 {
				t.Errorf("%d of %d segments were lost at 200 Mbit/s; none must be", c.lost(), c.segments)
			}
		})
	}
}

// A cut link's flows go over the others as soon as the team has noticed.
func TestATeamContinuesWhenALinkIsCut(t *testing.T) {
	f := teamOf(2)
	f.Cut = time.Second
	tb := up(t, executor(t), 2, f)
	endpoint := attach(t, tb, "bridge")
	prove(t, tb, endpoint, 0, 1, 4, 1500)
	must.Succeed(t, tb.Cut())
	time.Sleep(3 * monitorEvery)
	before := carried(t, tb, 1)
	for range 8 { // by chance, all are on the first link once in 256 runs
		prove(t, tb, endpoint, 0, 1, 4, 1500)
		prove(t, tb, endpoint, 1, 0, 6, 1500)
	}
	after := carried(t, tb, 1)
	if n := after[0] - before[0]; n < 16*10<<20 {
		t.Errorf("the whole link carried %d bytes of 16 flows of 10 MiB", n)
	}
	if n := after[1] - before[1]; n > 0 {
		t.Errorf("the cut link carried %d bytes", n)
	}
}

func TestATeamIsRecordedAndDescribed(t *testing.T) {
	tb := up(t, executor(t), 2, teamOf(2))
	if got := tb.Describe(); !strings.Contains(got, "2 links as one device") || !strings.Contains(got, "layer3+4") {
		t.Errorf("described as %q", got)
	}
	for _, key := range []string{"a team", "b team"} {
		if got := tb.Settings().Others[key]; !strings.Contains(got, "over 2 links") {
			t.Errorf("setting %q is %q", key, got)
		}
	}
}

func TestATeamOfTooManyLinksIsRefused(t *testing.T) {
	executor(t) // skips the test where testbeds cannot be made
	err := (&node{fabric: teamOf(maxLinks + 1)}).newTeam()
	must.Fail(t, err, "16 is the most")
}

// The program chooses what bonding's layer3+4 would, by its arithmetic
// (bond_xmit_hash): the NICs here are numbered 100 and up, so that the
// redirection's target says which it was.
func TestTheTeamSpreadsAsBondingDoes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("running BPF programs needs root")
	}
	programs := must.Get(loadTeamPrograms([]uint32{100, 101, 102, 103}))(t)
	defer programs.Close()
	spreadsAs(t, programs, 4)
	must.Succeed(t, programs.use([]uint32{100, 102, 103})) // 101 has lost its carrier
	spreadsAs(t, programs, 3)
}

// spreadsAs sends frames through a team with a number of usable links. The first of these
// links belongs to NIC 100.
func spreadsAs(t *testing.T, programs *teamObjects, links uint32) {
	t.Helper()
	for name, c := range map[string]struct {
		frame []byte
		hash  uint32
	}{
		"TCP over IPv4":           {frameOf(t, 6, 40000, 5201, 0), layer34(6, 40000, 5201)},
		"its next connection":     {frameOf(t, 6, 40002, 5201, 0), layer34(6, 40002, 5201)},
		"and the one after":       {frameOf(t, 6, 40004, 5201, 0), layer34(6, 40004, 5201)},
		"UDP over IPv4":           {frameOf(t, 17, 49152, 4789, 0), layer34(17, 49152, 4789)},
		"a first fragment":        {frameOf(t, 17, 49152, 4789, 0x2000), layer34(0, 0, 0)},
		"a later fragment":        {frameOf(t, 17, 49152, 4789, 0x0010), layer34(0, 0, 0)},
		"GRE, which has no ports": {frameOf(t, 47, 40000, 5201, 0), layer34(0, 0, 0)},
		"ARP":                     {arpFrame(t), 0},
		"ports cut off":           {frameOf(t, 6, 40000, 5201, 0)[:34], layer34(0, 0, 0)},
	} {
		got, _, err := programs.TeamTransmit.Test(c.frame)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const unspec, redirect = 0xffffffff, 7 // TC_ACT_UNSPEC, TC_ACT_REDIRECT
		want := uint32(redirect)
		if c.hash%links == 0 {
			want = unspec
		}
		if got != want {
			t.Errorf("%s: verdict %d, want %d for link %d", name, int32(got), int32(want), c.hash%links)
		}
	}
}

var client, server = []byte{10, 31, 0, 2}, []byte{10, 31, 16, 2}

// layer34 is bond_xmit_hash of an IPv4 flow; protocol 0 has no ports.
func layer34(protocol byte, from, to uint16) uint32 {
	var ports [4]byte
	if protocol != 0 {
		binary.BigEndian.PutUint16(ports[:], from)
		binary.BigEndian.PutUint16(ports[2:], to)
	}
	word := binary.NativeEndian.Uint32
	h := word(ports[:]) ^ word(client) ^ word(server)
	h ^= h >> 16
	h ^= h >> 8
	return h >> 1
}

func frameOf(t *testing.T, protocol byte, from, to uint16, fragment uint16) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocol(protocol), SrcIP: client, DstIP: server,
		Flags: layers.IPv4Flag(fragment >> 13), FragOffset: fragment & 0x1fff}
	payload := make([]byte, 60)
	binary.BigEndian.PutUint16(payload, from)
	binary.BigEndian.PutUint16(payload[2:], to)
	return serialised(t, layers.EthernetTypeIPv4, ip, gopacket.Payload(payload))
}

func arpFrame(t *testing.T) []byte {
	t.Helper()
	mac := []byte{2, 0, 0, 0, 0, 1}
	return serialised(t, layers.EthernetTypeARP, &layers.ARP{AddrType: 1, Protocol: 0x800, HwAddressSize: 6, ProtAddressSize: 4,
		Operation: 1, SourceHwAddress: mac, SourceProtAddress: client, DstHwAddress: mac, DstProtAddress: server})
}

func serialised(t *testing.T, kind layers.EthernetType, rest ...gopacket.SerializableLayer) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: kind}
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, append([]gopacket.SerializableLayer{eth}, rest...)...)
	must.Succeed(t, err)
	return b.Bytes()
}
