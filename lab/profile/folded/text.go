package folded

import (
	"fmt"
	"strconv"
	"strings"
)

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

// ParseFolded reads folded stacks. They have samples only, no time and no
// category.
func ParseFolded(text string) ([]Stack, error) {
	var stacks []Stack
	for n, line := range strings.Split(text, "\n") {
		if line == "" {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return nil, fmt.Errorf("folded stacks, line %d: %.60q has no count; want program;function;… and, after a space, the number of samples", n+1, line)
		}
		count, err := strconv.ParseUint(line[at+1:], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("folded stacks, line %d: %.30q is no number of samples: %w", n+1, line[at+1:], err)
		}
		comm, rest, more := strings.Cut(line[:at], ";")
		s := Stack{Comm: comm, Count: count}
		if more {
			s.Frames = strings.Split(rest, ";")
		}
		stacks = append(stacks, s)
	}
	return stacks, nil
}
