package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// lists reports whether the arguments select tests or list them: then they are not divided.
func lists(args []string) bool {
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if name == "test.run" || name == "test.list" || name == "test.bench" || name == "test.fuzz" {
			return true
		}
	}
	return false
}

// divide returns the commands that run one test of a binary each, those that first matches first.
func divide(argv []string, first *regexp.Regexp) ([][]string, error) {
	tests, err := testsOf(argv[0])
	rank := func(test string) int {
		if first.MatchString(test) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(tests, func(a, b string) int { return rank(a) - rank(b) })
	var commands [][]string
	for _, name := range tests {
		commands = append(commands, slices.Insert(slices.Clone(argv), 1, "-test.run="+name))
	}
	return commands, err
}

// runEach runs each command in a new room, at most atOnce side by side. The output of a command
// is written when it has ended.
func (r room) runEach(atOnce int, commands [][]string) {
	var (
		out    sync.Mutex
		failed bool
		wg     sync.WaitGroup
		turns  = make(chan []string)
	)
	for range atOnce {
		wg.Go(func() {
			for argv := range turns {
				text, passed := r.test(argv)
				out.Lock()
				failed = failed || !passed
				_, _ = os.Stdout.Write(text)
				out.Unlock()
			}
		})
	}
	for _, argv := range commands {
		turns <- argv
	}
	close(turns)
	wg.Wait()
	if failed {
		fmt.Println("FAIL")
		os.Exit(1)
	}
	fmt.Println("PASS")
}

// test runs a test binary in a room. With r.again it then runs the skipped tests in a room that
// covers nothing. The output lacks the verdict.
func (r room) test(argv []string) (output []byte, passed bool) {
	var text bytes.Buffer
	err := r.run(argv, &text, &text)
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		fmt.Fprintln(&text, "testroom:", err)
	}
	output, passed = withoutVerdict(text.Bytes()), err == nil
	if skipped := skips(output); r.again && len(skipped) > 0 {
		more, ok := room{pids: r.pids}.test(append(slices.Clone(argv), "-test.run="+strings.Join(skipped, "|")))
		return append(output, more...), passed && ok
	}
	return output, passed
}

var skip = regexp.MustCompile(`(?m)^\x16?\s*--- SKIP: (\S+) \(`) // 0x16: the mark of -test.v=test2json

// skips returns the skipped tests and subtests of a test binary's output as patterns for -test.run.
func skips(output []byte) (patterns []string) {
	for _, m := range skip.FindAllSubmatch(output, -1) {
		levels := strings.Split(string(m[1]), "/")
		for i, l := range levels {
			levels[i] = "^" + regexp.QuoteMeta(l) + "$"
		}
		patterns = append(patterns, strings.Join(levels, "/"))
	}
	return patterns
}

// testsOf lists the tests of a binary as patterns for -test.run. Each script of TestScripts
// is a test.
func testsOf(binary string) ([]string, error) {
	list, err := exec.Command(binary, "-test.list=.").Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", binary, err)
	}
	var tests []string
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		scripts, _ := filepath.Glob("testdata/script/*.txtar")
		switch {
		case name == "TestScripts":
			for _, s := range scripts {
				tests = append(tests, "^TestScripts$/^"+regexp.QuoteMeta(filepath.Base(s))+"$")
			}
		case strings.HasPrefix(name, "Test"), strings.HasPrefix(name, "Fuzz"), strings.HasPrefix(name, "Example"):
			tests = append(tests, "^"+name+"$")
		}
	}
	return tests, nil
}

// withoutVerdict removes the last line of a test binary's output, PASS or FAIL: the output
// of a package has one such line.
func withoutVerdict(text []byte) []byte {
	kept := text[:0]
	for line := range bytes.Lines(text) {
		switch string(bytes.TrimSpace(bytes.TrimPrefix(line, []byte{0x16}))) {
		case "PASS", "FAIL":
		default:
			kept = append(kept, line...)
		}
	}
	return kept
}
