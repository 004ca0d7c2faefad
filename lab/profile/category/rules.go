// Package category assigns each call chain to exactly one category, by rules
// (categories.tsv). It uses no file, clock or kernel.
package category

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
)

// Rules has the rules in order. It caches lookups, so only one goroutine may use it.
type Rules struct {
	rules []rule
	known map[string]int // symbol to the place of its rule, or passes
}

// rule is the effect of symbols on the category of a stack; see categories.tsv.
type rule struct {
	pattern  string
	category string
	verb     verb
}

// passes marks symbols without a rule: the caller's rule decides.
const passes = -1

// verb is the effect of a frame on its stack.
type verb string

const (
	decides verb = "decides" // the stack is of this category
	absorbs verb = "absorbs" // decides, also for lending frames below it
	lends   verb = "lends"   // decides, unless the next that decides absorbs
	looks   verb = "through" // leaves it to the caller
)

// none is the category of rules without a category.
const none = "-"

//go:embed categories.tsv
var standard string

// Standard returns the rules that the lab uses.
func Standard() (*Rules, error) { return parse(standard) }

// parse reads rules: lines of category, verb and symbol patterns, separated
// by tabs; the patterns among themselves by spaces. # begins a comment. A
// pattern is a glob (path.Match).
func parse(text string) (*Rules, error) {
	t := &Rules{known: map[string]int{}}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields := strings.Split(strings.TrimRight(line, " \t"), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("category rules, line %d: %d fields between tabs; want category, verb and patterns", n+1, len(fields))
		}
		r := rule{category: strings.TrimSpace(fields[0]), verb: verb(strings.TrimSpace(fields[1]))}
		switch r.verb {
		case decides, absorbs, lends, looks:
		default:
			return nil, fmt.Errorf("category rules, line %d: verb %q; it is one of decides, absorbs, lends, through", n+1, r.verb)
		}
		if (r.category == none) != (r.verb == looks) || r.category == "" {
			return nil, fmt.Errorf("category rules, line %d: every verb but through needs a category, and through has %q", n+1, none)
		}
		for _, r.pattern = range strings.Fields(fields[2]) {
			if _, err := path.Match(r.pattern, ""); err != nil {
				return nil, fmt.Errorf("category rules, line %d: pattern %q: %w", n+1, r.pattern, err)
			}
			t.rules = append(t.rules, r)
		}
	}
	if len(t.rules) == 0 {
		return nil, fmt.Errorf("category rules: it has no rule")
	}
	return t, nil
}

// find returns the rule of a kernel symbol, or nil. It ignores a suffix after a dot, which
// compilers add to parts of functions (tcp_ack.part.0, foo.isra.0).
func (t *Rules) find(symbol string) *rule {
	i, ok := t.known[symbol]
	if !ok {
		i = t.search(symbol)
		t.known[symbol] = i
	}
	if i == passes {
		return nil
	}
	return &t.rules[i]
}

func (t *Rules) search(symbol string) int {
	name := symbol
	if !strings.HasPrefix(name, "bpf:") {
		name, _, _ = strings.Cut(symbol, ".")
	}
	for i, r := range t.rules {
		if ok, _ := path.Match(r.pattern, name); ok { // patterns were checked by parse
			return i
		}
	}
	return passes
}
