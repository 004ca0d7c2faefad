package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

func TestTheStoredOutputOfAScenariosToolsIsPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	store, err := results.Open(path, results.Options{})
	must.Succeed(t, err)
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, store.CreateRun(run, plan))
	for _, s := range []sample.Sample{
		{
			Scenario: "raw/stream", Block: 2, Failure: &sample.Failure{Kind: sample.ToolFailed, Message: "the client ended with 1"},
			Commands: []sample.Command{{Role: "client", On: "a/c1", Argv: []string{"iperf3", "-c", "192.0.2.2"}}},
			Outputs:  []sample.Output{{Role: "server", Stdout: "listening"}, {Role: "client", Stdout: "started\n", Stderr: "no route\n", Exit: 1}},
		},
		{Scenario: "raw/rr", Outputs: []sample.Output{{Role: "client", Stdout: "other"}}},
	} {
		must.Get(store.AppendSample(run.ID, s))(t)
	}
	must.Succeed(t, store.Close())
	print := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"output", "--db", path}, args...))
		err := cmd.Execute()
		return out.String(), err
	}
	got, err := print("latest", "raw/stream")
	want := `=== raw/stream, block 3, attempt 1
tool-failed: the client ended with 1
client on a/c1: iperf3 -c 192.0.2.2
--- server, exit status 0
listening
--- client, exit status 1
started
no route

`
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	_, err = print("latest", "raw/steam")
	must.Fail(t, err, `did you mean "raw/stream"`)
}
