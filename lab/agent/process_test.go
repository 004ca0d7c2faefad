package agent

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

// started runs a shell script in this process's own namespace.
func started(t *testing.T, script string) *process {
	t.Helper()
	here, err := space.Open("")
	if err != nil {
		t.Skip("opening this network namespace: ", err)
	}
	t.Cleanup(func() { here.Close() })
	p := must.Get((&Service{node: here}).start(here, []string{"sh", "-c", script}, nil))(t)
	t.Cleanup(p.Kill)
	return p
}

// followed is all that a process printed until its end, a minute at most.
func followed(t *testing.T, p *process) (lines []Line, exit int) {
	t.Helper()
	for next := 0; ; {
		e := must.Get(p.follow(next, time.Minute))(t)
		if next == e.Next && !e.Exited {
			t.Fatal("the process does not end")
		}
		lines, next = append(lines, e.Lines...), e.Next
		if e.Exited {
			return lines, e.Exit
		}
	}
}

// A child that the program leaves behind keeps the pipe open. It must end with the agent.
func TestAProgramEndsAlthoughItsChildKeepsItsOutputOpen(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "child")
	must.Succeed(t, syscall.Mkfifo(fifo, 0o600))
	p := started(t, "{ sleep 20; echo survived >&3; } 3>"+fifo+" & echo out; echo err >&2; printf unfinished; exit 3")
	child := must.Get(os.Open(fifo))(t)
	defer child.Close()
	lines, exit := followed(t, p)
	must.Equal(t, 3, exit)
	o, err := p.output()
	if err != nil || o.Stdout != "out\nunfinished" || o.Stderr != "err\n" || len(lines) != 3 {
		t.Errorf("%+v, lines %v, %v", o, lines, err)
	}
	p.Kill()
	if text, err := io.ReadAll(child); err != nil || len(text) > 0 {
		t.Errorf("the child writes %q, %v, want its end", text, err)
	}
}

func TestLinesOfAProgramArriveWhole(t *testing.T) {
	p := started(t, "printf 'one\\ntw'; printf 'o\\n\\nthree'")
	lines, exit := followed(t, p)
	var text []string
	for _, l := range lines {
		text = append(text, l.Text)
	}
	if exit != 0 || len(text) != 4 || text[0] != "one" || text[1] != "two" || text[2] != "" || text[3] != "three" {
		t.Errorf("status %d, lines %q", exit, text)
	}
}

func TestAProgramThatIsNotInstalledIsReportedAsMissing(t *testing.T) {
	here, err := space.Open("")
	if err != nil {
		t.Skip("opening this network namespace: ", err)
	}
	defer here.Close()
	s := &Service{node: here}
	for _, name := range []string{"wt-none", "/nowhere/wt-none"} {
		var reply Started
		if err := s.Start(StartArgs{Argv: []string{name}}, &reply); err != nil || !strings.Contains(reply.Missing, name) {
			t.Errorf("start of %s: reply %+v, error %v, want the reason in Missing", name, reply, err)
		}
	}
	if err := s.Start(StartArgs{Argv: []string{"/"}}, new(Started)); err == nil {
		t.Error("the start of a directory returned no error")
	}
}
