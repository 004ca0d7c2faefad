package model

import (
	"bytes"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on a file of desired state: they keep a hostile one from costing more
// than its reading.
const (
	MaxFileBytes = 64 << 20
	mostNesting  = 32
)

// Parse reads a desired state from YAML (or JSON, which is YAML): strictly, an
// unknown key is an error with its place. What is read is not validated yet.
func Parse(name string, data []byte) (s State, err error) {
	defer func() {
		if p := recover(); p != nil { // the library's way with some broken files
			s, err = State{}, fmt.Errorf("%s: the YAML cannot be read: %v; %s", name, p, checkSyntax)
		}
	}()
	text := bytes.TrimSpace(data)
	switch {
	case len(data) > MaxFileBytes:
		return s, fmt.Errorf("%s: the file has %d bytes, %d are allowed; split the fleet", name, len(data), MaxFileBytes)
	case len(text) == 0:
		return s, isEmpty(name)
	case !utf8.Valid(data):
		return s, notUTF8(name, data)
	}
	if text[0] == '{' && json.Unmarshal(data, &s, json.RejectUnknownMembers(true)) == nil {
		return s, nil // a program wrote it; YAML's reader takes twenty times as long, and knows places
	}
	return parseYAML(name, data)
}

func parseYAML(name string, data []byte) (s State, err error) {
	tokens := lexer.Tokenize(string(data))
	if err := plain(name, tokens); err != nil {
		return s, err
	}
	file, err := parser.Parse(tokens, 0)
	switch {
	case err != nil:
		return s, located(name, tokens, err)
	case len(file.Docs) > 1:
		return s, fmt.Errorf("%s: %d YAML documents; write one", name, len(file.Docs))
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return s, isEmpty(name)
	}
	// The decoder writes the text of an address anew, with all that its token
	// is linked to: the whole file, for each.
	for _, t := range tokens {
		t.Prev, t.Next = nil, nil
	}
	body := file.Docs[0].Body
	if _, err := fits(name, body, reflect.TypeFor[State]()); err != nil {
		return s, err
	}
	if err := yaml.NodeToValue(body, &s, yaml.Strict()); err != nil {
		return State{}, located(name, tokens, err)
	}
	return s, nil
}

func isEmpty(name string) error {
	return fmt.Errorf("%s: the file is empty; it needs nodes, networks and ports", name)
}

// notUTF8 names the line of the first byte that is no text: JSON could not
// write such a state again.
func notUTF8(name string, data []byte) error {
	good := 0
	for {
		r, n := utf8.DecodeRune(data[good:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		good += n
	}
	return fmt.Errorf("%s:%d: byte 0x%02x is no text in UTF-8; save the file in that encoding", name, 1+bytes.Count(data[:good], []byte("\n")), data[good])
}

// plain refuses what can make a small file huge or its reading slow: aliases,
// and nesting without end; and tags, which would be taken for nothing.
func plain(name string, tokens token.Tokens) error {
	brackets, entries, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			entries, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.AliasType, token.AnchorType, token.MergeKeyType:
			return fmt.Errorf("%s:%d:%d: anchors and aliases are not allowed; write the value out", name, t.Position.Line, t.Position.Column)
		case token.TagType:
			return fmt.Errorf("%s:%d:%d: tags are not allowed; leave %s out, and quote what is text", name, t.Position.Line, t.Position.Column, clip(t.Value))
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType:
			entries++
		}
		if brackets > mostNesting || entries > mostNesting {
			return fmt.Errorf("%s:%d:%d: more than %d lists in each other; a state has three", name, t.Position.Line, t.Position.Column, mostNesting)
		}
	}
	return nil
}
