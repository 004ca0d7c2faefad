package netns

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// lossDevices names the pair of devices before a port that loses frames. The wire sends superframes out of the near device,
// which cuts them into frames. The far device drops some frames, and GRO merges the others. They go on to the port, which cuts
// them again.
func lossDevices(port string) (near, far string) { return "near" + port, "far" + port }

// configureLoss adds the pair of devices before a port that loses frames.
func (w *wire) configureLoss(port string, f suite.Fabric) error {
	near, far := lossDevices(port)
	toNear, toFar, err := w.addPair(near, far, f.MTU, suite.OffloadNone)
	if err != nil {
		return err
	}
	return errors.Join(
		w.space.Offloads(far, map[string]bool{"rx-gro": true}),
		lengthen(w.space, toNear), addQueue(w.space, toNear, 1),
		w.lose(toFar, f.Loss),
		attachProgram(w.space, toFar, netlink.HANDLE_MIN_INGRESS, w.objects.Wire, wireProgWire),
		w.space.Up(near), w.space.Up(far),
	)
}

// addPair adds a pair of devices to the wire's namespace. The superframes of a profile cross the
// pair whole; the kernel cuts others.
func (w *wire) addPair(near, far string, mtu int, whole suite.Offload) (toNear, toFar netlink.Link, err error) {
	if err := w.space.Pair(space.Veth{Name: near, PeerName: far, MTU: mtu, Queues: 1}, w.space); err != nil {
		return nil, nil, err
	}
	for _, device := range []string{near, far} {
		on, err := w.space.OffloadsOn(device)
		if err != nil {
			return nil, nil, err
		}
		off := testbed.NICOffloads(on, whole)
		off["rx-gro"] = false
		if err := errors.Join(w.space.Offloads(device, off), w.space.DeviceSysctl("ipv6", device, "disable_ipv6", "1")); err != nil {
			return nil, nil, err
		}
	}
	toNear, err = w.space.Link(near)
	if err != nil {
		return nil, nil, err
	}
	toFar, err = w.space.Link(far)
	return toNear, toFar, err
}

// lose makes a device lose a share of the frames that it receives, at random.
func (w *wire) lose(l netlink.Link, share float64) error {
	const drop, pass = 1, 2 // XDP_DROP, XDP_PASS
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "lose", Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.FnGetPrandomU32.Call(),
			asm.LoadImm(asm.R1, int64(share*(1<<32)), asm.DWord),
			asm.JLT.Reg(asm.R0, asm.R1, "lost"),
			asm.Mov.Imm(asm.R0, pass),
			asm.Return(),
			asm.Mov.Imm(asm.R0, drop).WithSymbol("lost"),
			asm.Return(),
		},
	})
	if err == nil {
		defer p.Close() // the device holds it from then on
		err = w.space.Do(func() error { return netlink.LinkSetXdpFdWithFlags(l, p.FD(), unix.XDP_FLAGS_DRV_MODE) })
	}
	if err != nil {
		return fmt.Errorf("lose frames by XDP on %s (needs Linux 5.18): %w", l.Attrs().Name, err)
	}
	return nil
}
