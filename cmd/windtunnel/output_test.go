package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// outputHome makes a directory with a store, and returns a function that runs windtunnel there.
func outputHome(t *testing.T) (dir string, run func(args string) (string, error)) {
	t.Helper()
	dir = t.TempDir()
	must.Succeed(t, storeRuns(dir))
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "gate.yaml"), []byte("gates:\n  - {metric: throughput_bps, worse_by: 3%, on_doubt: pass}\n"), 0o644))
	return dir, func(args string) (string, error) {
		cmd := exec.Command("windtunnel", append(strings.Fields(args), "--db", "main.db")...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// outputCommands write a file; its name is appended.
var outputCommands = []string{
	"report main --format json -o ", "compare main again --format json -o ", "compare main again --gate gate.yaml --junit ",
}

func TestAnOutputIsWrittenToDevicesPipesAndLinksWithoutReplacingThem(t *testing.T) {
	t.Parallel()
	dir, run := outputHome(t)
	for i, command := range outputCommands {
		at := func(name string) string { return filepath.Join(dir, name+string(rune('0'+i))) }
		kept := func(name string, mode os.FileMode) {
			t.Helper()
			if out, err := run(command + at(name)); err != nil {
				t.Fatalf("run %s%s: %v\n%s", command, name, err, out)
			}
			if info, err := os.Lstat(at(name)); err != nil || info.Mode().Type() != mode {
				t.Errorf("%s%s left %v (%v), want type %v", command, name, info.Mode(), err, mode)
			}
		}
		if err := unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err == nil {
			kept("null", os.ModeDevice|os.ModeCharDevice)
		}
		for _, err := range []error{
			os.WriteFile(at("target"), []byte("old"), 0o600), os.Symlink(at("target"), at("link")), os.Symlink(at("missing"), at("dangling")),
			os.WriteFile(at("one"), []byte("old"), 0o644), os.Link(at("one"), at("two")), unix.Mkfifo(at("pipe"), 0o600),
		} {
			must.Succeed(t, err)
		}
		kept("link", os.ModeSymlink)
		kept("dangling", os.ModeSymlink)
		kept("one", 0)
		got := make(chan string)
		pipe := must.Get(os.OpenFile(at("pipe"), os.O_RDWR, 0))(t)
		go func() {
			var text strings.Builder
			_, _ = io.Copy(&text, pipe)
			got <- text.String()
		}()
		kept("pipe", os.ModeNamedPipe)
		pipe.Close()
		want := <-got
		for _, name := range []string{"target", "missing", "two"} {
			if text, err := os.ReadFile(at(name)); err != nil || len(text) < 20 || len(want) < 20 {
				t.Errorf("%s: %s has %.40q (%v) and the pipe got %.40q, want the output", command, name, text, err, want)
			}
		}
		if info, err := os.Stat(at("target")); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: the mode of a replaced file is %v (%v), want that of the old file", command, info.Mode(), err)
		}
	}
}

func TestTheEndingOfTheOutputChoosesTheFormat(t *testing.T) {
	t.Parallel()
	dir, run := outputHome(t)
	for name, c := range map[string]struct{ commands, begins string }{
		"r.html":    {"report main,compare main again", "<!doctype html>"},
		"r.HTML":    {"report main", "<!doctype html>"},
		"r.md":      {"report main,compare main again", ""},
		"r.json":    {"report main,compare main again", "{"},
		"r.csv":     {"report main", "scenario,system,"},
		"bench.txt": {"report main", "# windtunnel run main"},
		"r.txt":     {"report main,compare main again", ""},
	} {
		for command := range strings.SplitSeq(c.commands, ",") {
			if out, err := run(command + " -o " + name); err != nil || out != "" {
				t.Errorf("%s -o %s: %v\n%s", command, name, err, out)
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || len(text) == 0 || !strings.HasPrefix(strings.ToLower(string(text)), c.begins) {
				t.Errorf("%s -o %s wrote %.60q (%v), want %q first", command, name, text, err, c.begins)
			}
		}
	}
	for _, command := range []string{"report main", "compare main again"} {
		pdf := strings.Fields(command)[0] + ".pdf"
		out, err := run(command + " -o " + pdf)
		if _, made := os.Stat(filepath.Join(dir, pdf)); err == nil || made == nil || !strings.Contains(out, ".html, .md, .json") || !strings.Contains(out, "--format") {
			t.Errorf("%s -o %s: %v, %q; want an error with the known endings", command, pdf, err, out)
		}
		if out, err := run(command + " --format json -o " + pdf); err != nil {
			t.Errorf("%s --format json -o %s: %v\n%s", command, pdf, err, out)
		}
	}
}
