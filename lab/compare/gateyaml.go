package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"windtunnel/lab/suite"
)

// Limits of a gate file, so that a malicious one costs no more than reading it.
const (
	MaxGateBytes = 64 << 10
	mostNesting  = 8   // flow brackets, or dashes on one line; a gate file needs two
	mostIndent   = 100 // characters before a word
	mostTokens   = 10_000
	mostErrors   = 20
)

// gateFile collects the mistakes in a gate file.
type gateFile struct {
	name  string
	lines []string
	errs  suite.Errors
}

// place is a line and column of the file, from 1. The zero value is no place.
type place struct{ line, column int }

// fail records a mistake. It drops others at the same place, because they
// follow from the first one, and all beyond the number that a person reads.
func (f *gateFile) fail(p place, problem, remedy string) {
	again := func(e *suite.Error) bool { return p.line > 0 && e.Line == p.line && e.Column == p.column }
	if len(f.errs) >= mostErrors || slices.ContainsFunc(f.errs, again) {
		return
	}
	e := &suite.Error{File: f.name, Line: p.line, Column: p.column, Problem: problem, Remedy: remedy}
	if p.line > 0 && p.line <= len(f.lines) {
		e.Text = f.lines[p.line-1]
	}
	f.errs = append(f.errs, e)
}

// document returns the single YAML document of the file, or nil after recording
// mistakes.
func (f *gateFile) document(data []byte) ast.Node {
	text, ok := f.readText(data)
	if !ok {
		return nil
	}
	file := f.parse(text)
	if file == nil {
		return nil
	}
	var root ast.Node
	for _, d := range file.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.CommentType:
		case root != nil:
			f.fail(f.place(d.Body, nil), "a second document in the file", `remove what follows the line "---"`)
			return nil
		default:
			root = d.Body
		}
	}
	if root == nil {
		f.fail(place{}, "the file is empty", `start with the line "gates:" and a list below it`)
	}
	return root
}

func (f *gateFile) readText(data []byte) (string, bool) {
	if len(data) > MaxGateBytes {
		f.fail(place{}, fmt.Sprintf("the file has %d bytes, a gate file may have %d", len(data), MaxGateBytes), "name the file that holds the gates")
		return "", false
	}
	text := strings.ReplaceAll(string(withoutMark(data)), "\r\n", "\n")
	f.lines = strings.Split(text, "\n")
	control := func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f }
	if !utf8.ValidString(text) || strings.ContainsFunc(text, control) {
		f.fail(place{}, "the file is not plain UTF-8 text", "save it as UTF-8 without control characters")
		return "", false
	}
	return text, true
}

// parse calls the YAML library and treats a panic of the library as a broken
// file. Duplicate keys stay, to be reported with the other mistakes.
func (f *gateFile) parse(text string) (file *ast.File) {
	defer func() {
		if p := recover(); p != nil {
			f.fail(place{}, fmt.Sprintf("the YAML cannot be read: %v", p), "check indentation, quotes and brackets")
			file = nil
		}
	}()
	tokens := lexer.Tokenize(text)
	if !f.plain(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := place{}, err.Error()
		var located yaml.Error
		if errors.As(err, &located) {
			at, message = tokenPlace(located.GetToken()), located.GetMessage()
		}
		f.fail(at, "the YAML cannot be read: "+message, "check the indentation, quotes and brackets around this place")
		return nil
	}
	return file
}

// plain rejects deep nesting, and the parts of YAML that gates do not need,
// before recursive code reads the file.
func (f *gateFile) plain(tokens token.Tokens) bool {
	flow, dashes, line := 0, 0, 0
	for i, t := range tokens {
		p := tokenPlace(t)
		far := false
		if p.line != line {
			line, dashes = p.line, 0
			far = p.column > mostIndent && flow == 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType:
			dashes++
		case token.AliasType:
			f.fail(p, "a word that starts with * is an alias of YAML", `put a pattern into quotes: "*/stream"`)
			return false
		case token.AnchorType, token.MergeKeyType, token.TagType, token.DirectiveType, token.MappingKeyType:
			f.fail(p, fmt.Sprintf("%q has a meaning of its own in YAML, of which gates have no use", clip(t.Value)), "write it in quotes, or remove it")
			return false
		}
		if flow > mostNesting || dashes > mostNesting || i > mostTokens || far {
			f.fail(p, "the file is nested too deep or too long", "a gate file is a list of gates with five keys each")
			return false
		}
	}
	return true
}

func tokenPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// place returns the position of n that a person would point at: a mapping's
// first key, not its first colon as in the library. otherwise is used for a
// missing value.
func (f *gateFile) place(n, otherwise ast.Node) place {
	switch n := n.(type) {
	case nil:
	case *ast.NullNode:
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return f.place(n.Values[0], otherwise)
		}
		return tokenPlace(n.GetToken())
	case *ast.MappingValueNode:
		return tokenPlace(n.Key.GetToken())
	default:
		return tokenPlace(n.GetToken())
	}
	if otherwise != nil {
		return tokenPlace(otherwise.GetToken())
	}
	return place{}
}

// entries returns the keys and values of a mapping. Unknown and duplicate keys
// are recorded and left out.
func (f *gateFile) entries(n ast.Node, what string, allowed []string) []*ast.MappingValueNode {
	var all []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		all = n.Values
	case *ast.MappingValueNode:
		all = []*ast.MappingValueNode{n}
	default:
		f.fail(f.place(n, nil), what+" is not a mapping of keys to values", "known here: "+strings.Join(allowed, ", "))
		return nil
	}
	var good []*ast.MappingValueNode
	seen := make(map[string]int)
	for _, e := range all {
		key, at := e.Key.GetToken().Value, tokenPlace(e.Key.GetToken())
		switch first, twice := seen[key]; {
		case !slices.Contains(allowed, key):
			f.fail(at, fmt.Sprintf("unknown key %q in %s", clip(key), what), meant(key, "known here", allowed))
		case twice:
			f.fail(at, fmt.Sprintf("%q is set twice, first in line %d", key, first), "remove one of the two")
		default:
			seen[key] = at.line
			good = append(good, e)
		}
	}
	return good
}

// text reads a single value.
func (f *gateFile) text(n, key ast.Node, wants string) (Pattern, bool) {
	at := f.place(n, key)
	s := Pattern{Line: at.line, Column: at.column}
	switch n := n.(type) {
	case *ast.StringNode:
		s.Text = n.Value
	case *ast.NullNode, nil:
		f.fail(at, "there is no value; "+wants+" belongs here", "")
		return s, false
	case ast.ScalarNode:
		s.Text = n.GetToken().Value
	default:
		f.fail(at, "a list or mapping stands where "+wants+" belongs", "")
		return s, false
	}
	s.Text = strings.TrimSpace(s.Text)
	return s, true
}

// texts reads a single value or a list of them.
func (f *gateFile) texts(n, key ast.Node, wants string) []Pattern {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		if one, ok := f.text(n, key, wants); ok {
			return []Pattern{one}
		}
		return nil
	}
	if len(list.Values) == 0 {
		f.fail(f.place(n, key), "the list is empty; "+wants+" belongs here", "")
	}
	var all []Pattern
	for _, entry := range list.Values {
		if one, ok := f.text(entry, key, wants); ok {
			all = append(all, one)
		}
	}
	return all
}
