package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// The test binary is also the first process of the rooms.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == inside {
		main()
	}
	os.Exit(m.Run())
}

// runIn runs a script in a room, and returns its output and exit status.
func runIn(t *testing.T, r room, script string) (string, int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a room needs root")
	}
	var out bytes.Buffer
	err := r.run([]string{"/bin/sh", "-c", script}, &out, &out)
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatalf("start the room: %v: %s", err, &out)
	}
	if failed {
		return out.String(), exit.ExitCode()
	}
	return out.String(), 0
}

func TestProcessesAndFilesOfATestEndWithItsRoom(t *testing.T) {
	for _, pids := range []bool{false, true} {
		out, status := runIn(t, room{pids: pids}, `
touch /run/left "$TMPDIR/left"; echo "$TMPDIR"
(trap '' TERM HUP; sleep 1000) </dev/null >/dev/null 2>&1 &
echo $!; exit 3`)
		lines := strings.Fields(out)
		if status != 3 || len(lines) != 2 {
			t.Fatalf("exit status %d, want 3, with two lines: %s", status, out)
		}
		for _, path := range []string{"/run/left", lines[0]} {
			if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v, want no such file", path, err)
			}
		}
		if pid, err := strconv.Atoi(lines[1]); err != nil || !pids && unix.Kill(pid, 0) == nil {
			t.Errorf("process %s runs after the test's end (%v)", lines[1], err)
		}
	}
}

func TestAKilledTestLeavesNoProcess(t *testing.T) {
	out, status := runIn(t, room{}, "sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; kill -KILL $$")
	pid, err := strconv.Atoi(strings.Fields(out)[0])
	if status == 0 || err != nil || unix.Kill(pid, 0) == nil {
		t.Errorf("exit status %d, process %d runs: %s (%v)", status, pid, out, err)
	}
}

// When the test ends, the room has zombies, and it adopts grandchildren while it kills their parents.
// It must not wait for a process that it has not killed.
func TestARoomDoesNotWaitForProcessesThatComeLate(t *testing.T) {
	out, status := runIn(t, room{}, "for i in 1 2 3; do (sleep 1000 & wait) </dev/null >/dev/null 2>&1 & sleep 0 & done; exec sleep 0.2")
	if status != 0 {
		t.Errorf("exit status %d: %s", status, out)
	}
}

// Another user can run a program that a test has written.
func TestARoomHasTheUsualUmask(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	if out, _ := runIn(t, room{}, "umask"); out != "0022\n" {
		t.Errorf("the umask in a room is %q, want 0022", out)
	}
}

func TestCoveredProgramsAndDirectoriesAreNotFound(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "wt-program")
	must.Succeed(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	library := filepath.Join(dir, "library")
	must.Succeed(t, os.MkdirAll(filepath.Join(library, "module"), 0o755))
	script := "PATH=" + dir + ":$PATH; command -v wt-program; ls " + library
	if out, _ := runIn(t, room{}, script); out != program+"\nmodule\n" {
		t.Errorf("uncovered: %q", out)
	}
	if out, _ := runIn(t, room{covers: []string{program, library}}, script); out != "" {
		t.Errorf("covered: %q, want nothing", out)
	}
}

func TestSkippedTestsRunAgainWithTheCoveredPrograms(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a room needs root")
	}
	program := filepath.Join(t.TempDir(), "wt-program")
	must.Succeed(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	// A test binary with two tests, of which one needs the program in a subtest.
	binary := filepath.Join(t.TempDir(), "x.test")
	must.Succeed(t, os.WriteFile(binary, []byte(`#!/bin/sh
for last; do :; done
case $last in
"-test.run=^TestA$/^b\.c$") ;;
*) echo "--- PASS: TestB (0.00s)" ;;
esac
if [ -x `+program+` ]; then echo "--- PASS: TestA/b.c (0.00s)"; else echo "    --- SKIP: TestA/b.c (0.00s)"; fi
echo PASS
`), 0o755))
	text, passed := room{covers: []string{program}, again: true}.test([]string{binary, "-test.v=true"})
	if want := "--- PASS: TestB (0.00s)\n    --- SKIP: TestA/b.c (0.00s)\n--- PASS: TestA/b.c (0.00s)\n"; string(text) != want || !passed {
		t.Errorf("passed: %v, output %q, want %q", passed, text, want)
	}
	if text, passed = (room{covers: []string{program}, again: true}).test([]string{"/bin/sh", "-c", "echo '--- SKIP: TestA (0.00s)'; exec test -x " + program}); passed {
		t.Errorf("a test that failed while the program was covered passed: %q", text)
	}
}

func TestThePackageHasOneVerdict(t *testing.T) {
	got := withoutVerdict([]byte("\x16=== RUN   TestA\n\x16--- PASS: TestA (0.00s)\n\x16PASS\nFAIL\n"))
	if want := "\x16=== RUN   TestA\n\x16--- PASS: TestA (0.00s)\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}
