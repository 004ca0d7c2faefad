package experiment

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Tools that go wrong in every way: each is a failure of its own kind with the
// reason in words, never a zero.
func TestAToolThatGoesWrongIsATypedFailure(t *testing.T) {
	real, err := exec.LookPath("iperf3")
	if err != nil {
		t.Skip("iperf3 is not installed")
	}
	serve := fmt.Sprintf("case \" $* \" in *' -s '*) exec %s \"$@\";; esac\n", real)
	for name, c := range map[string]struct {
		script string
		kind   sample.FailureKind
		say    string
	}{
		"hangs":                   {serve + "exec sleep 100", sample.ToolHung, "did not end in time"},
		"is killed":               {serve + "kill -9 $$", sample.ToolFailed, "status -1"},
		"prints garbage":          {serve + "echo '}{ 12 Gbit/s'", sample.NoResult, ""},
		"says nothing":            {serve + "exit 0", sample.NoResult, ""},
		"reports an error with 0": {serve + `echo '{"start":{},"intervals":[],"end":{},"error":"unable to connect"}'`, sample.ToolFailed, "unable to connect"},
		"ends with an error":      {serve + "echo no such flag >&2; exit 3", sample.ToolFailed, "no such flag"},
		"has a server that ends":  {"echo cannot bind >&2; exit 1", sample.ToolFailed, "ended with status 1 before it listened on port 5001: cannot bind"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "iperf3"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			s := runOne(t, scenario("raw", func(sc *suite.Scenario) { sc.Tool = "iperf3" }))
			if s.OK() {
				t.Fatalf("it yielded %v", s.Metrics)
			}
			if s.Failure.Kind != c.kind || !strings.Contains(s.Failure.Message, c.say) {
				t.Errorf("failure: %v; want %s with %q", s.Failure, c.kind, c.say)
			}
		})
	}
}

func TestAMissingToolIsNotTriedAgain(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := runOne(t, scenario("raw", func(sc *suite.Scenario) { sc.Tool = "iperf3" }))
	if s.OK() || s.Failure.Kind != sample.ToolMissing || s.Failure.Retryable() {
		t.Errorf("failure: %v", s.Failure)
	}
}
