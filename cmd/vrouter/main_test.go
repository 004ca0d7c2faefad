package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"vrouter": main})
}

// The scripts are terminal sessions with a server that sends prepared answers.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			prepared, err := servePrepared(env)
			if err == nil {
				env.Setenv("SOCKET", prepared)
			}
			return err
		},
	})
}
