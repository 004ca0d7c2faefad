package category

import (
	"cmp"
	"strings"

	"windtunnel/lab/profile/folded"
)

// Role is the role of a stack's program in the trial.
type Role string

// The roles. Kernel threads, idle among them, have RoleKernel.
const (
	RoleTool     Role = "tool"
	RoleObserver Role = "observer"
	RoleForeign  Role = "foreign"
	RoleKernel   Role = "kernel"
)

// interrupted lists the kernel functions of interrupts. Below them a CPU does not work for
// the current program. Softirqs at the end of a program's system call (do_softirq) can also
// be work for another program.
var interrupted = []string{"handle_softirqs", "__do_softirq", "asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "sysvec_", "common_interrupt"}

// Of returns the category of one stack. Frames are root first, kernel
// functions with folded.KernelSuffix.
//
// Time of a program other than the tool, outside interrupts, belongs to that program. For
// other stacks the first frame with a rule decides, from the leaf to the root. User code of
// the tool is the generator. A stack without a rule has the category other.
func (t *Rules) Of(frames []string, role Role) string {
	if (role == RoleObserver || role == RoleForeign) && !isInterrupted(frames) {
		return ofProgram(role)
	}
	lent := ""
	for i := len(frames) - 1; i >= 0; i-- {
		symbol, kernel := strings.CutSuffix(frames[i], folded.KernelSuffix)
		if !kernel {
			// No kernel frame has a rule, so it is the program's time, or a very short
			// interrupt.
			return cmp.Or(lent, ofProgram(role))
		}
		r := t.find(symbol)
		if r == nil || r.verb == looks {
			continue
		}
		switch r.verb {
		case lends:
			if lent == "" {
				lent = r.category
			}
		case absorbs:
			return t.program(frames[:i], r.category)
		default:
			return cmp.Or(lent, r.category)
		}
	}
	return cmp.Or(lent, folded.Other)
}

// program returns the BPF program that called a BPF function: the outermost of adjacent BPF
// frames.
func (t *Rules) program(callers []string, category string) string {
	for i := len(callers) - 1; i >= 0; i-- {
		symbol := strings.TrimSuffix(callers[i], folded.KernelSuffix)
		if !strings.HasPrefix(symbol, "bpf:") {
			break
		}
		if r := t.find(symbol); r != nil && r.category != none {
			category = r.category
		}
	}
	return category
}

func ofProgram(role Role) string {
	switch role {
	case RoleTool:
		return folded.Generator
	case RoleObserver:
		return folded.Observer
	case RoleForeign:
		return folded.Foreign
	}
	return folded.Other
}

func isInterrupted(frames []string) bool {
	for _, f := range frames {
		for _, start := range interrupted {
			if strings.HasPrefix(f, start) {
				return true
			}
		}
	}
	return false
}
