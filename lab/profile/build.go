package profile

import (
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
	table  *category.Table
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
	if b.table, err = category.Standard(); err != nil {
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
	st.Category = b.table.Of(st.Frames, role)
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
