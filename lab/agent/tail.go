package agent

import (
	"strings"
	"sync"
)

// Tail keeps the last part of what is written to it, such as the messages of a program that
// runs an agent elsewhere.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4 << 10 // bytes

// Write keeps b, and drops the oldest text above 4 KiB.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(b), nil
}

// String returns the text on one line.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.FieldsFunc(string(t.text), func(c rune) bool { return c == '\n' || c == '\r' }), " | ")
}
