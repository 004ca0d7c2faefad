// Package program describes the executables that tools and systems need, and how to
// install them.
package program

import (
	"cmp"
	"strconv"
	"strings"

	"windtunnel/internal/setup"
)

// Program is an executable that must be installed.
type Program struct {
	Name    string   // looked up in PATH
	Also    []string // names of the executable on other systems
	Build   string   // how to get it, if no package of Debian has it
	Version []string // argv that prints its version
	// Least is the oldest usable version, such as "3.4"; empty if every version is
	// usable.
	Least string
	// Module is the Go package for `go install`, such as
	// "example.org/cmd/x@v1.2.3", or empty. Such a program is also searched for in
	// the folders of `go install`, which PATH often lacks.
	Module string
}

// Remedy returns the command that installs the program, or how to build it.
func (p Program) Remedy() string { return cmp.Or(p.Build, setup.Command(p.Name)) }

// Serves reports whether a program's version text is Least or newer. A text without
// a number passes.
func (p Program) Serves(said string) bool {
	want, have := numbers(p.Least), numbers(said)
	if len(want) == 0 || len(have) == 0 {
		return true
	}
	for i, w := range want {
		h := 0
		if i < len(have) {
			h = have[i]
		}
		if h != w {
			return h > w
		}
	}
	return true
}

// numbers returns the parts of the first version in a text: 0, 26, 7 for "v0.26.7".
func numbers(text string) []int {
	start := strings.IndexFunc(text, func(r rune) bool { return r >= '0' && r <= '9' })
	if start < 0 {
		return nil
	}
	text = text[start:]
	if end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		text = text[:end]
	}
	var ns []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		ns = append(ns, n)
	}
	return ns
}
