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
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	api "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	action "k8s.io/client-go/testing"
)

// dialTo returns a connection to an API server, and its place.
func dialTo(t *testing.T, server string) (c *cluster, place string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kc")
	writeKubeconfig(t, path, "one")
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "https://one", server)), 0o600))
	c, err = dial(Options{Kubeconfig: path})
	must(t, err)
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
		k, place := answering(t, c.answer)
		_, _, choose := k.choose(context.Background(), Options{Least: 2})
		_, _, clean := k.clean(context.Background(), "")
		for _, err := range []error{choose, clean} {
			if err == nil || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--kubeconfig and --context") {
				t.Errorf("%s: error %v; want %q and %q", name, err, place, c.want)
			}
		}
	}
}

func TestAnAPIServerThatHangsHasAPlaceAndARemedy(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the maximum time of a request")
	}
	t.Parallel()
	k, place := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees the end of the connection only afterwards
		<-r.Context().Done()
	})
	err := k.checkAccess(context.Background())
	if err == nil || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), "check that the API server runs") {
		t.Errorf("error %v", err)
	}
}

func TestAnAPIServerThatIsDownHasAPlaceAndARemedy(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	k, place := dialTo(t, s.URL)
	err := k.checkAccess(context.Background())
	if err == nil || !strings.Contains(err.Error(), place+": dial tcp") || !strings.Contains(err.Error(), "check that the API server runs") {
		t.Errorf("error %v", err)
	}
}

func TestACertificateThatDoesNotFitHasItsRemedy(t *testing.T) {
	s := httptest.NewUnstartedServer(status(401, "Unauthorized"))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	k, _ := dialTo(t, s.URL)
	if err := k.checkAccess(context.Background()); err == nil || !strings.Contains(err.Error(), "correct the certificate-authority") {
		t.Errorf("error %v", err)
	}
}

// lab clean does not ask for permissions first.
func TestACleanWithoutPermissionNamesTheManifest(t *testing.T) {
	c, f := simulated()
	f.PrependReactor("list", "namespaces", func(action.Action) (bool, runtime.Object, error) {
		return true, nil, api.NewForbidden(core.Resource("namespaces"), "", errors.New(`User "jane" cannot list resource`))
	})
	if _, _, err := c.clean(context.Background(), ""); err == nil || !strings.Contains(err.Error(), "jane") || !strings.Contains(err.Error(), ManifestCommand) {
		t.Errorf("error %v, want %q", err, ManifestCommand)
	}
}

func TestAnInterruptIsNoFaultOfTheCluster(t *testing.T) {
	k, _ := answering(t, status(401, "Unauthorized"))
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(interrupted)
	if err := k.checkAccess(ctx); !errors.Is(err, interrupted) {
		t.Errorf("error %v", err)
	}
}
