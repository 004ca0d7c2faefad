package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
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

// A mistake is told while another measurement runs, too.
func TestAMistakeNeedsNoLock(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the lock is root's")
	}
	lock, err := takeLock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	err = (&runOptions{gates: "enforce"}).run(t.Context(), io.Discard, []string{"quik"})
	if err == nil || !strings.Contains(err.Error(), "quick") {
		t.Errorf("got %v, want the names of the suites", err)
	}
}
