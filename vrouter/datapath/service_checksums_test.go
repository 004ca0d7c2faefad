package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/model"
)

// addressesOf returns the addresses of an IP packet, and the bytes behind its header.
func addressesOf(ip []byte) (from, to netip.Addr, payload []byte) {
	if ip[0]>>4 == 6 {
		return netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40])), ip[40:]
	}
	return netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20])), ip[20:]
}

// SCTP's checksum (CRC32c, RFC 9260) does not have the addresses, and the ports are equal. So only addresses change.
func TestSCTPReachesServicesWithTheSameBytes(t *testing.T) {
	for name, a := range families {
		for _, policy := range []bool{false, true} {
			r := newRig(t, model.MPLSoUDP, false, withServicesAnd(policy, at(a.backend, 80)))
			r.setService(t, a.service, at(a.backend, 80))
			for range 3 {
				sent := segment{at(a.client, 40000), at(a.service, 80), unix.IPPROTO_SCTP, ""}.packet(t)
				answer := segment{at(a.backend, 80), at(a.client, 40000), unix.IPPROTO_SCTP, ""}.packet(t)
				for _, c := range []struct {
					got, was []byte
					from, to netip.Addr
				}{{r.leave(t, sent), sent, a.client, a.backend}, {r.arrive(t, answer), answer, a.service, a.client}} {
					from, to, payload := addressesOf(c.got)
					if _, _, was := addressesOf(c.was); from != c.from || to != c.to || !bytes.Equal(payload, was) || name == "IPv4" && sum16(c.got[:20]) != 0xffff {
						t.Errorf("%s, policy %v: %x became %x, want %s to %s", name, policy, c.was, c.got, c.from, c.to)
					}
				}
			}
		}
	}
}

// fragmentsOf cuts a packet in two fragments.
func fragmentsOf(ip []byte, id byte) (all [][]byte) {
	header := ip[:20:20]
	if ip[0]>>4 == 6 {
		header = append(slices.Clone(ip[:40]), ip[6], 0, 0, 0, 0, 0, 0, id)
		header[6] = unix.IPPROTO_FRAGMENT
	}
	_, _, payload := addressesOf(ip)
	const first = 800
	for i, part := range [][]byte{payload[:first], payload[first:]} {
		b := append(slices.Clone(header), part...)
		field := uint16(i * first) // of IPv6, in units of 8 bytes from bit 3 on; bit 0: more fragments
		if b[0]>>4 == 6 {
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
			binary.BigEndian.PutUint16(b[42:], field|uint16(1-i))
		} else {
			binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
			binary.BigEndian.PutUint16(b[4:], uint16(id))
			binary.BigEndian.PutUint16(b[6:], field/8|uint16(1-i)<<13)
			b = withHops(b, b[8])
		}
		all = append(all, b)
	}
	return all
}

// joined undoes fragmentsOf.
func joined(all [][]byte) []byte {
	_, _, first := addressesOf(all[0])
	_, _, second := addressesOf(all[1])
	if all[0][0]>>4 == 6 {
		ip := append(append(slices.Clone(all[0][:40]), first[8:]...), second[8:]...)
		ip[6] = first[0]
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
		return ip
	}
	ip := append(slices.Clone(all[0]), second...)
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[6:], 1<<14)
	return withHops(ip, ip[8])
}

// Only the first fragment of a datagram has the ports and the checksum.
func TestFragmentsOfADatagramReachServices(t *testing.T) {
	for name, a := range families {
		for _, policy := range []bool{false, true} {
			what := fmt.Sprint(name, " policy ", policy)
			r := newRig(t, model.MPLSoUDP, false, withServicesAnd(policy, at(a.backend, 8080)))
			r.setService(t, a.service, at(a.backend, 8080))
			for id := range byte(3) {
				var out, back [][]byte
				for _, f := range fragmentsOf(segment{at(a.client, 40000), at(a.service, 80), unix.IPPROTO_UDP, ""}.packetOf(t, string(bytes.Repeat([]byte("data"), 400))), id) {
					out = append(out, r.leave(t, f))
				}
				if got, want := segmentOf(t, joined(out)), (segment{at(a.client, 40000), at(a.backend, 8080), unix.IPPROTO_UDP, ""}); got != want {
					t.Errorf("%s: sent %v, want %v", what, got, want)
				}
				for _, f := range fragmentsOf(segment{at(a.backend, 8080), at(a.client, 40000), unix.IPPROTO_UDP, ""}.packetOf(t, string(bytes.Repeat([]byte("answer"), 300))), id) {
					back = append(back, r.arrive(t, f))
				}
				if got, want := segmentOf(t, joined(back)), (segment{at(a.service, 80), at(a.client, 40000), unix.IPPROTO_UDP, ""}); got != want {
					t.Errorf("%s: answered %v, want %v", what, got, want)
				}
			}
		}
	}
}

// A datagram without a checksum gets none.
func TestDatagramsWithoutAChecksumReachServices(t *testing.T) {
	for name, a := range families {
		r := newRig(t, model.MPLSoUDP, false, withServices)
		r.setService(t, a.service, at(a.backend, 8080))
		for range 3 {
			sent := segment{at(a.client, 40000), at(a.service, 80), unix.IPPROTO_UDP, ""}.packet(t)
			answer := segment{at(a.backend, 8080), at(a.client, 40000), unix.IPPROTO_UDP, ""}.packet(t)
			for _, ip := range [][]byte{sent, answer} {
				_, _, udp := addressesOf(ip)
				udp[6], udp[7] = 0, 0
			}
			for _, c := range []struct {
				got      []byte
				from, to netip.AddrPort
			}{{r.leave(t, sent), at(a.client, 40000), at(a.backend, 8080)}, {r.arrive(t, answer), at(a.service, 80), at(a.client, 40000)}} {
				from, to, udp := addressesOf(c.got)
				ports := [2]uint16{binary.BigEndian.Uint16(udp), binary.BigEndian.Uint16(udp[2:])}
				if from != c.from.Addr() || to != c.to.Addr() || ports != [2]uint16{c.from.Port(), c.to.Port()} || udp[6] != 0 || udp[7] != 0 || name == "IPv4" && sum16(c.got[:20]) != 0xffff {
					t.Errorf("%s: %x, want %s to %s without a checksum", name, c.got, c.from, c.to)
				}
			}
		}
	}
}

// A NIC's sum over the packet (CHECKSUM_COMPLETE) stays the sum over the packet when the addresses and ports of
// answers and errors change. The kernel compares both after the run (bpf_prog_test_run_skb, Linux 6.11).
func TestTheSumOfANICStaysCorrect(t *testing.T) {
	for name, a := range families {
		for _, port := range []uint16{80, 8080} {
			r := newRig(t, model.MPLSoUDP, false, withServices)
			r.setService(t, a.service, at(a.backend, port))
			for _, protocol := range []uint8{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
				atBackend := r.leave(t, segment{at(a.client, 40000), at(a.service, 80), protocol, "S"}.packet(t))
				for what, ip := range map[string][]byte{
					"answer": segment{at(a.backend, port), at(a.client, 40000), protocol, "AS"}.packet(t),
					"error":  portUnreachable(t, a.backend, a.client, atBackend),
					"other":  segment{at(a.backend, 1), at(a.client, 1), protocol, "A"}.packet(t),
				} {
					context := make([]byte, contextBytes)
					binary.NativeEndian.PutUint32(context[contextIngress:], uint32(r.fabric))
					binary.NativeEndian.PutUint32(context[contextIfindex:], uint32(r.fabric))
					in := wrapped(t, model.MPLSoUDP, false, 18, 0, ip)
					code, err := r.programs.FabricTc.Run(&ebpf.RunOptions{Data: in, DataOut: make([]byte, len(in)+256), Context: context, Flags: unix.BPF_F_TEST_SKB_CHECKSUM_COMPLETE})
					if err != nil || code != actRedirect {
						t.Errorf("%s of %d to port %d, %s: action %d, %v", name, protocol, port, what, code, err)
					}
				}
			}
		}
	}
}
