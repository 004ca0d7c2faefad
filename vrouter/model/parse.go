package model

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
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
	if err := plain(name, data); err != nil {
		return s, err
	}
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict(), yaml.DisallowUnknownField())
	if err := d.Decode(&s); err != nil {
		return State{}, located(name, err)
	}
	return s, nil
}

// plain refuses what can make a small file huge: aliases, and nesting without
// end.
func plain(name string, data []byte) error {
	depth := 0
	for _, t := range lexer.Tokenize(string(data)) {
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
