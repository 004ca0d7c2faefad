package category

import (
	"cmp"
	"strings"

	"windtunnel/lab/profile/folded"
)

// Role is what the program of a stack has to do with the trial.
type Role string

// The roles. Kernel threads, idle among them, have RoleKernel.
const (
	RoleTool     Role = "tool"
	RoleObserver Role = "observer"
	RoleForeign  Role = "foreign"
	RoleKernel   Role = "kernel"
)

// interrupted are the kernel functions below which a CPU no longer works for
// the program that happens to be current. What softirqs do at the end of a
// program's own system call (do_softirq) may be another's work too.
var interrupted = []string{"handle_softirqs", "__do_softirq", "asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "sysvec_", "common_interrupt"}

// Of returns the category of one stack. Frames are root first, kernel
// functions with folded.KernelSuffix.
//
// What a program other than the tool does in its own name is that program's,
// whatever the function. Else the walk goes from the leaf to the root and the
// first frame with a rule decides; user code of the tool is the generator. A
// stack in which no frame has a rule is other.
func (t *Table) Of(frames []string, role Role) string {
	if (role == RoleObserver || role == RoleForeign) && !isInterrupted(frames) {
		return ofProgram(role)
	}
	lent := ""
	for i := len(frames) - 1; i >= 0; i-- {
		symbol, kernel := strings.CutSuffix(frames[i], folded.KernelSuffix)
		if !kernel {
			// The kernel frames told nothing, so it is the program's own time,
			// or of an interrupt too short to have a name.
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

// program follows a BPF function to the program that called it: the outermost
// of adjacent BPF frames.
func (t *Table) program(callers []string, category string) string {
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
