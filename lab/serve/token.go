package serve

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
)

// Limits of a token, in characters.
const (
	leastToken = 16
	mostToken  = 1024
)

// NewToken returns a random token with at least 128 bits.
func NewToken() string { return rand.Text() }

// ReadToken reads a token from a file. White space around it does not count.
func ReadToken(path string) (string, error) {
	const remedy = "name a readable file with a token; `openssl rand -hex 32 > token` makes one"
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w; %s", err, remedy)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 2*mostToken))
	if err != nil {
		return "", fmt.Errorf("read the token: %w; %s", err, remedy)
	}
	token := strings.TrimSpace(string(text))
	printable := strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
	if len(token) < leastToken || len(token) > mostToken || !printable {
		return "", fmt.Errorf("read the token of %s: a token has %d to %d ASCII characters without spaces; `openssl rand -hex 32` makes one", path, leastToken, mostToken)
	}
	return token, nil
}
