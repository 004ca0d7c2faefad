package datapath

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/model"
)

// TestTheGuardLetsAMarkedPacketPassAgain: a program after fabric_out may clone a
// tunnel packet and send the clone through fabric_out again. So fabric_out must not
// clear the mark.
func TestTheGuardLetsAMarkedPacketPassAgain(t *testing.T) {
	const contextMark, actUnspec, actShot = 8, 1<<32 - 1, 2 // offset in struct __sk_buff; linux/pkt_cls.h
	everyTunnel(t, func(t *testing.T, encap model.Encapsulation, v6 bool) {
		r := newRig(t, encap, v6, nil)
		_, outer := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, packet(t, addrA, addrB, 0, 64, "hello")))
		guard := func(mark uint32) (code, left uint32) {
			context, after := make([]byte, contextBytes), make([]byte, contextBytes)
			binary.NativeEndian.PutUint32(context[contextIfindex:], uint32(r.fabric))
			binary.NativeEndian.PutUint32(context[contextMark:], mark)
			code, err := r.programs.FabricOut.Run(&ebpf.RunOptions{Data: outer, Context: context, ContextOut: after})
			if err != nil {
				t.Fatal(err)
			}
			return code, binary.NativeEndian.Uint32(after[contextMark:])
		}
		own := r.nonce[0]
		if code, left := guard(own); code != actUnspec || left != own {
			t.Errorf("action %d and mark %#x, want the packet to pass with its mark %#x", int32(code), left, own)
		}
		if code, _ := guard(0); code != actShot {
			t.Errorf("action %d without the mark, want the packet dropped", int32(code))
		}
	})
}
