package datapath

import (
	"fmt"
	"time"

	"windtunnel/internal/netspace"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// Offsets in struct xdp_md and struct __sk_buff of linux/bpf.h.
	xdpData = 0
	xdpMeta = 8
	skbData = 76
	skbMeta = 140

	testMark    = 0x76726d74
	metaTimeout = time.Second
)

// tryMetadata returns nil if metadata that an XDP program writes reaches tc. It sends a
// packet through a veth pair in a new network namespace. Without the metadata, the tc
// program would treat a decapsulated packet as a packet of the underlay.
func tryMetadata() error { return tryMetadataOf(xdpWithMark()) }

func tryMetadataOf(xdp asm.Instructions) error {
	return netspace.OwnThread(func() error { return inNewSpace(xdp) })
}

func inNewSpace(instructions asm.Instructions) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("create a network namespace: %w", err)
	}
	sender, receiver, err := testPair()
	if err != nil {
		return fmt.Errorf("create a veth pair: %w", err)
	}
	seen, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("create an eBPF map: %w", err)
	}
	defer seen.Close()
	xdp, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: instructions})
	if err != nil {
		return fmt.Errorf("load the XDP program: %w", err)
	}
	defer xdp.Close()
	tc, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: tcSeesMark(seen)})
	if err != nil {
		return fmt.Errorf("load the tc program: %w", err)
	}
	defer tc.Close()
	if err := attachTest(receiver, xdp, tc); err != nil {
		return err
	}
	for end := time.Now().Add(metaTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := sendTest(sender); err != nil {
			return fmt.Errorf("send a packet: %w", err)
		}
		var mark uint32
		if err := seen.Lookup(uint32(0), &mark); err != nil {
			return fmt.Errorf("read the eBPF map: %w", err)
		}
		if mark == testMark {
			return nil
		}
	}
	return fmt.Errorf("metadata that an XDP program wrote did not reach tc within %v", metaTimeout)
}

// testPair creates a veth pair and returns the ifindexes of both ends.
func testPair() (sender, receiver int, err error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "sender"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "receiver"}); err != nil {
		return 0, 0, err
	}
	var indexes [2]int
	for i, name := range []string{"sender", "receiver"} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return 0, 0, err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return 0, 0, err
		}
		indexes[i] = l.Attrs().Index
	}
	return indexes[0], indexes[1], nil
}

// attachTest attaches both programs to a device.
func attachTest(ifindex int, xdp, tc *ebpf.Program) error {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return err
	}
	if err := netlink.QdiscAdd(clsact(ifindex)); err != nil {
		return fmt.Errorf("add the qdisc clsact: %w", err)
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: ifindex, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          tc.FD(), Name: "metadata", DirectAction: true,
	}
	if err := netlink.FilterAdd(filter); err != nil {
		return fmt.Errorf("add the tc program: %w", err)
	}
	if err := netlink.LinkSetXdpFdWithFlags(l, xdp.FD(), int(link.XDPDriverMode)); err != nil {
		return fmt.Errorf("add the XDP program: %w", err)
	}
	return nil
}

// sendTest broadcasts a frame with an EtherType for local experiments (IEEE 802).
func sendTest(ifindex int) error {
	const protocol = 0x88b5
	frame := make([]byte, 60)
	copy(frame, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, protocol >> 8, protocol & 0xff})
	return sendFrame(ifindex, frame)
}

func sendFrame(ifindex int, frame []byte) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: ifindex})
}

// xdpWithMark writes testMark as the packet's metadata.
func xdpWithMark() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R2, -4),
		asm.FnXdpAdjustMeta.Call(),
		asm.JNE.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R1, asm.R6, xdpMeta, asm.Word),
		asm.LoadMem(asm.R2, asm.R6, xdpData, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R1),
		asm.Add.Imm(asm.R3, 4),
		asm.JGT.Reg(asm.R3, asm.R2, "pass"),
		asm.StoreImm(asm.R1, 0, testMark, asm.Word),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("pass"), // XDP_PASS
		asm.Return(),
	}
}

// tcSeesMark copies the 4 bytes of a packet's metadata to entry 0 of the map.
func tcSeesMark(seen *ebpf.Map) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, skbMeta, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, skbData, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R6),
		asm.Add.Imm(asm.R3, 4),
		asm.JGT.Reg(asm.R3, asm.R2, "pass"),
		asm.LoadMem(asm.R7, asm.R6, 0, asm.Word),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, seen.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.StoreMem(asm.R0, 0, asm.R7, asm.Word),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("pass"),
		asm.Return(),
	}
}
