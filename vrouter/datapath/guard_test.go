package datapath

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// runMarked runs a program for a frame with a mark. It returns the action, and the mark
// that the program leaves.
func (r *rig) runMarked(t *testing.T, p *ebpf.Program, ifindex int, frame []byte, mark uint32) (code, after uint32) {
	t.Helper()
	const contextMark = 8 // offset in struct __sk_buff
	in, out := make([]byte, contextBytes), make([]byte, contextBytes)
	binary.NativeEndian.PutUint32(in[contextIfindex:], uint32(ifindex))
	binary.NativeEndian.PutUint32(in[contextMark:], mark)
	code = must.Get(p.Run(&ebpf.RunOptions{Data: frame, Context: in, ContextOut: out}))(t)
	return code, binary.NativeEndian.Uint32(out[contextMark:])
}

// TestTheGuardPassesAMarkedPacketAgain: a program after fabric_out may clone a
// tunnel packet and send the clone through fabric_out again. So fabric_out must not
// clear the mark.
func TestTheGuardPassesAMarkedPacketAgain(t *testing.T) {
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, nil)
		_, outer := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "hello")))
		own := r.nonce[0]
		if code, left := r.runMarked(t, r.programs.FabricOut, r.fabric, outer, own); code != actUnspec || left != own {
			t.Errorf("action %d and mark %#x, want the packet to pass with its mark %#x", int32(code), left, own)
		}
		if code, _ := r.runMarked(t, r.programs.FabricOut, r.fabric, outer, 0); code != actShot {
			t.Errorf("action %d without the mark, want the packet dropped", int32(code))
		}
	})
}
