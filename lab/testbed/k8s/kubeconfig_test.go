package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// writeKubeconfig writes a kubeconfig with the contexts one and two, whose servers have these
// names. current is its current context.
func writeKubeconfig(t *testing.T, path, current string) {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "https://one"}}, {name: two, cluster: {server: "https://two"}}]
users: [{name: user, user: {token: x}}]
contexts: [{name: one, context: {cluster: one, user: user}}, {name: two, context: {cluster: two, user: user}}]
current-context: %s
`, current)
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
}

// A resumed run uses the cluster of its run, also from another directory, with another current
// context and another $KUBECONFIG.
func TestAResumedRunUsesTheClusterOfItsRun(t *testing.T) {
	needKubectl(t)
	dir := t.TempDir()
	file, home, empty := filepath.Join(dir, "kc"), filepath.Join(dir, ".kube", "config"), filepath.Join(dir, "empty")
	must.Succeed(t, os.Mkdir(filepath.Join(dir, ".kube"), 0o700))
	must.Succeed(t, os.WriteFile(empty, nil, 0o600))
	t.Setenv("HOME", dir)
	for _, c := range []struct {
		name, env string
		options   Options
		want      origin
	}{
		{"--kubeconfig", "", Options{Kubeconfig: "kc"}, origin{file, "one"}},
		{"--context", "", Options{Kubeconfig: "kc", Context: "two"}, origin{file, "two"}},
		{"KUBECONFIG", "empty:nowhere:kc", Options{}, origin{empty + ":" + file, "one"}},
	} {
		t.Chdir(dir)
		t.Setenv("KUBECONFIG", c.env)
		writeKubeconfig(t, file, "one")
		from, err := readConfig(t.Context(), c.options)
		if err != nil || from.origin != c.want || from.server != "https://"+c.want.context {
			t.Fatalf("%s: %+v (%v), want %+v", c.name, from, err, c.want)
		}
		writeKubeconfig(t, file, "two")
		writeKubeconfig(t, home, "two")
		t.Setenv("KUBECONFIG", home)
		t.Chdir(t.TempDir())
		again, err := readConfig(t.Context(), Options{Kubeconfig: from.files, Context: from.context})
		if err != nil || again.origin != from.origin || again.server != from.server {
			t.Errorf("%s, resumed: %+v (%v), want %+v", c.name, again, err, from)
		}
	}
}

func TestAPathWithAColonIsOneFile(t *testing.T) {
	t.Chdir(t.TempDir())
	writeKubeconfig(t, "a:b", "one")
	needKubectl(t)
	if from, err := readConfig(t.Context(), Options{Kubeconfig: "a:b"}); err != nil || filepath.Base(from.files) != "a:b" {
		t.Errorf("%+v, %v", from, err)
	}
}

func TestAFileThatIsNotAKubeconfigIsNamed(t *testing.T) {
	needKubectl(t)
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"hello": `config file "kc": it is no kubeconfig; correct --kubeconfig`,
		"- a":   `config file "kc": it is no kubeconfig; correct --kubeconfig`,
		"{apiVersion: apps/v1, kind: Deployment}": `config file "kc": it is no kubeconfig; correct --kubeconfig`,
		"{apiVersion: v1, kind: Config}":          "no kubeconfig with a current context; give --kubeconfig and --context",
	} {
		must.Succeed(t, os.WriteFile("kc", []byte(text), 0o600))
		if _, err := readConfig(t.Context(), Options{Kubeconfig: "kc"}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "struct") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
