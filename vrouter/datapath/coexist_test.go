package datapath

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func TestAHookThatWasThereBeforeStays(t *testing.T) {
	devices := enterSpace(t, 1)
	d := attaching(t, true, true)
	l := must.Get(netlink.LinkByIndex(devices[0]))(t)
	must.Succeed(t, netlink.QdiscAdd(clsact(devices[0])))
	must.Succeed(t, d.AttachVif(devices[0]))
	must.Succeed(t, d.AttachVif(devices[0]))
	must.Succeed(t, d.Detach(devices[0]))
	if ours, _, err := d.ourFilters(devices[0]); err != nil || len(ours) != 0 || !hasClsact(l) {
		t.Errorf("filters left: %v, clsact hook there: %v, %v", ours, hasClsact(l), err)
	}
}

func TestDetachIsDoneWhenItReturns(t *testing.T) {
	devices := enterSpace(t, 1)
	d := attaching(t, false, false)
	for i := range 30 {
		f, err := d.AttachFabric(devices[0], "")
		if err != nil || f.Mode != "xdp+tcx" {
			t.Fatalf("round %d: %+v, %v", i, f, err)
		}
		must.Succeed(t, d.Detach(devices[0]))
		l := must.Get(netlink.LinkByIndex(devices[0]))(t)
		if l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached {
			t.Fatalf("round %d: XDP is still attached after Detach", i)
		}
		q, err := link.QueryPrograms(link.QueryOptions{Target: devices[0], Attach: ebpf.AttachTCXIngress})
		if err != nil || len(q.Programs) != 0 {
			t.Fatalf("round %d: tcx still has %v, %v", i, q, err)
		}
	}
}

func TestVRoutersProgramRunsBeforeForeignProgramsOfADevice(t *testing.T) {
	devices := enterSpace(t, 1)
	d := attaching(t, false, false, devices[0])
	accept := passing(t, ebpf.SchedCLS, 0)
	theirs, err := link.AttachTCX(link.TCXOptions{Interface: devices[0], Program: accept, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		t.Skip("attaching a foreign tcx program: " + err.Error())
	}
	defer theirs.Close()
	must.Get(d.AttachFabric(devices[0], ""))(t)
	q, err := link.QueryPrograms(link.QueryOptions{Target: devices[0], Attach: ebpf.AttachTCXIngress})
	if err != nil || len(q.Programs) != 2 {
		t.Fatalf("%+v, %v", q, err)
	}
	info := must.Get(d.programs.FabricTc.Info())(t)
	if id, _ := info.ID(); q.Programs[0].ID != id {
		t.Errorf("the first program is %d, ours is %d", q.Programs[0].ID, id)
	}
}

// passing is a program of somebody else's.
func passing(t *testing.T, kind ebpf.ProgramType, verdict int32) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: kind, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()}})
	must.Succeed(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func TestForeignFiltersAndXDPProgramsStay(t *testing.T) {
	for _, c := range []struct {
		noTCX bool
		mode  string
	}{{false, "tcx"}, {true, "clsact"}} {
		t.Run(c.mode, func(t *testing.T) {
			devices := enterSpace(t, 1)
			d := attaching(t, c.noTCX, false)
			must.Succeed(t, netlink.QdiscAdd(clsact(devices[0])))
			unspecified := passing(t, ebpf.SchedCLS, -1)
			for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
				f := &netlink.BpfFilter{
					FilterAttrs: netlink.FilterAttrs{LinkIndex: devices[0], Parent: parent, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
					Fd:          unspecified.FD(), Name: "theirs", DirectAction: true,
				}
				must.Succeed(t, netlink.FilterAdd(f))
			}
			theirs, err := link.AttachXDP(link.XDPOptions{Interface: devices[0], Program: passing(t, ebpf.XDP, 2), Flags: link.XDPDriverMode})
			must.Succeed(t, err)
			defer theirs.Close()

			f, err := d.AttachFabric(devices[0], "")
			if err != nil || f.Mode != c.mode || f.Why != "another XDP program is there already" {
				t.Errorf("%+v, %v", f, err)
			}
			must.Succeed(t, d.Detach(devices[0]))
			if ours, others, err := d.ourFilters(devices[0]); err != nil || len(ours) != 0 || others != 2 {
				t.Errorf("%d of ours, %d others, %v", len(ours), others, err)
			}
			if info, err := theirs.Info(); err != nil || info.XDP().Ifindex != uint32(devices[0]) {
				t.Errorf("the foreign XDP program: %+v, %v", info, err)
			}
		})
	}
}

func hasClsact(l netlink.Link) bool {
	all, err := netlink.QdiscList(l)
	return err == nil && slices.ContainsFunc(all, func(q netlink.Qdisc) bool { return q.Type() == "clsact" })
}

// TestPacketsOfAnotherAgentAreCounted: the XDP program of an earlier agent still decapsulates, and
// its metadata have another nonce.
func TestPacketsOfAnotherAgentAreCounted(t *testing.T) {
	devices := enterSpace(t, 3)
	fabric := devices[2]
	earlier, d := open(t, Options{Pins: pins(t)}), attaching(t, false, false, fabric)
	for _, each := range []*Datapath{earlier, d} {
		must.Get(each.Apply(scene(devices[0], devices[1], fabric, model.MPLSoUDP, false)))(t)
	}
	must.Get(d.attachTC(hookFabric, fabric, true))(t)
	must.Succeed(t, earlier.attachXDP(fabric))
	peer := must.Get(netlink.LinkByName("p2"))(t)
	ip := packet(t, addrB, addrA, 0, 9, "x")
	counted := layout.DropKey{Reason: reasonNumber(t, "other_agent")}
	for i, outer := range [][]byte{
		wrapped(t, model.MPLSoUDP, false, 18, 0, ip),
		wrapped(t, model.VXLAN, false, 1001, 0, frame(macB, macA, ip)),
	} {
		must.Succeed(t, sendFrame(peer.Attrs().Index, outer))
		must.Eventually(t, fmt.Sprintf("after packet %d", i), func() error {
			drops, err := d.Drops()
			if drops[counted] != uint64(i)+1 {
				err = fmt.Errorf("the drops are %v, want %d with reason other_agent (%w)", drops, i+1, err)
			}
			return err
		})
	}
}

// TestACutPacketOfAnotherAgentIsCounted: a packet that an earlier agent's programs let the kernel
// cut comes back by the loopback device with another mark.
func TestACutPacketOfAnotherAgentIsCounted(t *testing.T) {
	r := newRig(t, model.VXLAN, true, nil)
	_, outer := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "hello")))
	before := must.Get(r.Drops())(t)
	if code, _ := r.runMarked(t, r.programs.Looped, loopback, outer, r.nonce[0]+2); code != actShot {
		t.Errorf("action %d, want the packet dropped", int32(code))
	}
	must.Equal(t, "other_agent", r.drop(t, before))
	host := frame(macA, macB, packet(t, far, local, 0, 64, "a packet of the host"))
	if code, _ := r.runMarked(t, r.programs.Looped, loopback, host, 0); code != actUnspec {
		t.Errorf("action %d, want the host's packet to pass", int32(code))
	}
}

// reasonNumber returns the number of a drop reason.
func reasonNumber(t *testing.T, name string) uint32 {
	t.Helper()
	for _, r := range reasons {
		if r.Name == name {
			return r.Number
		}
	}
	t.Fatalf("there is no drop reason %s", name)
	return 0
}
