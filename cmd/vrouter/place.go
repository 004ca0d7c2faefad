package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Errors of a state file as the parser words them.
var (
	placedError = regexp.MustCompile(`^:(\d+):(\d+): `)
	quoted      = regexp.MustCompile(`"([^"]+)"`)
)

// wordings are what a Go program's words are to a person.
var wordings = []struct {
	is   *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`cannot unmarshal (\S+) into Go .+? of type \S+ \( overflow \): "[^"]*"`), `$1 is too large a number here`},
	{regexp.MustCompile(`cannot unmarshal \S+ into Go .+? of type u?(?:int|float)\d*:?`), `a number belongs here, not`},
	{regexp.MustCompile(`cannot unmarshal \S+ into Go .+? of type bool:?`), `true or false belongs here, not`},
	{regexp.MustCompile(`cannot unmarshal \S+ into Go .+? of type \S+`), `this does not fit here:`},
	{regexp.MustCompile(`\S+ was used where sequence is expected: "[^"]*"`), `a list belongs here, such as [a, b]`},
	{regexp.MustCompile(`\S+ was used where mapping is expected: "[^"]*"`), `fields belong here, such as name: a`},
	{regexp.MustCompile(`(?:netip\.)?ParseAddr\(("[^"]*")\)`), `$1 is no IP address`},
	{regexp.MustCompile(`(?:netip\.)?ParsePrefix\(("[^"]*")\)`), `$1 is no prefix`},
	{regexp.MustCompile(`unknown field ("[^"]*"): "[^"]*"$`), `unknown field $1`},
}

// shown adds the line that an error of a state file is about, with a mark below
// the place, and words what is a Go program's.
func shown(name, text string, err error) error {
	message, ok := strings.CutPrefix(err.Error(), name)
	if !ok {
		return err
	}
	line, column := placeOf(message, text)
	message = placedError.ReplaceAllString(message, ": ")
	for _, w := range wordings {
		message = w.is.ReplaceAllString(message, w.word)
	}
	lines := strings.Split(text, "\n")
	if line == 0 || line > len(lines) {
		return errors.New(name + message)
	}
	at := strings.ReplaceAll(strings.TrimRight(lines[line-1], "\r"), "\t", " ")
	margin := fmt.Sprintf("%5d | ", line)
	mark := strings.Repeat(" ", len(margin)-2) + "| " + strings.Repeat(" ", max(0, column-1)) + "^"
	return fmt.Errorf("%s:%d:%d%s\n%s%s\n%s", name, line, column, message, margin, at, mark)
}

// placeOf is the line and column that a message names, or those of the word it
// quotes where that stands once in the text; 0 where neither is known.
func placeOf(message, text string) (line, column int) {
	if m := placedError.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits, as the expression says
		column, _ = strconv.Atoi(m[2])
		return line, column
	}
	m := quoted.FindStringSubmatch(message)
	if m == nil || strings.Count(text, m[1]) != 1 {
		return 0, 0
	}
	before := text[:strings.Index(text, m[1])]
	return strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n')
}
