package main

import (
	"os"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// A complete run of the program's revision is not repeated, an interrupted one is resumed, and one of another
// revision is measured again.
func TestOnlyWhatTheStoreLacksIsMeasured(t *testing.T) {
	run, plan, _ := madeUp(t, parts[0])
	for _, c := range []struct {
		name, revision string
		status         sample.Status
		want           string // command of windtunnel; "" for none
	}{
		{"complete", "a1", sample.Complete, ""},
		{"complete, changes are not committed", "a1-dirty", sample.Complete, ""},
		{"interrupted", "a1", sample.Stopped, "run --resume " + run.ID},
		{"killed", "a1", sample.Running, "run --resume " + run.ID},
		{"no trial counts", "a1", sample.Empty, "run overlay --trials 3 --name overlay"},
		{"another revision", "b2", sample.Complete, "run overlay --trials 3 --name overlay"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &session{ctx: t.Context(), store: t.TempDir(), scratch: t.TempDir(), part: "overlay", revision: c.revision}
			run.Status = c.status
			store := must.Get(results.Open(b.db(), results.Options{}))(t)
			must.Succeed(t, store.CreateRun(run, plan))
			must.Succeed(t, store.Close())
			said := filepath.Join(b.scratch, "said")
			b.program = filepath.Join(b.scratch, "windtunnel")
			must.Succeed(t, os.WriteFile(b.program, []byte("#!/bin/sh\necho \"$@\" >"+said+"\nexit 1\n"), 0o755))

			_, err := b.suite("overlay", "--trials", "3")
			got, _ := os.ReadFile(said)
			if c.want == "" {
				must.Succeed(t, err)
				must.Equal(t, "", string(got))
				return
			}
			must.Equal(t, c.want+" --db "+b.db()+" --out "+filepath.Join(b.scratch, "overlay")+"\n", string(got))
			must.Fail(t, err, "windtunnel "+c.want)
		})
	}
}
