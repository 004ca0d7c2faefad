package e2e

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// checksums are how many of a frame's checksums are right and wrong; those that
// nobody looked into are neither.
type checksums struct{ right, wrong int }

// checksumFields are tshark's, in the order that checksumsOf reads them.
var checksumFields = []string{
	"ip.checksum.status", "udp.checksum.status", "icmp.checksum.status", "icmpv6.checksum.status",
	"tcp.checksum.status", "tcp.checksum", "tcp.checksum_calculated",
}

// checksumsOf reads a frame's checksumFields. tshark wants a TCP checksum of
// zero as 0x0000 and calls the other zero of one's complement wrong. The kernel
// writes that one, 0xffff, for every protocol (skb_checksum_help), and every
// receiver sums it up to the same (RFC 1071): it is right.
func checksumsOf(f []string) (c checksums) {
	tcp, is, ought := f[4], f[5], f[6]
	if tcp == "0" && is == "0xffff" && ought == "0x0000" {
		tcp = "1"
	}
	for _, statuses := range append([]string{tcp}, f[:4]...) {
		c.wrong += strings.Count(statuses, "0")
		c.right += strings.Count(statuses, "1")
	}
	return c
}

// One segment in 65,536 has a checksum of zero, which the node writes as 0xffff
// where it does the NIC's work. The receiver's kernel takes it; a checksum that
// is wrong it refuses, and checksumsOf counts.
func TestAChecksumOfZeroThatWasLeftToTheNICIsRight(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{offload: "none"})
	x, y := pair(b, model.L2, true, model.MPLSoGRE)
	needs(t, "tshark")
	c := startCapture(t, b.name+"-sw", "port0")

	const left, wrong = 4001, 4002 // source ports
	zero := segment(t, x, y, left)
	sum := binary.BigEndian.Uint16(zero[sumAt:])
	binary.BigEndian.PutUint16(zero[urgentAt:], sum) // the sum is 0xffff now, its complement zero
	binary.BigEndian.PutUint16(zero[sumAt:], pseudoSum(zero))
	x.sendUnfinished(zero)
	y.awaitTCP(t, "OutRsts", 1) // nobody listens; a wrong sum would get no answer
	if n := y.tcp(t, "InCsumErrors"); n != 0 {
		t.Errorf("the receiver found %d wrong checksums, want none", n)
	}
	bad := segment(t, x, y, wrong)
	bad[sumAt+1] ^= 1
	x.sendFrame(bad)
	y.awaitTCP(t, "InCsumErrors", 1)

	want := map[string]checksums{strconv.Itoa(left): {right: 1}, strconv.Itoa(wrong): {wrong: 1}}
	seen := map[string][]string{} // TCP checksums by source port
	for i, f := range decoded(t, c.stop(), append([]string{"tcp.srcport"}, checksumFields...)...) {
		w, ours := want[f[0]]
		if !ours {
			continue
		}
		seen[f[0]] = append(seen[f[0]], f[6])
		if got := checksumsOf(f[1:]); got != w {
			t.Errorf("frame %d has checksums %+v, want %+v: %q", i+1, got, w, f)
		}
	}
	if s := seen[strconv.Itoa(left)]; !slices.Equal(s, []string{"0xffff"}) {
		t.Errorf("the segment left to the NIC was seen with the checksums %v, want 0xffff once", s)
	}
	if s := seen[strconv.Itoa(wrong)]; len(s) != 1 {
		t.Errorf("the segment with a wrong checksum was seen with %v, want it once", s)
	}
}

// Where fields are in a frame of IPv6 and TCP.
const (
	tcpAt    = 14 + 40
	sumAt    = tcpAt + 16
	urgentAt = tcpAt + 18
)

// segment is a frame with a lone TCP ACK, complete with its checksum.
func segment(t *testing.T, from, to *workload, port layers.TCPPort) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: from.port.MAC[:], DstMAC: to.port.MAC[:], EthernetType: layers.EthernetTypeIPv6}
	ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolTCP, HopLimit: 64, SrcIP: from.ip(6).AsSlice(), DstIP: to.ip(6).AsSlice()}
	tcp := &layers.TCP{SrcPort: port, DstPort: 4000, Seq: 1, Ack: 1, ACK: true, Window: 100}
	tcp.SetNetworkLayerForChecksum(ip)
	buf := gopacket.NewSerializeBuffer()
	must.Succeed(t, gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, tcp))
	return buf.Bytes()
}

// pseudoSum is what a sender puts into the checksum field for a NIC to go on
// from: the sum over addresses, length and protocol.
func pseudoSum(frame []byte) uint16 {
	sum := uint32(len(frame)-tcpAt) + unix.IPPROTO_TCP
	for addresses := frame[14+8 : tcpAt]; len(addresses) > 0; addresses = addresses[2:] {
		sum += uint32(binary.BigEndian.Uint16(addresses))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// tcp is one of the workload's TCP counters.
func (w *workload) tcp(t *testing.T, counter string) (n int) {
	t.Helper()
	text, err := w.command("cat", "/proc/net/snmp")
	must.Succeed(t, err)
	var rows [][]string // names, figures
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, "Tcp:"); is {
			rows = append(rows, strings.Fields(rest))
		}
	}
	if len(rows) != 2 || len(rows[0]) != len(rows[1]) {
		t.Fatalf("/proc/net/snmp has no TCP counters:\n%s", text)
	}
	at := slices.Index(rows[0], counter)
	if at < 0 {
		t.Skipf("the kernel has no counter %s", counter)
	}
	if n, err = strconv.Atoi(rows[1][at]); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *workload) awaitTCP(t *testing.T, counter string, n int) {
	t.Helper()
	must.Eventually(t, counter+" of "+w.port.Name, func() error {
		if got := w.tcp(t, counter); got != n {
			return fmt.Errorf("%d, want %d", got, n)
		}
		return nil
	})
}
