package results

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	beginsWithScheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	// A URL of PostgreSQL with a wrong number of slashes, such as postgres:/host/database.
	nearlyURL = regexp.MustCompile(`(?i)^(postgres|postgresql|pgsql):`)

	postgresSchemes = []string{"postgres", "postgresql"}
)

// urlScheme returns the scheme of a place that is a URL, or looks like one of PostgreSQL; ""
// for a path.
func urlScheme(place string) string {
	if m := beginsWithScheme.FindStringSubmatch(place); m != nil {
		return m[1]
	}
	return strings.TrimSuffix(nearlyURL.FindString(place), ":")
}

// checkScheme returns an error unless the place begins as a URL of PostgreSQL.
func checkScheme(place, scheme string) error {
	if slices.Contains(postgresSchemes, scheme) && strings.HasPrefix(place, scheme+"://") {
		return nil
	}
	return fmt.Errorf("open store %s: this is neither a path nor a URL of PostgreSQL; write postgres://USER@HOST/DATABASE, or ./%s:… for a file of this name", HidePassword(place), scheme)
}

// ambiguous reports whether a URL has an "@" that does not end its user and password. The
// password then most likely has a character that is not encoded.
func ambiguous(place string) bool {
	_, rest, _ := strings.Cut(place, "://")
	rest, _, _ = strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	return strings.Count(authority, "@") > 1 || strings.Contains(path, "@")
}

// HidePassword returns a text of the same length with "*" for each password of a URL: after
// the user, and in the options password and sslpassword. If there is an "@" behind the host,
// it hides more than the password. A text without "://" stays as it is, unless it begins like a
// URL of PostgreSQL.
func HidePassword(text string) string {
	start := strings.Index(text, "://")
	switch {
	case start >= 0:
		start += len("://")
	case nearlyURL.MatchString(text):
		start = len(nearlyURL.FindString(text))
	default:
		return text
	}
	hidden := []byte(text)
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			hidden[i] = '*'
		}
	}
	// An unencoded "@", "/" or "?" in the password ends it too early for a parser, so the
	// password is all between the first ":" and the last "@".
	rest := text[start:]
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if colon := strings.IndexByte(rest[:at], ':'); colon >= 0 {
			hide(start+colon+1, start+at)
		}
	}
	for from := start; from < len(text); {
		end := len(text)
		if n := strings.IndexAny(text[from:], "?&"); n >= 0 {
			end = from + n
		}
		if name, value, found := strings.Cut(text[from:end], "="); found && secretOption(name) {
			hide(end-len(value), end)
		}
		from = end + 1
	}
	return string(hidden)
}

func secretOption(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	return slices.Contains([]string{"password", "sslpassword"}, strings.ToLower(name))
}
