package suite

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostErrors is the maximum number of errors that are reported for one file.
const mostErrors = 20

// Error is one mistake in a suite file.
type Error struct {
	File   string
	Line   int // from 1; 0 if the error has no position in the file
	Column int // from 1, in characters
	// Text is the line with the mistake, as in the file.
	Text    string
	Problem string // the mistake
	Remedy  string // how to correct it
}

// Error prints position, problem, the line with a caret under the column, and the
// remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + e.Problem)
	if e.Line > 0 {
		text, caret := excerpt(e.Text, e.Column)
		fmt.Fprintf(&b, "\n%6d | %s\n       | %s^", e.Line, text, strings.Repeat(" ", caret))
	}
	if e.Remedy != "" {
		b.WriteString("\n  " + e.Remedy)
	}
	return b.String()
}

// excerpt returns at most 100 characters of line around column. It replaces characters
// that a terminal cannot print. before is the number of returned characters before the
// column.
func excerpt(line string, column int) (text string, before int) {
	const most = 100
	runes := []rune(line)
	for i, c := range runes {
		if c == '\t' {
			runes[i] = ' '
		} else if !unicode.IsPrint(c) {
			runes[i] = utf8.RuneError
		}
	}
	before = min(max(column-1, 0), len(runes))
	if len(runes) <= most {
		return strings.TrimRight(string(runes), " "), before
	}
	start := min(max(before-most/2, 0), len(runes)-most)
	text = string(runes[start : start+most])
	if start > 0 {
		text, before = "…"+text, before+1
	}
	if start+most < len(runes) {
		text += "…"
	}
	return text, before - start
}

// Errors has all mistakes in a suite file, in the order of its lines.
type Errors []*Error

// Error prints every error, each with its line.
func (es Errors) Error() string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.Error()
	}
	return strings.Join(parts, "\n")
}

// Unwrap makes errors.As find the first *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// position is a line and a column in the file, both from 1. The zero value means no
// position.
type position struct{ line, column int }

// journal collects the errors of one file.
type journal struct {
	file  string
	lines []string
	errs  Errors
	more  int // errors beyond mostErrors
	calls int // of fail, with those for a position that already has an error
}

// full reports whether the journal only counts further errors, because it already has
// mostErrors.
func (j *journal) full() bool { return j.more > 0 }

// fail adds an error at p. It drops further errors at the same position, because they
// follow from the first one.
func (j *journal) fail(p position, problem, remedy string) {
	j.calls++
	e := &Error{File: j.file, Line: p.line, Column: p.column, Problem: problem, Remedy: remedy}
	if p.line > 0 && p.line <= len(j.lines) {
		e.Text = j.lines[p.line-1]
	}
	for _, old := range j.errs {
		if p.line > 0 && old.Line == p.line && old.Column == p.column {
			return
		}
	}
	if len(j.errs) >= mostErrors {
		j.more++
		return
	}
	j.errs = append(j.errs, e)
}

// result returns the errors in the order of their positions, or nil if there are none.
func (j *journal) result() error {
	if len(j.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(j.errs, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	if j.more > 0 {
		j.errs = append(j.errs, &Error{
			File:    j.file,
			Problem: fmt.Sprintf("there are more errors than these %d", mostErrors),
			Remedy:  "fix the ones above first",
		})
	}
	return j.errs
}
