package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"windtunnel/internal/cli/clitest"
	"windtunnel/internal/must"
)

// proposals returns what a shell gets for a command line, without descriptions. The last line is
// the directive.
func proposals(t *testing.T, line ...string) []string {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, line...))
	must.Succeed(t, cmd.Execute())
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestCompletionProposesValuesAndNotFiles(t *testing.T) {
	dir := t.TempDir()
	must.Succeed(t, storeRuns(dir))
	main, many := filepath.Join(dir, "main.db"), filepath.Join(dir, "many.db")
	const files, noFiles = ":0", ":4"
	for _, c := range []struct {
		line []string
		want []string
		end  string
	}{
		{[]string{"run", ""}, []string{"quick", "converged"}, files},
		{[]string{"run", "quick", ""}, nil, noFiles},
		{[]string{"run", "quick", "--scenario", ""}, []string{"bridge", "vxlan/rr"}, noFiles},
		{[]string{"run", "quick", "--scenario", "raw,"}, []string{"raw,bridge", "raw,vxlan/rr"}, noFiles},
		{[]string{"run", "--system", "bridge,"}, []string{"bridge,vxlan"}, noFiles},
		{[]string{"run", "--tool", ""}, []string{"iperf3"}, noFiles},
		{[]string{"run", "--gates", ""}, []string{"enforce", "warn"}, noFiles},
		{[]string{"run", "--testbed", ""}, []string{"k8s"}, files},
		{[]string{"run", "--db", main, "--resume", ""}, []string{"stopped"}, noFiles},
		{[]string{"report", "--db", many, ""}, []string{"base@latest", "latest", "m0"}, noFiles},
		{[]string{"report", "--format", ""}, []string{"html", "published"}, noFiles},
		{[]string{"compare", "--db", many, "m0", "m1,"}, []string{"m1,base@latest", "m1,m2"}, noFiles},
		{[]string{"compare", "--db", many, "m0", "m1", ""}, nil, noFiles},
		{[]string{"compare", "--db", many, "m0", "m1", "--metric", ""}, []string{"throughput_bps", "latency_ns_p99"}, noFiles},
		{[]string{"compare", "--db", many, "m0", "m1", "--scenario", ""}, []string{"raw", "bridge/stream"}, noFiles},
		{[]string{"trend", "--db", main, ""}, []string{"pair", "other"}, noFiles},
		{[]string{"trend", "pair", "--db", main, "--scenario", ""}, []string{"bridge/stream"}, noFiles},
		{[]string{"trend", "pair", "--db", main, "--like", ""}, []string{"few"}, noFiles},
		{[]string{"output", "--db", main, "main", ""}, []string{"bridge/stream"}, noFiles},
		{[]string{"runs", "delete", "--db", main, "main", ""}, []string{"again"}, noFiles},
		{[]string{"lab", "up", "quick", "--scenario", ""}, []string{"vxlan/rr"}, noFiles},
		{[]string{"vm", "build", "iperf3", ""}, []string{"qperf"}, noFiles},
		{[]string{"suites", "--format", ""}, []string{"table", "json"}, noFiles},
		{[]string{"doctor", ""}, []string{"suites"}, noFiles},
		{[]string{"report", "--db", filepath.Join(dir, "nowhere.db"), ""}, nil, noFiles},
	} {
		got := proposals(t, c.line...)
		if end := got[len(got)-1]; end != c.end {
			t.Errorf("%q: directive %s, want %s", c.line, end, c.end)
		}
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%q: %q, want %s", c.line, got, want)
			}
		}
		if c.want == nil && len(got) > 1 {
			t.Errorf("%q: %q, want nothing", c.line, got)
		}
	}
	t.Setenv("WINDTUNNEL_DB", many)
	if got := proposals(t, "report", ""); !slices.Contains(got, "base@latest") {
		t.Errorf("with WINDTUNNEL_DB: %q, want the runs of that store", got)
	}
}

// A flag that takes one of some known words proposes them. What a flag takes is in the list here,
// or it proposes values.
func TestEachFlagProposesValuesOrTakesAnyText(t *testing.T) {
	files := []string{"db", "other-db", "out", "output", "gate", "junit", "kubeconfig", "token-file"}
	free := []string{"name", "note", "precision", "cpus", "nodes", "image", "context", "listen", "host", "user"}
	clitest.Commands(root(), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, completes := cmd.GetFlagCompletionFunc(f.Name)
			if kind := f.Value.Type(); !completes && (kind == "string" || kind == "stringSlice") && !slices.Contains(slices.Concat(files, free), f.Name) {
				t.Errorf("%s --%s proposes nothing", cmd.CommandPath(), f.Name)
			}
		})
	})
}

// Every command that lists things has --format json.
func TestEveryListHasJSON(t *testing.T) {
	for _, path := range []string{"suites", "systems", "tools", "doctor", "doctor suites", "runs", "lab list", "report", "compare", "trend"} {
		cmd, _, err := root().Find(strings.Fields(path))
		must.Succeed(t, err)
		f := cmd.Flags().Lookup("format")
		if f == nil || f.Value.Set("json") != nil {
			t.Errorf("%s has no --format json", path)
		}
	}
}

// Scripts of the first versions use doctor --json.
func TestDoctorTakesJSONAsAnAlias(t *testing.T) {
	cmd, _, err := root().Find([]string{"doctor"})
	must.Succeed(t, err)
	must.Succeed(t, cmd.ParseFlags([]string{"--json"}))
	must.Equal(t, "json", cmd.Flags().Lookup("format").Value.String())
	must.Equal(t, true, cmd.Flags().Lookup("json").Hidden)
}
