package datapath

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// Arguments of bpf_csum_level(), linux/bpf.h.
const (
	csumLevelQuery = 0
	csumLevelInc   = 1
)

// A packet's checksum counts as verified at the workload only if it is right. Neither the NIC, nor vrouter, nor the
// kernel accepts one that nobody has verified. If the NIC has verified the outer checksum, nobody reads the
// payload again.
func TestOnlyRightChecksumsCountAsVerified(t *testing.T) {
	for _, noXDP := range []bool{false, true} {
		everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
			devices := enterSpace(t, 3)
			r := &rig{Datapath: attaching(t, false, noXDP, devices[2]), vif: devices[0], vif2: devices[1], fabric: devices[2]}
			must.Get(r.Apply(scene(r.vif, r.vif2, r.fabric, encap, v6)))(t)
			must.Get(r.AttachFabric(r.fabric, ""))(t)
			workload, peer := verifiedLevels(t, "p0"), must.Get(netlink.LinkByName("p2"))(t).Attrs().Index
			nic := verifyingNIC(t, peer)
			for _, ethernet := range []bool{false, true} {
				if !ethernet && encap == model.VXLAN {
					continue
				}
				for _, inner := range []segment{
					{from: netip.AddrPortFrom(addrB, 9), to: netip.AddrPortFrom(addrA, 7), protocol: unix.IPPROTO_TCP, flags: "A"},
					{from: netip.AddrPortFrom(addrB6, 9), to: netip.AddrPortFrom(addrA6, 7), protocol: unix.IPPROTO_TCP, flags: "A"},
					{from: netip.AddrPortFrom(addrB, 9), to: netip.AddrPortFrom(addrA, 7), protocol: unix.IPPROTO_UDP},
					{from: netip.AddrPortFrom(addrB6, 9), to: netip.AddrPortFrom(addrA6, 7), protocol: unix.IPPROTO_UDP},
				} {
					for _, c := range []struct {
						name     string
						verified uint32 // number of checksums that the NIC has verified
						outer    bool
						damaged  bool // before the outer checksum is computed
						flip     bool // damaged after that
						wrong    bool // the outer checksum has another value

						drop     bool
						believed bool // vrouter must not verify again what the NIC has verified
					}{
						{name: "no NIC", outer: true},
						{name: "no NIC, no outer checksum"},
						{name: "a NIC that verifies the outer checksum", verified: 1, outer: true, believed: true},
						{name: "a NIC that verifies both", verified: 2, outer: true, believed: true},
						{name: "a wrong inner checksum", outer: true, damaged: true},
						{name: "a wrong inner checksum in a verified packet", verified: 1, outer: true, damaged: true},
						{name: "a packet that was damaged on its way", outer: true, flip: true},
						{name: "a packet that was damaged on its way, without an outer checksum", flip: true},
						{name: "a wrong outer checksum", outer: true, wrong: true, drop: true},
					} {
						if c.outer && encap == model.MPLSoGRE {
							continue
						}
						payload := inner.packetOf(t, string(make([]byte, 601)))
						if c.damaged {
							payload[len(payload)-1]++
						}
						if ethernet {
							payload = frame(macB, macA, payload)
						}
						b := wrapped(t, encap, v6, labelOf(encap, ethernet), 0, payload)
						if c.outer {
							setOuterChecksum(b)
							if udpSum(b) != 0xffff {
								t.Fatalf("the test's packet has a wrong checksum: %x", b)
							}
						}
						if c.wrong {
							_, udp := outerUDP(b)
							udp[6] ^= 0x55
						}
						if c.flip {
							b[len(b)-1]++
						}
						what := fmt.Sprintf("%s, ethernet %v, no XDP %v: %s", inner, ethernet, noXDP, c.name)
						before, drops := counts(t, workload), must.Get(r.Drops())(t)
						must.Succeed(t, nic.Put(uint32(0), c.verified))
						must.Succeed(t, sendFrame(peer, b))
						if c.drop {
							must.EventuallyTrue(t, what+" is dropped", func() bool { return r.drop(t, drops) == "outer_checksum" })
							continue
						}
						must.EventuallyTrue(t, what+" arrives", func() bool { return counts(t, workload) != before })
						after := counts(t, workload)
						verified := after[0] == before[0]
						switch {
						case verified && (c.damaged || c.flip):
							t.Errorf("%s: the wrong checksum counts as verified", what)
						case !verified && c.believed:
							t.Errorf("%s: it will be verified again", what)
						case noXDP && after[2] != before[2]:
							t.Errorf("%s: one more checksum counts as verified than there is", what)
						}
					}
				}
			}
		})
	}
}

// verifiedLevels drops the packets that arrive at the workload's end of a device, and counts them by the number of checksums that
// count as verified.
func verifiedLevels(t *testing.T, device string) *ebpf.Map {
	t.Helper()
	m := must.Get(ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 5}))(t)
	t.Cleanup(func() { m.Close() })
	filter(t, must.Get(netlink.LinkByName(device))(t).Attrs().Index, netlink.HANDLE_MIN_INGRESS, asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadAbs(2, asm.Word), // of the destination address, to leave out multicasts that the kernel itself sends
		asm.JNE.Imm(asm.R0, 0xa, "out"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, csumLevelQuery),
		asm.FnCsumLevel.Call(),
		asm.JSGE.Imm(asm.R0, 0, "verified"),
		asm.Mov.Imm(asm.R0, -1),
		asm.Add.Imm(asm.R0, 1).WithSymbol("verified"),
		asm.StoreMem(asm.RFP, -4, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, actShot).WithSymbol("out"),
		asm.Return(),
	})
	return m
}

func counts(t *testing.T, m *ebpf.Map) (n [5]uint32) {
	t.Helper()
	for i := range n {
		must.Succeed(t, m.Lookup(uint32(i), &n[i]))
	}
	return n
}

// verifyingNIC makes frames that leave a device arrive as from a NIC that has verified some of their checksums. It returns a map
// with the number of checksums.
func verifyingNIC(t *testing.T, ifindex int) *ebpf.Map {
	t.Helper()
	m := must.Get(ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}))(t)
	t.Cleanup(func() { m.Close() })
	inc := asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, csumLevelInc), asm.FnCsumLevel.Call()}
	filter(t, ifindex, netlink.HANDLE_MIN_EGRESS, slices.Concat(asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R7, asm.R0, 0, asm.Word),
		asm.JLT.Imm(asm.R7, 1, "out"),
	}, inc, asm.Instructions{asm.JLT.Imm(asm.R7, 2, "out")}, inc, asm.Instructions{
		asm.Mov.Imm(asm.R0, -1).WithSymbol("out"),
		asm.Return(),
	}))
	return m
}

// filter attaches a program to a tc hook of a device.
func filter(t *testing.T, ifindex int, hook uint32, code asm.Instructions) {
	t.Helper()
	p := must.Get(ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: code}))(t)
	t.Cleanup(func() { p.Close() })
	must.Succeed(t, netlink.QdiscAdd(clsact(ifindex)))
	must.Succeed(t, netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: ifindex, Parent: hook, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          p.FD(), Name: "test", DirectAction: true,
	}))
}
