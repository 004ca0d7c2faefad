package main

import (
	"os"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"windtunnel": main})
}

// The scripts read like a person at a terminal.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
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
	})
}
