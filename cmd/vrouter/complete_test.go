package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"windtunnel/internal/must"
)

func TestCompletionProposesValuesAndNotFiles(t *testing.T) {
	const files, noFiles, folders = ":0", ":4", ":16"
	for _, c := range []struct{ line, want, end string }{
		{"flow get ", "tcp", noFiles},
		{"flow list -o ", "json", noFiles},
		{"store init --store ", "embedded", noFiles},
		{"node add n1 --locator ", "auto", noFiles},
		{"port add --device ", "lo", noFiles},
		{"port add --netns ", "", files},
		{"port add --mac ", "", noFiles},
		{"node add n1 --encapsulation ", "direct", noFiles},
		{"trace --proto ", "udp", noFiles},
		{"network create ", "", noFiles},
		{"vif list ", "", noFiles},
		{"agent --tls-key ", "", files},
		{"cni install --bin-dir ", "", folders},
		{"docker package ", "", folders},
	} {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		cmd.SetErr(&bytes.Buffer{})
		cmd.SetArgs(append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Split(c.line, " ")...))
		must.Succeed(t, cmd.Execute())
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if end := got[len(got)-1]; end != c.end || c.want != "" && !slices.Contains(got, c.want) {
			t.Errorf("%q: %q, want %s and the directive %s", c.line, got, c.want, c.end)
		}
	}
}
