package netns

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// numberQueues makes each receive queue of a veth device wake the peer's transmit queue that
// waits for it. The device must be up, with NAPI and several receive queues.
//
// When a receive queue has room again, a veth wakes the peer's transmit queue of the same
// number. The number is in the receive queue's XDP data (veth_poll, drivers/net/veth.c),
// which only an XDP program sets. Without it every receive queue wakes the peer's queue 0,
// and the others stop for ever when their ring is full. The number stays when the program
// is removed.
func numberQueues(s *space.Space, l netlink.Link) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "pass", Type: ebpf.XDP, License: "GPL", Flags: unix.BPF_F_XDP_HAS_FRAGS, // for jumbo frames
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}, // XDP_PASS
	})
	if errors.Is(err, unix.EINVAL) {
		return nil // before Linux 5.18, which has the flag, a veth stops no queue
	}
	if err != nil {
		return fmt.Errorf("load a program that numbers the receive queues of %s: %w", l.Attrs().Name, err)
	}
	defer p.Close()
	for _, fd := range []int{p.FD(), -1} {
		err := s.Do(func() error { return netlink.LinkSetXdpFdWithFlags(l, fd, unix.XDP_FLAGS_DRV_MODE) })
		if err != nil {
			return fmt.Errorf("number the receive queues of %s by an XDP program: %w", l.Attrs().Name, err)
		}
	}
	return nil
}
