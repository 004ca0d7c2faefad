package k8s

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
)

// An installation that was deleted and applied again is not removed because of the earlier deletion's event.
func TestAnInstallationThatIsBackIsNotRemoved(t *testing.T) {
	for _, c := range []struct {
		what    string
		answer  string
		status  int
		begun   bool // a watch had an event of the deletion
		removed bool
	}{
		{"there", `{"metadata":{"name":"x"}}`, http.StatusOK, false, false},
		{"there again", `{"metadata":{"name":"x"}}`, http.StatusOK, true, false},
		{"being deleted", `{"metadata":{"name":"x","deletionTimestamp":"2026-11-27T00:00:00Z"}}`, http.StatusOK, false, true},
		{"gone", `{}`, http.StatusNotFound, false, true},
		{"not to be asked, after the event", `{}`, http.StatusForbidden, true, true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.answer)
		}))
		token := filepath.Join(t.TempDir(), "token")
		must.Succeed(t, os.WriteFile(token, nil, 0o600))
		r := &removal{client: &client{base: server.URL, token: token, http: server.Client()}, objects: [][2]string{{"/api/v1/namespaces", "x"}}, begun: make(chan struct{})}
		if c.begun {
			close(r.begun)
		}
		if got := r.isRemoved(); got != c.removed {
			t.Errorf("an installation that is %s: removed is %v, want %v", c.what, got, c.removed)
		}
		server.Close()
	}
}
