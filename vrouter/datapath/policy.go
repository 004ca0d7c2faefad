package datapath

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

// encodePolicy returns a policy with its first rules, and its other rules by their keys.
func encodePolicy(id uint32, f fib.Policy) (v layout.Policy, more map[layout.RulesKey]layout.RuleChunk, err error) {
	if len(f.Rules) > layout.MaxRules {
		return v, nil, fmt.Errorf("policy of vif %d: %d rules, at most %d are allowed; merge some", id, len(f.Rules), layout.MaxRules)
	}
	v.AllowIn, v.AllowOut, v.Rules = layout.If[uint8](f.AllowIn, 1), layout.If[uint8](f.AllowOut, 1), uint16(len(f.Rules))
	v.Group, v.Revision, v.ClosedIn, v.ClosedOut = f.Group.Number, f.Revision, layout.If[uint8](f.Group.In, 1), layout.If[uint8](f.Group.Out, 1)
	chunks := make([]layout.RuleChunk, max(1, (len(f.Rules)+layout.ChunkRules-1)/layout.ChunkRules))
	for i, r := range f.Rules {
		chunks[i/layout.ChunkRules].Rule[i%layout.ChunkRules] = r
	}
	v.First = chunks[0]
	sum := crc32.NewIEEE()
	for _, part := range []any{&v, chunks[1:]} {
		if err := binary.Write(sum, binary.LittleEndian, part); err != nil {
			return v, nil, fmt.Errorf("policy of vif %d: %w", id, err)
		}
	}
	v.Generation = sum.Sum32()
	more = map[layout.RulesKey]layout.RuleChunk{}
	for i, c := range chunks[1:] {
		more[layout.RulesKey{Vif: id, Generation: v.Generation, Chunk: uint32(i + 1)}] = c
	}
	return v, more, nil
}

func decodePolicy(id uint32, v *layout.Policy, more map[layout.RulesKey]layout.RuleChunk) fib.Policy {
	f := fib.Policy{AllowIn: v.AllowIn != 0, AllowOut: v.AllowOut != 0, Group: fib.Group{Number: v.Group, In: v.ClosedIn != 0, Out: v.ClosedOut != 0}, Revision: v.Revision}
	chunk := v.First
	for i := range int(min(v.Rules, layout.MaxRules)) {
		if n := i / layout.ChunkRules; n > 0 && i%layout.ChunkRules == 0 {
			chunk = more[layout.RulesKey{Vif: id, Generation: v.Generation, Chunk: uint32(n)}]
		}
		f.Rules = append(f.Rules, chunk.Rule[i%layout.ChunkRules])
	}
	return f
}
