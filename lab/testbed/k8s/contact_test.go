package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
)

// dialTo returns a connection to an API server, and its place.
func dialTo(t *testing.T, server string) (c *cluster, place string) {
	t.Helper()
	needKubectl(t)
	path := filepath.Join(t.TempDir(), "kc")
	writeKubeconfig(t, path, "one")
	text := must.Get(os.ReadFile(path))(t)
	must.Succeed(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "https://one", server)), 0o600))
	c = must.Get(dial(t.Context(), Options{Kubeconfig: path}))(t)
	t.Cleanup(c.close)
	return c, fmt.Sprintf("API server %s (context one of %s)", server, path)
}

// answering starts an HTTP server, and returns a connection to it with its place.
func answering(t *testing.T, answer http.HandlerFunc) (c *cluster, place string) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return dialTo(t, s.URL)
}

// status answers with a status of the API.
func status(code int, reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "message": "said", "code": %d}`, reason, code)
	}
}

// page answers with a page for people.
func page(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		fmt.Fprint(w, "<html>log in</html>")
	}
}

func TestAFailedContactHasAPlaceAndARemedy(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"401":             {status(401, "Unauthorized"), "renew the credentials of this context"},
		"an unknown user": {status(403, "Forbidden"), "renew the credentials of this context"},
		"404":             {status(404, "NotFound"), "no API server of Kubernetes answers there"},
		"a page":          {page(200), "no API server of Kubernetes answers there"},
		"a missing page":  {page(404), "no API server of Kubernetes answers there"},
		"a page with 503": {page(503), "check that the API server runs"},
		"503":             {status(503, "ServiceUnavailable"), "check that the API server runs"},
	} {
		t.Run(name, func(t *testing.T) {
			k, place := answering(t, c.answer)
			_, _, choose := k.choose(context.Background(), Options{Least: 2})
			_, _, clean := k.clean(context.Background(), "")
			for _, err := range []error{choose, clean} {
				must.Fail(t, err, place, c.want, "--kubeconfig and --context")
			}
		})
	}
}

func TestAnAPIServerThatHangsHasAPlaceAndARemedy(t *testing.T) {
	must.Long(t) // it waits for the maximum time of a request
	t.Parallel()
	k, place := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees the end of the connection only afterwards
		<-r.Context().Done()
	})
	err := k.checkAccess(context.Background())
	must.Fail(t, err, place, "check that the API server runs")
}

func TestAnAPIServerThatIsDownHasAPlaceAndARemedy(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	k, place := dialTo(t, s.URL)
	err := k.checkAccess(context.Background())
	must.Fail(t, err, place+": dial tcp", "check that the API server runs")
}

func TestACertificateThatDoesNotFitHasItsRemedy(t *testing.T) {
	s := httptest.NewUnstartedServer(status(401, "Unauthorized"))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	k, _ := dialTo(t, s.URL)
	must.Fail(t, k.checkAccess(context.Background()), "correct the certificate-authority")
}

// lab clean does not ask for permissions first.
func TestACleanWithoutPermissionNamesTheManifest(t *testing.T) {
	c, s := simulate(t)
	s.react = func(string, string, map[string]any) *failure {
		return &failure{http.StatusForbidden, "Forbidden", `namespaces is forbidden: User "jane" cannot list resource`}
	}
	_, _, err := c.clean(context.Background(), "")
	must.Fail(t, err, "jane", manifestCommand)
}

func TestAnInterruptIsNotAFaultOfTheCluster(t *testing.T) {
	k, _ := answering(t, status(401, "Unauthorized"))
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(interrupted)
	if err := k.checkAccess(ctx); !errors.Is(err, interrupted) {
		t.Errorf("error %v", err)
	}
}

// dialPlugin returns a connection whose kubeconfig has a credential plugin in the language of
// the shell.
func dialPlugin(ctx context.Context, t *testing.T, script string) (*cluster, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kc")
	must.Succeed(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: user, user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: sh, args: [-c, %q], interactiveMode: Never}}}]
contexts: [{name: one, context: {cluster: one, user: user}}]
current-context: one
`, script), 0o600))
	return dial(ctx, Options{Kubeconfig: path})
}

func TestAPluginsOutputAndStatusPass(t *testing.T) {
	t.Parallel()
	needKubectl(t)
	for script, want := range map[string]string{
		"echo {": "decoding stdout",
		"exit 7": "executable sh failed with exit code 7",
	} {
		c, err := dialPlugin(t.Context(), t, script)
		must.Succeed(t, err)
		defer c.close()
		err = c.checkAccess(t.Context())
		must.Fail(t, err, want, "renew the credentials")
	}
}

// The plugin holds a FIFO open until it ends. A request that it blocks ends at an interrupt, or
// after the maximum time of a request. The plugin ends with the connection.
func TestAPluginThatHangsEnds(t *testing.T) {
	needKubectl(t)
	interrupted := errors.New("interrupted")
	for name, interrupt := range map[string]bool{"interrupted": true, "not interrupted": false} {
		t.Run(name, func(t *testing.T) {
			if !interrupt {
				must.Long(t) // it waits for the maximum time of a request
			}
			t.Parallel()
			fifo := filepath.Join(t.TempDir(), "alive")
			must.Succeed(t, syscall.Mkfifo(fifo, 0o600))
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			ended := make(chan error, 1)
			go func() {
				c, err := dialPlugin(ctx, t, "exec 3>"+fifo+"; echo >&3; sleep 60")
				if err == nil {
					err = c.checkAccess(ctx)
					c.close()
				}
				ended <- err
			}()
			alive, err := os.Open(fifo)
			must.Succeed(t, err)
			defer alive.Close()
			must.Get(alive.Read(make([]byte, 1)))(t)
			if interrupt {
				cancel(interrupted)
			}
			err = <-ended
			if interrupt && !errors.Is(err, interrupted) {
				t.Errorf("error %v", err)
			}
			if !interrupt && (err == nil || !strings.Contains(err.Error(), " within 10s") || !strings.Contains(err.Error(), "credential plugin")) {
				t.Errorf("error %v", err)
			}
			if rest, err := io.ReadAll(alive); err != nil || strings.Trim(string(rest), "\n") != "" {
				t.Errorf("the plugin wrote %q (%v), want its end", rest, err)
			}
		})
	}
}

// needKubectl skips the test if kubectl is not installed.
func needKubectl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed; get it with: " + setup.Command("kubectl"))
	}
}
