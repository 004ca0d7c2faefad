package netns

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/meter"
	"windtunnel/lab/suite"
)

// States of a received packet's checksum, linux/skbuff.h.
const (
	checksumNone        = 0 // the CPU must verify it
	checksumUnnecessary = 1 // the NIC has verified it
	checksumPartial     = 3 // the sender has not written it: nothing verifies it
)

// The receiver's CPU verifies those checksums of a stream that the NIC does not verify.
func TestNICsVerifyTheChecksumsOfTheSuite(t *testing.T) {
	x := executor(t)
	x.countPlaces = true
	for _, c := range []struct {
		verified suite.RxChecksum
		system   string
		want     uint32
	}{
		{suite.RxChecksumAll, "", checksumPartial},
		{suite.RxChecksumAll, "vxlan", checksumPartial},
		{suite.RxChecksumOuter, "", checksumUnnecessary},
		{suite.RxChecksumOuter, "vxlan", checksumUnnecessary}, // Linux's VXLAN has an outer checksum
		{suite.RxChecksumNone, "", checksumNone},
		{suite.RxChecksumNone, "vxlan", checksumNone},
	} {
		for _, profile := range profiles {
			t.Run(fmt.Sprintf("%s/%s/%s", c.verified, c.system, profile), func(t *testing.T) {
				if c.system != "" || profile != suite.OffloadTCP {
					must.Long(t)
				}
				tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.Offload, f.RxChecksum = profile, c.verified }))
				if tb.wire.unmetred != "" {
					t.Skip("arrivals cannot be counted here: " + tb.wire.unmetred)
				}
				endpoint := ""
				if c.system != "" {
					endpoint = attach(t, tb, c.system)
				}
				largest, before := watchFrames(t, tb), countersOf(t, tb)
				flow{network: "tcp", duration: 300 * time.Millisecond}.run(t, tb, endpoint)
				got := arrivals(t, tb, 1)
				t.Logf("frames by state: %v, largest %d", got, largest())
				all := got[checksumNone] + got[checksumUnnecessary] + got[checksumPartial]
				if got[c.want] < 100 || all-got[c.want] > 20+all/1000 { // echoes and the like have other states
					t.Errorf("frames by state: %v, want nearly all %d", got, c.want)
				}
				full := countersOf(t, tb).since(before)
				if merged := float64(full.frames) / float64(full.buffers); c.system == "" && merged < 5 {
					t.Errorf("%.1f segments a buffer on a full wire, want merged ones", merged)
				}
				if n := largest(); n > 1500+meter.EthernetHeader {
					t.Errorf("the largest frame at the receiver has %d bytes; the MTU allows 1514", n)
				}
			})
		}
	}
}

func TestNICsThatVerifyChecksumsGoWithTheOtherKeysOfAFabric(t *testing.T) {
	for _, verified := range []suite.RxChecksum{suite.RxChecksumOuter, suite.RxChecksumNone} {
		tb := up(t, executor(t), 3, fabric(func(f *suite.Fabric) {
			f.RxChecksum, f.Loss, f.Queues, f.Steering, f.Rate, f.Delay = verified, 0.001, 2, suite.ByMAC, 1e9, time.Millisecond
		}))
		for to := range 3 {
			prove(t, tb, "", to, (to+1)%3, 4, 1500)
			prove(t, tb, "", (to+1)%3, to, 6, 1500)
		}
		must.Succeed(t, tb.Down(context.Background()))
	}
}

// A NIC that verifies the outermost checksum really computes it.
func TestANICVerifiesOnlyTheOutermostChecksum(t *testing.T) {
	x := executor(t)
	x.countPlaces = true
	tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.RxChecksum = suite.RxChecksumOuter }))
	if tb.wire.unmetred != "" {
		t.Skip("arrivals cannot be counted here: " + tb.wire.unmetred)
	}
	info := must.Get(tb.wire.objects.NicReceive.Info())(t)
	if n, known := info.VerifiedInstructions(); known && n > 20_000 {
		t.Errorf("the verifier walked %d instructions of nic_receive, which each testbed loads; 20000 are allowed", n)
	}
	v4 := func(p layers.IPProtocol) *layers.IPv4 {
		return &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: p, SrcIP: client, DstIP: server}
	}
	v6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, SrcIP: net.ParseIP("fd31::1"), DstIP: net.ParseIP("fd31::2")}
	tcp := func(over gopacket.NetworkLayer) *layers.TCP {
		l := &layers.TCP{SrcPort: 1, DstPort: 2, ACK: true}
		must.Succeed(t, l.SetNetworkLayerForChecksum(over))
		return l
	}
	udp := func(over gopacket.NetworkLayer) *layers.UDP {
		l := &layers.UDP{SrcPort: 3, DstPort: 6635}
		must.Succeed(t, l.SetNetworkLayerForChecksum(over))
		return l
	}
	changed := func(b []byte, at int, to byte) []byte {
		b[at] = to
		return b
	}
	body := gopacket.Payload(make([]byte, 1401))
	inner := serialised(t, layers.EthernetTypeIPv4, v4(6), tcp(v4(6)), body[:1000])[14:]
	for _, c := range []struct {
		name  string
		frame []byte
		want  uint32
	}{
		{"TCP", serialised(t, layers.EthernetTypeIPv4, v4(6), tcp(v4(6)), body), checksumUnnecessary},
		{"TCP of one chunk", serialised(t, layers.EthernetTypeIPv4, v4(6), tcp(v4(6)), body[:512-20]), checksumUnnecessary},
		{"TCP over IPv6", serialised(t, layers.EthernetTypeIPv6, v6, tcp(v6), body), checksumUnnecessary},
		{"UDP", serialised(t, layers.EthernetTypeIPv4, v4(17), udp(v4(17)), body), checksumUnnecessary},
		{"a wrong byte of TCP", changed(serialised(t, layers.EthernetTypeIPv4, v4(6), tcp(v4(6)), body), 1000, 1), checksumNone},
		{"a wrong last byte", changed(serialised(t, layers.EthernetTypeIPv4, v4(6), tcp(v4(6)), body), 14+20+20+1400, 1), checksumNone},
		{"a wrong address", changed(serialised(t, layers.EthernetTypeIPv6, v6, tcp(v6), body), 14+9, 1), checksumNone},
		{"UDP without a checksum", changed(changed(serialised(t, layers.EthernetTypeIPv4, v4(17), udp(v4(17)), body), 14+26, 0), 14+27, 0), checksumNone},
		{"GRE", serialised(t, layers.EthernetTypeIPv4, v4(47), gopacket.Payload([]byte{0, 0, 8, 0}), gopacket.Payload(inner)), checksumNone},
		{"a fragment", changed(serialised(t, layers.EthernetTypeIPv4, v4(6), tcp(v4(6)), body), 14+6, 0x20), checksumNone},
		{"too short for its length", serialised(t, layers.EthernetTypeIPv4, v4(6), tcp(v4(6)), body)[:900], checksumNone},
	} {
		const n = 200
		before := arrivals(t, tb, 1)[c.want]
		nic := must.Get(tb.nodes[0].space.Link(fabricDevice(0, 0)))(t)
		must.Succeed(t, tb.nodes[0].space.Do(func() error {
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			for range n {
				if err := unix.Sendto(fd, c.frame, 0, &unix.SockaddrLinklayer{Ifindex: nic.Attrs().Index}); err != nil {
					return err
				}
			}
			return nil
		}))
		must.EventuallyTrue(t, c.name+" arrives in the wanted state", func() bool { return arrivals(t, tb, 1)[c.want] >= before+n })
	}
}

// arrivals returns how many frames the NIC of node i has received, by the state of their checksum before GRO.
func arrivals(t *testing.T, tb *Testbed, i int) map[uint32]uint64 {
	t.Helper()
	inode := must.Get(tb.nodes[i].space.Inode())(t)
	nic := must.Get(tb.nodes[i].space.Link(fabricDevice(i, 0)))(t)
	got := map[uint32]uint64{}
	var key wireArrival
	var n uint64
	entries := tb.wire.objects.Arrivals.Iterate()
	for entries.Next(&key, &n) {
		if key.Netns == inode && key.Ifindex == uint32(nic.Attrs().Index) {
			got[key.IpSummed] = n
		}
	}
	must.Succeed(t, entries.Err())
	return got
}
