package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"windtunnel/internal/cli"
	"windtunnel/internal/must"
)

func TestMain(m *testing.M) {
	testscript.Main(withPrograms{m}, map[string]func(){"windtunnel": main})
}

// The scripts read like a person at a terminal.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts: ", err)
	}
	for _, file := range files {
		// One at a time, for a machine has one measurement at a time.
		t.Run(filepath.Base(file), func(t *testing.T) { testscript.Run(t, script(file)) })
	}
}

func script(file string) testscript.Params {
	return testscript.Params{
		Files: []string{file},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_DATA_HOME", env.WorkDir+"/data")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "lab": // testbeds can be made here
				return os.Geteuid() == 0 && runtime.NumCPU() >= 2, nil
			}
			return false, nil
		},
	}
}

// Wrong usage has the same exit code in both programs.
func TestExitCodes(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.db")
	for line, want := range map[string]int{
		"version":                                 0,
		"run --help":                              0,
		"rum":                                     cli.ExitUsage,
		"run":                                     cli.ExitUsage,
		"run quick more":                          cli.ExitUsage,
		"run quick --colour":                      cli.ExitUsage,
		"run quick --gates none":                  cli.ExitUsage,
		"run quick --trials 0":                    cli.ExitUsage,
		"run quick --precision x":                 cli.ExitUsage,
		"run quick --cpu-distance x":              cli.ExitUsage,
		"run quick --trials -1":                   cli.ExitUsage,
		"run quick --trials 1001":                 cli.ExitUsage,
		"run quick --duration -1s":                cli.ExitUsage,
		"run quick --tool nosuch":                 cli.ExitUsage,
		"run quick --scenario nosuch":             cli.ExitUsage,
		"run quick --cpus foo":                    cli.ExitUsage,
		"run quick --precision 99%":               cli.ExitUsage,
		"run quick --max-trials 5":                cli.ExitUsage,
		"run quick --precision 2% --max-time -5s": cli.ExitUsage,
		"trend ab --metric nosuch":                cli.ExitUsage,
		"run quick --cpus a=0 --testbed h":        cli.ExitUsage,
		"run --system bridge --short --dry-run":   cli.ExitUsage,
		"run --resume latest --trials 9":          cli.ExitUsage,
		"matrix quick":                            cli.ExitUsage,
		"profile quick --rate 0":                  cli.ExitUsage,
		"report -o report.xyz":                    cli.ExitUsage,
		"trend quick --last -1":                   cli.ExitUsage,
		"compare a":                               cli.ExitUsage,
		"compare a b --junit x":                   cli.ExitUsage,
		"run quik":                                cli.ExitFailed,
		"run --resume latest --db " + none:        cli.ExitFailed,
		"report --db " + none:                     cli.ExitFailed,
	} {
		cmd := root()
		cmd.SetArgs(strings.Fields(line))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if got := cli.ExitCode(cmd.ExecuteContext(t.Context())); got != want {
			t.Errorf("windtunnel %s: exit code %d, want %d", line, got, want)
		}
	}
}

// A mistake is told while another measurement runs, too.
func TestAMistakeNeedsNoLock(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the lock is root's")
	}
	lock, err := takeLock()
	must.Succeed(t, err)
	defer lock.Unlock()
	err = (&runOptions{gates: "enforce"}).run(t.Context(), io.Discard, []string{"quik"})
	must.Fail(t, err, "quick")
}
