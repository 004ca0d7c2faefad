package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// placedError is how the model says where in a file an error is.
var placedError = regexp.MustCompile(`^:(\d+):(\d+): `)

// shown adds the line that an error of a state file is about, with a mark below
// the place, where the error has one.
func shown(name, text string, err error) error {
	message, ok := strings.CutPrefix(err.Error(), name)
	place := placedError.FindStringSubmatch(message)
	if !ok || place == nil {
		return err
	}
	line, _ := strconv.Atoi(place[1]) // digits, as the expression says
	column, _ := strconv.Atoi(place[2])
	lines := strings.Split(text, "\n")
	if line == 0 || line > len(lines) {
		return err
	}
	at := strings.ReplaceAll(strings.TrimRight(lines[line-1], "\r"), "\t", " ")
	margin := fmt.Sprintf("%5d | ", line)
	mark := strings.Repeat(" ", len(margin)-2) + "| " + strings.Repeat(" ", max(0, column-1)) + "^"
	return fmt.Errorf("%w\n%s%s\n%s", err, margin, at, mark)
}
