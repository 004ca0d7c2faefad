package datapath

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// deliveryMark is DELIVERY_MARK of bpf/mark.h.
const deliveryMark = 0x76720000

// newNetkitRig is a rig whose first vif is a netkit device in the maps.
func newNetkitRig(t *testing.T) *rig {
	t.Helper()
	return newRig(t, model.VXLAN, false, func(tables *fib.Tables) {
		for ifindex, v := range tables.Vifs {
			v.Flags |= layout.VifNetkit
			tables.Vifs[ifindex] = v
		}
	})
}

// At netkit's hook, only frames to be routed leave. Bridged frames continue to the ingress
// and are not counted, because they are counted there.
func TestOnlyRoutedFramesLeaveFromNetkitsHook(t *testing.T) {
	r := newNetkitRig(t)
	routed := frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "hello"))
	bridged := frame(macA, macB, packet(t, addrA, addrB, 0, 64, "hello"))
	// runMarked leaves ingress_ifindex 0, as at netkit's hook.
	if code, _ := r.runMarked(t, r.programs.FromWorkload, r.vif, bridged, 0); code != actUnspec {
		t.Errorf("a bridged frame at netkit's hook: action %d, want it to continue", int32(code))
	}
	if stats, err := r.VifStats(); err != nil || stats[1].RxPackets != 0 {
		t.Errorf("counted %+v, %v, want nothing", stats[1], err)
	}
	if code, _ := r.runMarked(t, r.programs.FromWorkload, r.vif, routed, 0); code != actRedirect {
		t.Errorf("a routed frame at netkit's hook: action %d, want a redirect", int32(code))
	}
	if code, _ := r.run(t, r.programs.FromWorkload, r.vif, bridged); code != actRedirect {
		t.Errorf("a bridged frame at the ingress: action %d, want a redirect", int32(code))
	}
	if stats, err := r.VifStats(); err != nil || stats[1].RxPackets != 2 {
		t.Errorf("counted %+v, %v, want 2 packets", stats[1], err)
	}
}

// The kernel does not classify frames that netkit delivers. So a decapsulated frame that is
// not IP enters the netkit device, with a mark by which from_workload sends it to the workload.
func TestAnotherProtocolEntersTheNetkitDevice(t *testing.T) {
	r := newNetkitRig(t)
	inner := append(append(append([]byte{}, macA[:]...), macB[:]...), 0x88, 0xb6)
	inner = append(inner, make([]byte, 46)...)
	code, mark := r.runMarked(t, r.programs.FabricTc, r.fabric, wrapped(t, model.VXLAN, false, labelOf(model.VXLAN, true), 0, inner), 0)
	if code != actRedirect || mark != deliveryMark {
		t.Fatalf("fabric_tc: action %d and mark %#x, want a redirect with mark %#x", int32(code), mark, deliveryMark)
	}
	ip := frame(macB, macA, packet(t, addrB, addrA, 0, 64, "hello"))
	if code, mark = r.runMarked(t, r.programs.FabricTc, r.fabric, wrapped(t, model.VXLAN, false, labelOf(model.VXLAN, true), 0, ip), 0); code != actRedirect || mark != 0 {
		t.Errorf("an IP packet: action %d and mark %#x, want a redirect without a mark", int32(code), mark)
	}
}

// A process on the node can set the mark of frames to the workload. Its frame has a socket,
// as frames of this test have, and must be judged.
func TestAFrameOfAProcessWithTheMarkOfDeliveriesIsJudged(t *testing.T) {
	r := newNetkitRig(t)
	spoofed := frame(macB, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "hello"))
	if code, _ := r.runMarked(t, r.programs.FromWorkload, r.vif, spoofed, deliveryMark); code != actShot {
		t.Errorf("a frame with the MAC address of another port: action %d, want it dropped", int32(code))
	}
}

// A tagged frame of a workload is dropped at netkit's hook too. The kernel removes a tag from
// the bytes of a frame at the ingress of a device, but not at this hook.
func TestATaggedFrameToTheRouterDoesNotLeaveFromNetkitsHook(t *testing.T) {
	r := newNetkitRig(t)
	for name, tag := range map[string]byte{"a VLAN": 5, "a priority": 0} {
		inner := packet(t, addrC, addrB, 0, 64, "hello") // the source is another workload's
		b := append(append(append([]byte{}, model.RouterMAC[:]...), macA[:]...), 0x81, 0, 0, tag, 0x08, 0)
		b = append(b, inner...)
		before := must.Get(r.Drops())(t)
		code, _ := r.runMarked(t, r.programs.FromWorkload, r.vif, b, 0)
		if reason := r.drop(t, before); code != actUnspec && reason != "vlan" {
			t.Errorf("a frame with the tag of %s: action %d and drop reason %s, want reason vlan, or that it continues to the ingress", name, int32(code), reason)
		}
	}
}
