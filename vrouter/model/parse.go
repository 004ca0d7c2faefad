package model

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"windtunnel/internal/phrase"
)

// Limits of a state file, so that a hostile file cannot use much memory or time. A fleet of
// 100,000 ports has about 20 MB and 1,700,000 values as JSON.
const (
	MaxFileBytes = 32 << 20
	MaxValues    = 2_000_000 // of JSON: a value takes up to 200 bytes of memory
	maxTokens    = 500_000   // of YAML: a token takes up to 1 kB, and its library 10 µs
	maxNesting   = 32
)

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
	defer func() {
		if p := recover(); p != nil { // the library panics on some broken files
			s, err = State{}, fmt.Errorf("%s: parse the YAML: %v; %s", name, p, checkSyntax)
		}
	}()
	text := bytes.TrimSpace(data)
	switch {
	case len(data) > MaxFileBytes:
		return s, fmt.Errorf("%s: the file has %d bytes, at most %d are allowed; split the fleet", name, len(data), MaxFileBytes)
	case len(text) > 0 && text[0] == '{' && valuesIn(text) > MaxValues:
		return s, fmt.Errorf("%s: %w", name, &TooManyError{MaxValues, "JSON values"})
	case len(text) == 0:
		return s, isEmpty(name)
	case !utf8.Valid(data):
		return s, notUTF8(name, data)
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
	tokens := lexer.Tokenize(string(data))
	if err := checkTokens(name, tokens); err != nil {
		return s, err
	}
	file, err := parser.Parse(tokens, 0)
	switch {
	case err != nil:
		return s, withPosition(name, tokens, err)
	case len(file.Docs) > 1:
		return s, fmt.Errorf("%s: it has %d YAML documents; write one", name, len(file.Docs))
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return s, isEmpty(name)
	}
	// The decoder converts the node of each address to text, with all linked
	// tokens. The links lead to every token of the file. Removing them saves
	// that work.
	for _, t := range tokens {
		t.Prev, t.Next = nil, nil
	}
	body := file.Docs[0].Body
	if _, err := fits(name, body, reflect.TypeFor[State]()); err != nil {
		return s, err
	}
	if err := yaml.NodeToValue(body, &s, yaml.Strict()); err != nil {
		return State{}, withPosition(name, tokens, err)
	}
	return s, nil
}

func isEmpty(name string) error {
	return fmt.Errorf("%s: the file is empty; it needs nodes, networks and ports", name)
}

// notUTF8 reports the line of the first invalid byte. JSON cannot represent such
// text.
func notUTF8(name string, data []byte) error {
	good := 0
	for {
		r, n := utf8.DecodeRune(data[good:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		good += n
	}
	return fmt.Errorf("%s:%d: byte 0x%02x is not valid UTF-8; save the file in that encoding", name, 1+bytes.Count(data[:good], []byte("\n")), data[good])
}

// checkTokens refuses aliases and deep nesting, since a small file with these
// can use much memory or time. It also refuses tags, since the decoder would
// ignore them.
func checkTokens(name string, tokens token.Tokens) error {
	brackets, entries, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			entries, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.AliasType, token.AnchorType, token.MergeKeyType:
			return fmt.Errorf("%s:%d:%d: anchors and aliases are not allowed; write the value out", name, t.Position.Line, t.Position.Column)
		case token.TagType:
			return fmt.Errorf("%s:%d:%d: tags are not allowed; remove %s, and quote text", name, t.Position.Line, t.Position.Column, phrase.Clip(t.Value))
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType:
			entries++
		}
		if brackets > maxNesting || entries > maxNesting {
			return fmt.Errorf("%s:%d:%d: lists are nested more than %d deep; a state needs three levels", name, t.Position.Line, t.Position.Column, maxNesting)
		}
	}
	return nil
}
