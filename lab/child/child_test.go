package child

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// started starts a script whose descendants share its standard output, and returns what they write
// after the first line.
func started(t *testing.T, script string) (*Piped, func() string) {
	t.Helper()
	p := must.Get(StartPiped(Command(context.Background(), []string{"sh", "-c", script}), (*exec.Cmd).Start))(t)
	t.Cleanup(func() { p.Kill(); p.Close(); p.CloseOutput() })
	must.Get(io.ReadFull(p, make([]byte, len("up\n"))))(t)
	return p, func() string { return string(must.Get(io.ReadAll(p))(t)) }
}

func TestStopEndsAProgramThatIgnoresSIGTERMAndItsChildren(t *testing.T) {
	p, rest := started(t, "trap '' TERM; sleep 60 & echo up; wait; echo on; sleep 60")
	must.Succeed(t, p.Stop(100*time.Millisecond))
	must.Equal(t, syscall.SIGKILL, p.State().Sys().(syscall.WaitStatus).Signal())
	must.Equal(t, "", rest())
}

func TestStopLetsAProgramEndBySIGTERM(t *testing.T) {
	p, rest := started(t, "trap 'echo end; exit 4' TERM; echo up; while :; do sleep 0.1; done")
	must.Succeed(t, p.Stop(time.Minute))
	must.Equal(t, 4, p.State().ExitCode())
	must.Equal(t, "end\n", rest())
}

func TestStopEndsTheChildrenOfAProgramThatHasEnded(t *testing.T) {
	p, rest := started(t, "{ sleep 60; echo survived; } & echo up; exit 3")
	<-p.Ended
	must.Equal(t, 3, p.State().ExitCode())
	must.Succeed(t, p.Stop(0))
	must.Equal(t, "", rest())
}

func TestASignalToAnEndedProgramIsNoError(t *testing.T) {
	p, _ := started(t, "echo up")
	<-p.Ended
	must.Succeed(t, p.Signal(syscall.SIGTERM))
}

func TestTheLastLinesOfAConsoleHaveThePanicAndNoControlSequences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "\x1b[2J\x1b[0mline %d\r\n", i)
		if i == 9 {
			fmt.Fprintln(&text, "Kernel panic - not syncing: why")
		}
	}
	must.Succeed(t, os.WriteFile(path, []byte(text.String()), 0o600))
	lines := strings.Split(LastLines(path), "\n")
	if len(lines) != lastLines+1 || !slices.Contains(lines, "line 39") || lines[0] != "Kernel panic - not syncing: why" || lines[1] != "line 28" {
		t.Errorf("the end of the console is %q, want the panic and the last lines", lines)
	}
}
