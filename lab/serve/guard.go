package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// policy is the Content-Security-Policy of the application's own pages. Scripts and styles
// are files of the server, and pages talk to the server alone.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP checks a request before a page sees it: its host, its method, its token.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case !s.knows(r.Host):
		s.fail(w, r, &problem{http.StatusMisdirectedRequest, "Unknown host", "The server does not know the host name of this request. Use its IP address or localhost, or allow the name with --host."})
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		s.fail(w, r, &problem{http.StatusMethodNotAllowed, "Only reading", "The server only reads the store. Use the method GET."})
	case s.login(w, r):
	case !s.allows(r):
		h.Set("WWW-Authenticate", `Bearer realm="windtunnel"`)
		s.fail(w, r, &problem{http.StatusUnauthorized, "Token needed", "Open /?token=TOKEN once in this browser, or send the header Authorization: Bearer TOKEN. The token is in the output of windtunnel serve, or in the file of --token-file."})
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// knows reports whether a Host header names this server. In an attack by DNS rebinding, a
// browser asks this server for pages of the attacker's host name. An IP address cannot be
// the attacker's host name.
func (s *Site) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	same := func(other string) bool { return other != "" && strings.EqualFold(strings.TrimSuffix(name, "."), other) }
	return same("localhost") || slices.ContainsFunc(s.options.Hosts, same)
}

// allows reports whether the request has the token, or needs none.
func (s *Site) allows(r *http.Request) bool {
	if s.options.Token == "" {
		return true
	}
	if _, pattern := s.mux.Handler(r); pattern == staticPattern { // the page of the error needs these files
		return true
	}
	if kind, given, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(kind, "Bearer") && equal(given, s.options.Token) {
		return true
	}
	return slices.ContainsFunc(r.CookiesNamed(s.cookie.name), func(c *http.Cookie) bool { return equal(c.Value, s.cookie.value) })
}

// login answers a request of /?token=TOKEN with the right token: it sets the cookie and
// leads to the list of runs. It is a page and not a redirect, because browsers omit a
// SameSite cookie after a redirect if the link was on a page of another site.
func (s *Site) login(w http.ResponseWriter, r *http.Request) bool {
	if s.options.Token == "" || r.URL.Path != "/" || !equal(r.URL.Query().Get("token"), s.options.Token) {
		return false
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookie.name, Value: s.cookie.value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	w.Header().Set("Cache-Control", "no-store")
	s.show(w, http.StatusOK, "login.html", page{Title: "Token accepted", Login: true})
	return true
}

// cookie is what a browser keeps instead of the token.
type cookie struct{ name, value string }

// cookieOf derives the cookie from the token, so that the cookie does not reveal the
// token. Servers of other tokens on the same host have cookies of other names.
func cookieOf(token string) cookie {
	derive := func(use string) string {
		mac := hmac.New(sha256.New, []byte(token))
		mac.Write([]byte(use))
		return hex.EncodeToString(mac.Sum(nil))
	}
	return cookie{"windtunnel-" + derive("name")[:12], derive("value")}
}

// equal compares in a time that does not depend on where the texts differ.
func equal(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
