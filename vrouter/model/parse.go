package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"

	"windtunnel/internal/plainyaml"
)

// Limits of a state file, so that a hostile file cannot use much memory or time. A fleet of
// 100,000 ports has about 20 MB and 1,700,000 values as JSON.
const (
	MaxFileBytes = 32 << 20
	MaxValues    = 2_000_000 // of JSON: a value takes up to 200 bytes of memory
	maxTokens    = 500_000   // of YAML: a token takes up to 1 kB, and its library 10 µs
)

var limits = plainyaml.Limits{
	Bytes: MaxFileBytes, Tokens: 3 * maxTokens, Indent: MaxFileBytes, Nesting: 32,
	Split: "split the fleet", Shape: "a state needs three levels", Anchor: "write the value out",
}

// valuesIn returns about the number of values in JSON. An object counts as four more, because it
// takes memory also for the fields that it does not have.
func valuesIn(text []byte) int {
	return 4*bytes.Count(text, []byte{'{'}) + bytes.Count(text, []byte{','})
}

// LimitValues returns a reader of JSON that fails after MaxValues.
func LimitValues(r io.Reader) io.Reader { return &valueLimit{r: r} }

type valueLimit struct {
	r io.Reader
	n int
}

func (l *valueLimit) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.n += valuesIn(p[:n]); l.n > MaxValues {
		return 0, &TooManyError{MaxValues, "JSON values"}
	}
	return n, err
}

// TooManyError says that a state has too many values or tokens.
type TooManyError struct {
	limit int
	what  string
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("it has more than the allowed %d %s; split the fleet", e.limit, e.what)
}

// Parse decodes a desired state from YAML or JSON. An unknown key is an error.
// Errors have the position in the file. Parse does not validate the state.
func Parse(name string, data []byte) (s State, err error) {
	text := bytes.TrimSpace(data)
	switch {
	case len(data) > MaxFileBytes:
		return s, fmt.Errorf("%s: the file has %d bytes, at most %d are allowed; split the fleet", name, len(data), MaxFileBytes)
	case len(text) > 0 && text[0] == '{' && valuesIn(text) > MaxValues:
		return s, fmt.Errorf("%s: %w", name, &TooManyError{MaxValues, "JSON values"})
	case len(text) == 0:
		return s, isEmpty(name)
	}
	var notJSON error
	if text[0] == '{' {
		if notJSON = json.Unmarshal(data, &s, json.RejectUnknownMembers(true)); notJSON == nil {
			return s, nil // the JSON decoder is twenty times faster; the YAML decoder has positions for errors
		}
	}
	switch {
	case FitsYAML(text):
		return parseYAML(name, data)
	case notJSON != nil:
		return State{}, fmt.Errorf("%s: the JSON is not a state: %w", name, notJSON)
	}
	return s, fmt.Errorf("%s: the file has more than the allowed %d YAML tokens (words and signs); write it as JSON, as `vrouter state -o json` does", name, maxTokens)
}

// FitsYAML reports whether Parse reads a YAML text: it has at most maxTokens.
func FitsYAML(text []byte) bool { return aboutTokens(text) <= maxTokens }

// aboutTokens counts the words and signs of a YAML text. The text has at most three times as many
// tokens.
func aboutTokens(text []byte) (n int) {
	signs, quotes, between := 0, 0, true
	for _, c := range text {
		switch c {
		case ' ', '\n', '\r':
			between = true
			continue
		case ',', '[', ']', '{', '}', '*', '&', '%', '@', '`', '\t':
			signs, between = signs+1, true
			continue
		case '"', '\'':
			quotes++
		}
		if between {
			n++
		}
		between = false
	}
	return n + signs + quotes/2
}

func parseYAML(name string, data []byte) (s State, err error) {
	file, err := plainyaml.Parse(data, limits)
	var wrong *plainyaml.Error
	var known yaml.Error
	switch {
	case errors.As(err, &known):
		return s, withPosition(name, file.Tokens, known)
	case errors.As(err, &wrong) && wrong.Line > 0:
		return s, fmt.Errorf("%s:%w", name, wrong)
	case err != nil:
		return s, fmt.Errorf("%s: %w", name, err)
	case file.Body == nil:
		return s, isEmpty(name)
	}
	// The decoder converts the node of each address to text, with all linked
	// tokens. The links lead to every token of the file. Removing them saves
	// that work.
	for _, t := range file.Tokens {
		t.Prev, t.Next = nil, nil
	}
	if _, err := fits(name, file.Body, reflect.TypeFor[State]()); err != nil {
		return s, err
	}
	if err := yaml.NodeToValue(file.Body, &s, yaml.Strict()); err != nil {
		return State{}, withPosition(name, file.Tokens, err)
	}
	return s, nil
}

func isEmpty(name string) error {
	return fmt.Errorf("%s: the file is empty; it needs nodes, networks and ports", name)
}
