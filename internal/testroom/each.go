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

// runEach runs each test of a binary in a new room, at most atOnce side by side, the tests that
// first matches first. A test's output is written when the test has ended.
func (r room) runEach(atOnce int, first *regexp.Regexp, argv []string) error {
	tests, err := testsOf(argv[0])
	if err != nil {
		return err
	}
	rank := func(test string) int {
		if first.MatchString(test) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(tests, func(a, b string) int { return rank(a) - rank(b) })
	var (
		out    sync.Mutex
		failed bool
		wg     sync.WaitGroup
		turns  = make(chan string)
	)
	for range atOnce {
		wg.Go(func() {
			for name := range turns {
				var text bytes.Buffer
				err := r.run(slices.Insert(slices.Clone(argv), 1, "-test.run="+name), &text, &text)
				out.Lock()
				if err != nil {
					failed = true
					if _, exit := errors.AsType[*exec.ExitError](err); !exit {
						fmt.Fprintln(&text, "testroom:", err)
					}
				}
				_, _ = os.Stdout.Write(withoutVerdict(text.Bytes()))
				out.Unlock()
			}
		})
	}
	for _, name := range tests {
		turns <- name
	}
	close(turns)
	wg.Wait()
	if failed {
		fmt.Println("FAIL")
		os.Exit(1)
	}
	fmt.Println("PASS")
	return nil
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
		switch string(bytes.TrimSpace(bytes.TrimPrefix(line, []byte{0x16}))) { // 0x16: the mark of -test.v=test2json
		case "PASS", "FAIL":
		default:
			kept = append(kept, line...)
		}
	}
	return kept
}
