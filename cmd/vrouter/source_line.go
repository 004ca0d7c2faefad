package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// errorPosition matches the line and column at the start of a parse error.
var errorPosition = regexp.MustCompile(`^:(\d+):(\d+): `)

// withSourceLine adds the line of the state file in which the error is, and a
// caret below its column. An error without a position stays as it is.
func withSourceLine(name, text string, err error) error {
	message, ok := strings.CutPrefix(err.Error(), name)
	position := errorPosition.FindStringSubmatch(message)
	if !ok || position == nil {
		return err
	}
	line, _ := strconv.Atoi(position[1]) // the expression matches digits only
	column, _ := strconv.Atoi(position[2])
	lines := strings.Split(text, "\n")
	if line == 0 || line > len(lines) {
		return err
	}
	at := strings.ReplaceAll(strings.TrimRight(lines[line-1], "\r"), "\t", " ")
	margin := fmt.Sprintf("%5d | ", line)
	mark := strings.Repeat(" ", len(margin)-2) + "| " + strings.Repeat(" ", max(0, column-1)) + "^"
	return fmt.Errorf("%w\n%s%s\n%s", err, margin, at, mark)
}
