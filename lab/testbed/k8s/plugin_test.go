package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hanging returns a shell script that hangs. It holds the FIFO alive open, also in a child.
func hanging(t *testing.T) (script, alive string) {
	t.Helper()
	alive = filepath.Join(t.TempDir(), "alive")
	must(t, syscall.Mkfifo(alive, 0o600))
	return "exec 3>" + alive + "; echo begun >&3; sleep 60; echo survived >&3", alive
}

// begins waits until the script of hanging runs.
func begins(t *testing.T, alive string) *os.File {
	t.Helper()
	f, err := os.Open(alive)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	_, err = io.ReadFull(f, make([]byte, len("begun\n")))
	must(t, err)
	return f
}

// ends waits until no process of the script of hanging is left.
func ends(t *testing.T, f *os.File) {
	t.Helper()
	if rest, err := io.ReadAll(f); err != nil || len(rest) > 0 {
		t.Errorf("the plugin wrote %q (%v), want its end", rest, err)
	}
}

// dialPlugin returns a connection whose kubeconfig has a credential plugin in the language of
// the shell.
func dialPlugin(t *testing.T, script string) *cluster {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kc")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: user, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, %q], interactiveMode: Never}}}]
contexts: [{name: one, context: {cluster: one, user: user}}]
current-context: one
`, script), 0o600))
	c, err := dial(Options{Kubeconfig: path})
	must(t, err)
	return c
}

func TestAnInterruptEndsARequestWhosePluginHangs(t *testing.T) {
	t.Parallel()
	script, alive := hanging(t)
	c := dialPlugin(t, script)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.checkAccess(ctx) }()
	begins(t, alive)
	cancel(interrupted)
	select {
	case err := <-ended:
		if !errors.Is(err, interrupted) {
			t.Errorf("error %v", err)
		}
	case <-time.After(callTime / 2):
		t.Error("the request goes on after the interrupt")
	}
}

// A plugin that hangs must end with its parent process, which is a shell here and windtunnel in use.
func TestAPluginEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	script, alive := hanging(t)
	self, err := os.Executable()
	must(t, err)
	parent := exec.Command("sh", "-c", `"$@" & wait`, "sh", self, CredentialsCommand, "sh", "-c", script)
	must(t, parent.Start())
	f := begins(t, alive)
	must(t, parent.Process.Kill())
	_ = parent.Wait()
	ends(t, f)
}

func TestAPluginsOutputAndStatusPass(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo {": "decoding stdout",
		"exit 7": "executable sh failed with exit code 7",
	} {
		err := dialPlugin(t, script).checkAccess(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "renew the credentials") {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}

// hangs is a transport whose credential plugin hangs.
type hangs struct{ end chan struct{} }

func (h hangs) RoundTrip(*http.Request) (*http.Response, error) {
	<-h.end
	return nil, errors.New("ended")
}

func TestAPluginThatHangsIsNamedWithARemedy(t *testing.T) {
	t.Parallel()
	h := hangs{make(chan struct{})}
	defer close(h.end)
	client := http.Client{Transport: prompt{h, "aws", "windtunnel"}, Timeout: time.Millisecond}
	_, err := client.Get("https://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "the plugin aws of the kubeconfig did not answer") || !strings.Contains(contactRemedy(err), "renew the credentials") {
		t.Errorf("error %v", err)
	}
}
