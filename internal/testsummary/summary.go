package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"windtunnel/internal/setup"
)

// summary has the last results of tests and subtests.
type summary struct {
	results map[string]result   // by package and test
	output  map[string][]string // lines by package and test, until the test's result
}

// result of a test, and why it was skipped.
type result struct {
	action string // pass, fail, skip
	why    reason
}

// reason is why tests were skipped, and the command that runs them; empty if there is none.
type reason struct{ said, command string }

// event is a line of `go test -json` (go doc test2json).
type event struct{ Action, Package, Test, Output string }

func (s *summary) addFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.add(f); err != nil {
		return fmt.Errorf("read the results in %s: %w", path, err)
	}
	return nil
}

func (s *summary) add(r io.Reader) error {
	if s.results == nil {
		s.results, s.output = map[string]result{}, map[string][]string{}
	}
	for d := json.NewDecoder(bufio.NewReader(r)); ; {
		var e event
		if err := d.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if e.Test == "" {
			continue
		}
		id := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			s.output[id] = append(s.output[id], e.Output)
			continue
		case "pass", "fail", "skip":
			if s.results[id].action != "fail" { // of a test that runs twice
				s.results[id] = result{e.Action, remedy(message(s.output[id]))}
			}
		default:
			continue
		}
		delete(s.output, id)
	}
}

// position is the place that the package testing writes before a message.
var position = regexp.MustCompile(`^\s+[\w.-]+\.go:\d+: `)

// message returns the last message that a test wrote, in one line. After the message of a skipped
// script, package testscript writes the script's log.
func message(output []string) string {
	var words []string
	for i, line := range output {
		switch at := position.FindString(line); {
		case strings.Contains(at, " testscript.go:"):
			return message(output[:i])
		case at != "":
			words = []string{line[len(at):]}
		case len(words) > 0 && strings.HasPrefix(line, "        "):
			words = append(words, line)
		}
	}
	text := strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	return cmp.Or(text, "no reason given")
}

var (
	way      = regexp.MustCompile(`^(.*?); (?:get|run) (?:it|one) with: (.*)$`)
	absent   = regexp.MustCompile(`^(\S+)(?: \([^)]*\))? is not installed`)
	root     = regexp.MustCompile(`(?:^|[^/\w])root\b`) // not of a path
	variable = regexp.MustCompile(`\b(WINDTUNNEL|VROUTER)_[A-Z_]+=\w+`)
)

// remedy returns the reason of a skip in the form that all tests with this reason share.
func remedy(message string) reason {
	said, command := message, ""
	if m := way.FindStringSubmatch(message); m != nil {
		said, command = m[1], m[2]
	}
	if m := absent.FindStringSubmatch(said); m != nil {
		return reason{m[1] + " is not installed", cmp.Or(setup.Command(m[1]), command)}
	}
	if command == "" && root.MatchString(said) {
		return reason{"needs root", "sudo make test"}
	}
	if command == "" && variable.MatchString(said) {
		command = variable.FindString(said) + " make test"
	}
	return reason{said, command}
}

// write writes the table, the most frequent reason first.
func (s *summary) write(w io.Writer) error {
	count, skipped := map[string]int{}, map[reason]int{}
	for _, r := range s.results {
		count[r.action]++
		if r.action == "skip" {
			skipped[r.why]++
		}
	}
	if len(skipped) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprint(t, "\nskipped\tbecause\tto run them\n")
		for _, why := range slices.SortedFunc(maps.Keys(skipped), func(a, b reason) int {
			return cmp.Or(skipped[b]-skipped[a], strings.Compare(a.said, b.said))
		}) {
			fmt.Fprintf(t, "%d\t%s\t%s\n", skipped[why], why.said, why.command)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"])
	return err
}
