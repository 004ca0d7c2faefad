package browsertest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"windtunnel/internal/must"
)

// The server's pages lead the browser from one to the next, on two sites in turn. The expression takes 100 ms, so the browser leaves
// the page while it evaluates it. Between two sites, chromium then ends the evaluation with an error.
func TestUntilGoesOnWhenTheBrowserLeavesThePage(t *testing.T) {
	t.Parallel()
	var port string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Content-Type", "text/html")
		if n == 20 {
			fmt.Fprint(w, `<title>the last one</title>`)
			return
		}
		fmt.Fprintf(w, `<meta http-equiv="refresh" content="0; url=http://%s:%s/?n=%d">`, []string{"localhost", "127.0.0.1"}[n%2], port, n+1)
	}))
	defer s.Close()
	var err error
	_, port, err = net.SplitHostPort(s.Listener.Addr().String())
	must.Succeed(t, err)
	Open(t, s.URL, 800).Until(t, `(() => { for (const end = Date.now() + 100; Date.now() < end;); return document.title })()`, "the last one")
}
