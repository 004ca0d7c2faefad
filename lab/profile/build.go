package profile

import (
	"errors"
	"fmt"
	"slices"

	"windtunnel/lab/profile/category"
	"windtunnel/lab/profile/folded"
)

// builder converts samples to stacks of names with categories. It finds the names of equal
// chains of one process only once.
type builder struct {
	s      *Sampler
	cast   Cast
	kernel symbols
	hidden error // why kernel functions have no names
	files  files
	rules  *category.Rules
	roles  map[uint32]category.Role
	found  map[chainOf]int // place in list
	list   []folded.Stack
	rest   uint64 // idle time without a sample, ns
	unseen uint64 // busy time by the meter without a sample, ns
}

type chainOf struct {
	pid   uint32
	chain int32
	wire  bool
}

func newBuilder(s *Sampler, cast Cast) (*builder, error) {
	b := &builder{s: s, cast: cast, files: files{}, roles: map[uint32]category.Role{}, found: map[chainOf]int{}}
	var err error
	if b.rules, err = category.Standard(); err != nil {
		return nil, err
	}
	b.kernel, b.hidden = readKernelSymbols()
	return b, nil
}

// add counts a sample and returns its category.
func (b *builder) add(s *sample, nanos uint64) string {
	key := chainOf{s.pid, s.chain, s.wire}
	i, ok := b.found[key]
	if !ok {
		i = len(b.list)
		b.found[key] = i
		b.list = append(b.list, b.stack(s))
	}
	b.list[i].Count++
	b.list[i].Nanos += nanos
	return b.list[i].Category
}

func (b *builder) stack(s *sample) folded.Stack {
	st := folded.Stack{Frames: b.frames(s), Comm: "[unknown]"}
	if p := b.s.processes[s.pid]; p != nil && p.comm != "" {
		st.Comm = p.comm
	}
	if s.wire {
		st.Category = folded.Wire
		return st
	}
	role, ok := b.roles[s.pid]
	if !ok {
		role = b.s.processes.role(s.pid, b.cast)
		b.roles[s.pid] = role
	}
	st.Category = b.rules.Of(st.Frames, role)
	return st
}

// Entries of a call chain that give the kind of the following entries (enum
// perf_callchain_context).
const (
	contextFirst = ^uint64(4095) + 1 // this and above: no address
	contextUser  = ^uint64(512) + 1
)

// frames returns the function names of a chain, root first.
func (b *builder) frames(s *sample) []string {
	chain := []byte(b.s.chainList[s.chain])
	var frames []string
	user, leaf := false, true
	for ; len(chain) >= 8; chain = chain[8:] {
		address := native.Uint64(chain)
		if address >= contextFirst {
			user, leaf = address == contextUser, true
			continue
		}
		if !leaf {
			address-- // a return address may be the first of the next function
		}
		leaf = false
		if user {
			frames = append(frames, userName(b.files, s.pid, b.s.processes[s.pid], address))
		} else {
			frames = append(frames, kernelFunction(b.kernel, address)+folded.KernelSuffix)
		}
	}
	slices.Reverse(frames)
	return frames
}

// stacks returns all stacks, and the time without samples. Busy time without samples is
// subtracted from the idle time: interrupts are off during this time, so the next sample is
// taken in the idle loop.
func (b *builder) stacks() []folded.Stack {
	unseen := b.unseen
	take := func(from *uint64) {
		n := min(*from, unseen)
		*from -= n
		unseen -= n
	}
	take(&b.rest)
	for i := range b.list {
		if b.list[i].Category == folded.Idle {
			take(&b.list[i].Nanos)
		}
	}
	list := append(b.list, folded.Stack{Comm: idleComm, Frames: []string{"[no samples]"}, Category: folded.Idle, Nanos: b.rest})
	if n := b.unseen - unseen; n > 0 {
		list = append(list, folded.Stack{Comm: idleComm, Frames: []string{"[not seen by samples]"}, Category: folded.Unseen, Nanos: n})
	}
	return folded.Unite(list)
}

func (b *builder) warnings() []string {
	if b.hidden == nil {
		return nil
	}
	return []string{fmt.Sprintf("Kernel functions have no names, and so most categories are missing: %v.", b.hidden)}
}

// share divides a CPU's part of the window: each of its samples stands for Each
// nanoseconds, and no sample stands for Rest.
type share struct {
	first, end int // the samples within the window: [first, end)
	each       uint64
	rest       uint64
}

// weigh returns the samples of one CPU in the window and the time for which each stands:
// the sampling period, which the kernel keeps on a fixed grid (hrtimer_forward_now,
// perf_swevent_hrtimer). Points of the grid without a sample are idle time: a host is slow
// to wake an idle virtual CPU, and some kernels do not sample the idle task of secondary
// CPUs. A full ring loses samples of every kind alike, so the other samples also stand for
// the lost ones.
func weigh(samples []sample, w Window, rate int, lost uint64) (share, error) {
	s := share{each: uint64(1e9) / uint64(rate)}
	for s.first < len(samples) && samples[s.first].time <= uint64(w.From) {
		s.first++
	}
	s.end = s.first
	for s.end < len(samples) && samples[s.end].time <= uint64(w.To) {
		s.end++
	}
	n, window := uint64(s.end-s.first), uint64(w.To-w.From)
	if n == 0 {
		if len(samples) == 0 && lost > 0 {
			return s, errors.New("every sample was lost")
		}
		s.rest = window
		return s, nil
	}
	if lost > 0 {
		s.each = uint64(float64(s.each) * (1 + float64(lost)/float64(len(samples))))
	}
	s.each = min(s.each, window/n)
	s.rest = window - n*s.each
	return s, nil
}
