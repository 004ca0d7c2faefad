package flowtest

import (
	"testing"

	"github.com/cilium/ebpf"

	"windtunnel/internal/must"
)

// What the verifier may need at most, with room for the habits of other
// kernels. It is far below what each of them allows, a million: callers pay
// nothing for it, since these are functions that are verified by themselves.
const mostInstructions = 12500

func TestTheVerifierNeedsFewInstructions(t *testing.T) {
	h := load(t)
	for name, p := range map[string]*ebpf.Program{"admit": h.Admit, "choose_member": h.Choose} {
		info := must.Get(p.Info())(t)
		n, ok := info.VerifiedInstructions()
		if !ok {
			t.Skip("the kernel does not say how many instructions it verified: Linux 5.16 does")
		}
		if n == 0 || n > mostInstructions {
			t.Errorf("%s: %d instructions verified, want at most %d", name, n, mostInstructions)
		}
		t.Logf("%s: %d instructions verified", name, n)
	}
}
