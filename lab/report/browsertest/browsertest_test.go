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

// Each page is on another site than the one before, so chromium ends the process of the page that a pending expression is for.
func TestUntilWaitsWhileThePageGoesOn(t *testing.T) {
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
