package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"windtunnel/internal/must"
	"windtunnel/lab/sample"
)

// refusal runs a command that must fail, and returns the error's text.
func refusal(t *testing.T, cmd *cobra.Command, args ...string) string {
	t.Helper()
	cmd.SetArgs(args)
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetErr(&bytes.Buffer{})
	err := cmd.ExecuteContext(t.Context())
	if err == nil {
		t.Fatalf("%s %v: no error", cmd.Name(), args)
	}
	return err.Error()
}

// The test holds the lock of the machine. So a command that does not refuse the flag fails, because
// it cannot take the lock, and cleans nothing.
func TestFlagsOfAClusterNeedATestbedInACluster(t *testing.T) {
	if os.Geteuid() == 0 {
		lock := must.Get(takeLock())(t)
		defer lock.Unlock()
	}
	for _, c := range []struct {
		cmd  *cobra.Command
		args []string
		want string
	}{
		{labClean(), []string{"--kubeconfig", "kc"}, "--kubeconfig: only a Kubernetes cluster"},
		{labClean(), []string{"--kubeconfig", ""}, "--kubeconfig: only a Kubernetes cluster"}, // an unset variable of the shell
		{labClean(), []string{"--testbed", "nowhere.yaml", "--context", "x"}, "--context: only a Kubernetes cluster"},
		{runCommand(), []string{"quick", "--nodes", "a,b", "--image", "x"}, "--image and --nodes: only a Kubernetes cluster"},
		{matrixCommand(), []string{"quick", "--testbed", "nowhere.yaml", "--context", "x"}, "--context: only a Kubernetes cluster"},
	} {
		if got := refusal(t, c.cmd, c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%s %v: %q, want %q", c.cmd.Name(), c.args, got, c.want)
		}
	}
}

func TestNodesMayHaveSpaces(t *testing.T) {
	must.Equal(t, []string{"a", "b"}, clusterOptions(sample.Cluster{Nodes: " a, b "}).Nodes)
}

func TestAFlagOf0NamesItsDefault(t *testing.T) {
	for want, c := range map[string]struct {
		cmd  *cobra.Command
		args []string
	}{
		"--parallel 0: give a value above 0, or omit the flag to use the default, 1":  {matrixCommand(), []string{"quick", "--parallel", "0"}},
		"--trials 0: give a value above 0, or omit the flag to use the suite's value": {runCommand(), []string{"quick", "--trials", "0"}},
	} {
		if got := refusal(t, c.cmd, c.args...); got != want {
			t.Errorf("%v: %q, want %q", c.args, got, want)
		}
	}
}
