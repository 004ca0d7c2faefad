// Package program says what an executable is that a tool or a system needs,
// and where a person gets it.
package program

import (
	"strconv"
	"strings"
)

// Program is an executable that has to be installed.
type Program struct {
	Name    string   // looked up in PATH
	Also    []string // other names that some systems give it
	Package string   // where a Debian-like system has it, with component if not main; or how to build it
	Version []string // argv that prints its version
	// Least is the oldest version that serves, such as "3.4"; empty where every
	// one does.
	Least string
	// Module is the Go package that `go install` makes it of, such as
	// "example.org/cmd/x@v1.2.3"; empty where it is none. It is then looked for
	// where `go install` puts programs too, which PATH often lacks.
	Module string
}

// Serves reports whether what a program said of its version is Least or newer.
// Words without a number say nothing against it.
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

// numbers are the parts of the first version in a text: "v0.26.7" is 0, 26, 7.
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
