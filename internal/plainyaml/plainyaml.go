// Package plainyaml reads the part of YAML that the files of both programs use. It refuses anchors,
// aliases, merge keys, tags, directives and keys of several words. Limits keep a small hostile file from
// using much memory or time.
package plainyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits are the limits of a file, with the remedies for what exceeds them.
type Limits struct {
	Bytes   int    // maximum size of the file
	Tokens  int    // maximum number; the library's time grows with the square of a mapping's keys
	Indent  int    // maximum of characters before the first token of a line
	Nesting int    // maximum depth of brackets, and maximum of dashes in one line
	Split   string // remedy for a file that is too long
	Shape   string // remedy for deep nesting
	Anchor  string // remedy for an anchor, an alias or a merge key
}

// Error is an error in a file. An error of the whole file has line 0.
type Error struct {
	Line, Column int
	Text, Remedy string
	Token        *token.Token // where the error is; can be nil
	cause        error        // of the library; can be nil
}

// Error returns the text and the remedy, after the position if there is one: "2:5: tags are not allowed; …".
func (e *Error) Error() string {
	message := e.Text + "; " + e.Remedy
	if e.Line > 0 {
		message = fmt.Sprintf("%d:%d: %s", e.Line, e.Column, message)
	}
	return message
}

func (e *Error) Unwrap() error { return e.cause }

// File is a file with its syntax tree.
type File struct {
	Text   string       // with "\n" at all line ends, so that line numbers are equal to an editor's
	Tokens token.Tokens // nil if the text has errors
	Body   ast.Node     // of the only document; nil if the file is empty
}

// Parse parses a file, which must have one document. An error is an *Error; the
// file then has only what was read before it.
func Parse(data []byte, l Limits, options ...parser.Option) (f *File, err error) {
	f = &File{}
	defer func() {
		if p := recover(); p != nil { // the library panics on some broken files
			err = notYAML(fmt.Errorf("%v", p))
		}
	}()
	if f.Text, err = readable(data, l); err != nil {
		return f, err
	}
	text := f.Text
	if !strings.HasSuffix(text, "\n") { // the lexer drops a tag at the end of such a text
		text += "\n"
	}
	f.Tokens = lexer.Tokenize(text)
	if err := check(f.Tokens, l); err != nil {
		return f, err
	}
	tree, err := parser.Parse(f.Tokens, 0, options...)
	if err != nil {
		return f, notYAML(err)
	}
	for _, d := range tree.Docs { // all but one are empty
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			f.Body = d.Body
		}
	}
	return f, nil
}

// readable checks the size and the characters of a file.
func readable(data []byte, l Limits) (string, error) {
	if len(data) > l.Bytes {
		return "", &Error{Text: fmt.Sprintf("the file has %d bytes, at most %d are allowed", len(data), l.Bytes), Remedy: l.Split}
	}
	s := string(bytes.TrimPrefix(data, []byte("\ufeff"))) // some editors write a byte order mark
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	line, column := 1, 1
	for i, c := range s {
		_, width := utf8.DecodeRuneInString(s[i:])
		if c == utf8.RuneError && width == 1 {
			return s, &Error{Line: line, Column: column, Text: fmt.Sprintf("byte 0x%02x is not UTF-8", s[i]), Remedy: "save the file as UTF-8 text"}
		}
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return s, &Error{Line: line, Column: column, Text: fmt.Sprintf("control character %U", c), Remedy: "remove it: YAML allows no control characters but tab and line end"}
		}
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
	}
	return s, nil
}

// check reports too many tokens, deep nesting, a second document, and what is not plain YAML. It runs before
// any recursive code reads the file. Anchors and aliases can expand a small file into a huge one; tags and
// directives have no meaning here. The parser skips some documents without an error.
func check(tokens token.Tokens, l Limits) error {
	brackets, dashes, line, count := 0, 0, 0, 0
	var end *token.Token // end of the first document
	for _, t := range tokens {
		switch {
		case t.Type == token.CommentType:
			continue
		case t.Type == token.DocumentEndType || t.Type == token.DocumentHeaderType && count > 0:
			end = cmp.Or(end, t)
		case end != nil:
			return at(end, "a second document in the file", fmt.Sprintf("remove what follows the line %q", end.Value))
		}
		if count++; count > l.Tokens {
			return at(t, fmt.Sprintf("more than %d YAML tokens before this position", l.Tokens), l.Split)
		}
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
			if t.Position.Column > l.Indent && brackets == 0 {
				return at(t, fmt.Sprintf("indented by more than %d characters", l.Indent), l.Shape)
			}
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType:
			dashes++
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return at(t, "anchors, aliases and merge keys are not allowed", l.Anchor)
		case token.TagType:
			return at(t, "tags are not allowed", "remove the tag; a value that starts with ! needs quotes")
		case token.DirectiveType:
			return at(t, "directives are not allowed", "remove the line; a value that starts with % needs quotes")
		case token.MappingKeyType:
			return at(t, `keys in the form "? key" are not allowed`, `write "key: value"`)
		}
		if brackets > l.Nesting || dashes > l.Nesting {
			return at(t, fmt.Sprintf("nested more than %d deep", l.Nesting), l.Shape)
		}
	}
	return nil
}

// notYAML explains an error of the library about a file that is not YAML.
func notYAML(err error) error {
	message, remedy := err.Error(), "check the indentation, quotes and brackets near this position"
	var y yaml.Error
	var where *token.Token
	if errors.As(err, &y) {
		message, where = y.GetMessage(), y.GetToken()
	}
	switch {
	case strings.Contains(message, `header option: "=`):
		remedy = `YAML takes > for the start of folded text: put the value in quotes, ">= 0.95"`
	case strings.Contains(message, "character '\t'"):
		remedy = "indent with spaces: YAML allows no tab there"
	}
	e := at(where, "the YAML cannot be read: "+message, remedy)
	e.cause = err
	return e
}

// at returns an error at a token, which can be nil.
func at(t *token.Token, text, remedy string) *Error {
	e := &Error{Text: text, Remedy: remedy, Token: t}
	if t != nil && t.Position != nil {
		e.Line, e.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	return e
}
