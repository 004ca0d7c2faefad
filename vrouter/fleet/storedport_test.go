package fleet

import (
	"testing"
	"unsafe"

	"windtunnel/internal/must"
)

// An agent keeps up to 100,000 ports and more. With 8 bytes more, each would take 96 bytes.
func TestAStoredPortIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(storedPort{}); size > 80 {
		t.Errorf("a stored port has %d bytes, want at most 80", size)
	}
}

func TestThePortsOfAPlaceShareIt(t *testing.T) {
	f := openFile(t)
	apply(t, f, small())
	x := add(t, f, port("x"))
	add(t, f, port("y"))
	must.Succeed(t, f.Look(ctx(t), func(v *View) {
		if all := v.membersOn(x.Network, x.Node); len(all) != 2 || all[0].Place != all[1].Place {
			t.Errorf("ports of one place: %+v, want two with the same place", all)
		}
	}))
}
