// Package folded holds CPU profiles: stacks with their CPU time, each in one
// category. It converts a profile to a table by category, folded text, a pprof file
// or a flame graph. It uses no file, clock or kernel.
package folded

import (
	"fmt"
	"strings"
)

// Profile shows on which functions a node spent CPU time in one window, or in the
// windows of several trials (see Merge).
type Profile struct {
	Node string `json:"node"`
	Side string `json:"side"` // sender, receiver
	CPUs []int  `json:"cpus"` // the CPUs of the node, which were sampled
	// Seconds is the length of the window; in a merged profile the sum of all
	// windows. The stacks' Nanos add up to Seconds on every CPU.
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"`  // requested samples per second on each CPU
	Clock   string  `json:"clock"` // event that triggers samples: cpu-clock or cycles
	Samples uint64  `json:"samples"`
	Lost    uint64  `json:"lost,omitempty"` // samples that the full buffer lost; the next sample includes their time
	// Throttled counts how often the kernel reduced the rate of samples, because
	// sampling took too long (perf_event_max_sample_rate,
	// perf_cpu_time_max_percent).
	Throttled uint64   `json:"throttled,omitempty"`
	Stacks    []Stack  `json:"-"`                  // see wireForm
	Warnings  []string `json:"warnings,omitempty"` // sentences about missing names or inexact figures
}

// Stack is one call chain of one program.
type Stack struct {
	// Frames are functions, root first. Kernel functions end in "_[k]", as in
	// Brendan Gregg's folded stacks; BPF programs are bpf:NAME_[k].
	Frames   []string
	Comm     string // the program that was current; interrupts run in any
	Category string
	Count    uint64 // samples
	// Nanos is the CPU time of the samples. The time of a sample is the time since the
	// sample before it on the same CPU. 0 if only the number of samples is known.
	Nanos uint64
}

// KernelSuffix marks a kernel function.
const KernelSuffix = "_[k]"

// Categories that do not come from a table of rules.
const (
	Idle      = "idle"                    // the CPU slept or was about to
	Wire      = "fabric (the lab's wire)" // the testbed's wire, which the meter subtracts from the node's figures
	Generator = "generator"               // the traffic tool's own code
	Observer  = "observer"                // agent and engine
	Foreign   = "foreign"                 // programs that are no part of the trial
	Other     = "other"
	// Unseen is busy time by the meter without samples: the start and the end of
	// interrupts on an idle CPU, and wake-ups.
	Unseen = "waking and interrupts while idle (not sampled)"
)

// cpu returns the CPU seconds that a stack stands for.
func (p *Profile) cpu(s *Stack) float64 {
	if s.Nanos > 0 || p.Rate <= 0 {
		return float64(s.Nanos) / 1e9
	}
	return float64(s.Count) / p.Rate
}

// Folded writes the stacks as flamegraph.pl and its kin read them: one stack a
// line, program;root;…;leaf, a space and the samples. A semicolon inside a name
// becomes a colon, since the format has no way to quote it.
func (p *Profile) Folded() string {
	var b strings.Builder
	clean := strings.NewReplacer(";", ":", "\n", " ")
	for _, s := range p.Stacks {
		clean.WriteString(&b, s.Comm)
		for _, f := range s.Frames {
			b.WriteByte(';')
			clean.WriteString(&b, f)
		}
		fmt.Fprintf(&b, " %d\n", s.Count)
	}
	return b.String()
}
