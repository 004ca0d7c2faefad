package serve

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

const secret = "a-token-of-the-test-1"

func TestWithoutTheTokenNothingIsShown(t *testing.T) {
	_, reader, running, _ := filled(t)
	_, at := site(t, reader, func(o *Options) { o.Token = secret })
	paths := []string{"/", "/runs/20261121-093015-quick", "/runs/" + running.ID + "/live", "/runs/" + running.ID + "/events", "/compare", "/trend", "/metrics", "/api/runs", "/nowhere", "/favicon.ico", "/static/../api/runs", "/static/%2e%2e/runs/latest"}
	for _, path := range paths {
		for _, headers := range [][]string{
			nil,
			{"Authorization", "Bearer " + secret + "x"},
			{"Authorization", "Bearer"},
			{"Authorization", "Basic " + secret},
			{"Cookie", cookieOf(secret).name + "=" + secret},
			{"Cookie", cookieOf("another-token-of-1").name + "=" + cookieOf("another-token-of-1").value},
		} {
			a := get(t, at+path, headers...)
			a.expect(t, fmt.Sprint(path, headers), http.StatusUnauthorized, "--token-file")
			if strings.Contains(a.body, "quick") || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s %q: the answer has data of the store, or no WWW-Authenticate: %q", path, headers, a.header.Get("WWW-Authenticate"))
			}
		}
	}
	for _, path := range []string{"/?token=" + secret + "x", "/?token=", "/?token", "/runs/latest?token=" + secret} {
		a := get(t, at+path)
		a.expect(t, path, http.StatusUnauthorized)
		if a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s sets a cookie", path)
		}
	}
	get(t, at+"/static/style.css").expect(t, "the style sheet, which the page of the error needs", http.StatusOK)
	get(t, at+"/api/runs", "Authorization", "Bearer "+secret).expect(t, "a program with the token", http.StatusOK, "quick")
	get(t, at+"/metrics", "Authorization", "bearer "+secret).expect(t, "Prometheus with the token", http.StatusOK, "windtunnel_runs")
}

func TestTheTokenInTheAddressSetsACookieOnce(t *testing.T) {
	_, reader, _, _ := filled(t)
	_, at := site(t, reader, func(o *Options) { o.Token = secret })
	a := get(t, at+"/?token="+secret)
	a.expect(t, "the address with the token", http.StatusOK, `content="0; url=/"`)
	if strings.Contains(a.body, "20261121") || strings.Contains(a.body, secret) {
		t.Error("the page has data of the store, or the token")
	}
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d cookies, want 1", len(cookies))
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || strings.Contains(c.Value, secret) {
		t.Errorf("the cookie is %v, want HttpOnly, SameSite=Strict, path /, and not the token itself", c)
	}
	get(t, at+"/", "Cookie", "other=1; "+c.Name+"="+c.Value).expect(t, "with the cookie", http.StatusOK, "20261121-093015-quick")
	if other := cookieOf("another-token-of-1"); other.name == c.Name || other.value == c.Value {
		t.Error("servers with different tokens have the same cookie")
	}
}

// Without a token every name of the host that a page of another site could have is refused.
func TestHostsOfOtherSitesAreRefused(t *testing.T) {
	_, reader, _, _ := filled(t)
	_, at := site(t, reader, func(o *Options) { o.Hosts = []string{"lab.example.net", ""} })
	for host, want := range map[string]int{
		"localhost": 200, "localhost:9000": 200, "LOCALHOST.": 200, "127.0.0.1": 200, "127.0.0.1:1": 200, "[::1]:8420": 200, "[::1]": 200, "192.0.2.7:80": 200,
		"lab.example.net": 200, "Lab.Example.Net:443": 200,
		"evil.example": 421, "evil.example:8420": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "xlab.example.net": 421, "lab.example.net.evil.example:80": 421, ":80": 421,
	} {
		for _, path := range []string{"/", "/api/runs", "/metrics", "/static/live.js", "/runs/20270101-000000-slow/events"} {
			if want == 200 && strings.HasSuffix(path, "/events") {
				continue // has no end
			}
			a := get(t, at+path, "Host", host)
			a.expect(t, "host "+host+path, want)
			if want != 200 && strings.Contains(a.body, "quick") {
				t.Errorf("host %s: %s has data of the store", host, path)
			}
		}
	}
	if line := raw(t, at, "GET / HTTP/1.0\r\n\r\n"); !strings.Contains(line, " 421 ") {
		t.Errorf("without a host: %q, want 421", line)
	}
}

func TestNoPageMayBeFramedOrReadByOtherSites(t *testing.T) {
	_, reader, _, _ := filled(t)
	_, at := site(t, reader)
	for _, path := range []string{"/", "/runs/20261121-093015-quick", "/nowhere", "/api/runs", "/metrics", "/static/live.js"} {
		a := get(t, at+path, "Origin", "http://evil.example")
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Access-Control-Allow-Origin": "",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if csp := a.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe-eval") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
	if csp := get(t, at+"/").header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") {
		t.Errorf("the list's policy %q allows inline code", csp)
	}
}

func TestTokensOfFiles(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		secret:                         secret,
		" " + secret + "\n":            secret,
		"":                             "",
		"short":                        "",
		"has a space in its text":      "",
		"tökentökentökentöken":         "",
		strings.Repeat("x", 1024):      strings.Repeat("x", 1024),
		strings.Repeat("x", 1025):      "",
		strings.Repeat("x", 1_000_000): "",
	} {
		path := filepath.Join(dir, "token")
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		got, err := ReadToken(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("token of %.30q: %.30q, %v, want %.30q", text, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "openssl rand") {
			t.Errorf("token of %.30q: the error has no remedy: %v", text, err)
		}
	}
	if _, err := ReadToken(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a missing file is no error")
	}
	a, b := NewToken(), NewToken()
	if len(a) < leastToken || a == b {
		t.Errorf("generated tokens %q and %q, want two different ones of %d characters or more", a, b, leastToken)
	}
}
