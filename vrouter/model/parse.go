package model

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

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
			err = fmt.Errorf("%s: the YAML cannot be read: %v; check indentation, quotes and brackets", name, p)
		}
	}()
	if len(data) > MaxFileBytes {
		return s, fmt.Errorf("%s: the file has %d bytes, %d are allowed; split the fleet", name, len(data), MaxFileBytes)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return s, fmt.Errorf("%s: the file is empty; it needs nodes, networks and ports", name)
	}
	if bytes.TrimSpace(data)[0] == '{' && json.Unmarshal(data, &s, json.RejectUnknownMembers(true)) == nil {
		return s, nil // a program wrote it; YAML's reader takes twenty times as long, and knows places
	}
	s = State{}
	tokens := lexer.Tokenize(string(data))
	if err := plain(name, tokens); err != nil {
		return s, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return s, located(name, err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return s, fmt.Errorf("%s: %d YAML documents; write one", name, len(file.Docs))
	}
	// The decoder writes the text of an address anew, with all that its token
	// is linked to: the whole file, for each.
	for _, t := range tokens {
		t.Prev, t.Next = nil, nil
	}
	if err := yaml.NodeToValue(file.Docs[0].Body, &s, yaml.Strict()); err != nil {
		return State{}, located(name, err)
	}
	return s, nil
}

// plain refuses what can make a small file huge: aliases, and nesting without
// end.
func plain(name string, tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.AliasType, token.AnchorType, token.MergeKeyType:
			return fmt.Errorf("%s:%d:%d: anchors and aliases are not allowed; write the value out", name, t.Position.Line, t.Position.Column)
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth > mostNesting {
			return fmt.Errorf("%s:%d:%d: more than %d brackets in each other", name, t.Position.Line, t.Position.Column, mostNesting)
		}
	}
	return nil
}

// located puts file, line and column in front of the library's words.
func located(name string, err error) error {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil || y.GetToken().Position == nil {
		return fmt.Errorf("%s: %s", name, strings.TrimSpace(err.Error()))
	}
	t := y.GetToken()
	return fmt.Errorf("%s:%d:%d: %s: %q", name, t.Position.Line, t.Position.Column, y.GetMessage(), strings.TrimSpace(t.Value))
}
