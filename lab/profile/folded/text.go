package folded

import (
	"fmt"
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
