package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

// The commands of the handbook's quick start run unchanged, except for the names of
// namespaces.
func TestTheQuickStartWorks(t *testing.T) {
	needNodes(t)
	t.Parallel()
	prefix := fmt.Sprintf("vr-qs%d-", os.Getpid())
	dir := buildProgram(t)
	commands := strings.Join(blocks(section(t, "## Quick start"), "sh"), "\n")
	commands = regexp.MustCompile(`\bvr-`).ReplaceAllString(commands, prefix)
	for _, name := range []string{"a", "b", "web1", "web2"} {
		t.Cleanup(func() { run("ip netns delete " + prefix + name) }) // gone already where all went well
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", tidy+commands)
	shell.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+t.TempDir())
	text, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("run the commands of the quickstart: %v\n%s", err, text)
	}
	for what, times := range map[string]int{
		`3 packets transmitted, 3 received`:                                  3,
		`(?m)^applied; [1-9]\d* entries updated, 0 deleted`:                  2,
		`(?m)^  7  red +10\.0\.0\.4/32 +Host +7 `:                            1,
		`(?m)^forwarded .*direct, network 7$`:                                1,
		`(?m)^leaves by eth1, .* 192\.0\.2\.1 → 192\.0\.2\.2; `:              1,
		`(?m)^dropped: no_route `:                                            1,
		`(?m)^  7  red +direct +([1-9]|0 +0 +[1-9])`:                         2, // sent, or only received
		`(?m)^  7  red +vxlan +[3-9] +[1-9]\d* +[3-9] +\d+\nremoved node a$`: 1, // the last table; the first one may have such a row too, while direct is not tested yet
		`(?m)^removed node [ab]$`:                                            2,
	} {
		if got := len(regexp.MustCompile(what).FindAllIndex(text, -1)); got != times {
			t.Errorf("%q is there %d times, not %d", what, got, times)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
	if left, _ := filepath.Glob("/run/netns/" + prefix + "*"); len(left) > 0 {
		t.Errorf("namespaces are left: %v", left)
	}
}

// tidy removes the nodes also if a command fails.
const tidy = `trap 'for c in [ab].yaml; do [ -e "$c" ] && vrouter remove --config "$c" > /dev/null 2>&1 || true; done' EXIT
`

// buildProgram returns a directory with the program vrouter.
func buildProgram(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "vr-qs"))(t) // not t.TempDir: the path of a socket must be short
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := must.Get(testprogram.Build(dir, "vrouter"))(t)
	return filepath.Dir(program)
}
