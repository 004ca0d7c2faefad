package suite

import (
	"bytes"
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

// MaxFileBytes is the maximum size of a suite file. The lab's suites are far smaller.
const MaxFileBytes = 1 << 20

// dialect describes a language of this package: suites, or gate files. Its limits are
// checked before the keys are read. So a hostile file costs little time and memory.
// Messages contain its texts.
type dialect struct {
	what                        string // name of a file in messages: "a suite"
	bytes                       int
	nesting                     int    // maximum depth of flow brackets, and maximum of sequence dashes on one line
	indent                      int    // maximum of characters before the first token of a line
	tokens                      int    // maximum; the YAML library's time grows with the square of a mapping's keys
	start, shape, split, anchor string // remedies for: an empty file, deep nesting, a file that is too long, anchors and aliases
}

var suiteLanguage = dialect{
	what: "a suite", bytes: MaxFileBytes, nesting: 32, indent: 200, tokens: 50_000,
	start:  `start with a line such as "suite: my-suite"; workloads and scenarios are needed too`,
	shape:  "a suite needs a nesting of five and ten characters of indent",
	split:  "split the file into several suites",
	anchor: "define a name under fabrics or workloads, and use this name",
}

// document parses the YAML of a file, which must be one mapping. If it is not,
// the result is nil and j has the error.
func document(j *journal, data []byte, d dialect) *ast.MappingNode {
	text, ok := readable(j, data, d)
	if !ok {
		return nil
	}
	tokens, ok := tokenize(j, text)
	if !ok || !withinLanguage(j, tokens, d) {
		return nil
	}
	file, err := parse(tokens)
	if err != nil {
		pos, text := located(err)
		remedy := "check the indentation, quotes and brackets near this position"
		if strings.Contains(text, `header option: "=`) {
			remedy = `YAML takes > for the start of folded text: put the value in quotes, ">= 0.95"`
		}
		if strings.Contains(text, "character '\t'") {
			remedy = "indent with spaces: YAML allows no tab there"
		}
		j.fail(pos, "the YAML cannot be read: "+text, remedy)
		return nil
	}
	return onlyMapping(j, file, d)
}

// readable checks the size and the characters of a file. It makes all line ends equal,
// so that line numbers in messages are equal to an editor's.
func readable(j *journal, data []byte, d dialect) (string, bool) {
	if len(data) > d.bytes {
		j.fail(position{}, fmt.Sprintf("the file has %d bytes; %s may have at most %d", len(data), d.what, d.bytes), d.split)
		return "", false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	j.lines = strings.Split(text, "\n")
	line, column := 1, 1
	for i, c := range text {
		_, width := utf8.DecodeRuneInString(text[i:])
		if c == utf8.RuneError && width == 1 {
			j.fail(position{line, column}, fmt.Sprintf("byte 0x%02x is not UTF-8", text[i]), "save the file as UTF-8 text")
			return "", false
		}
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			j.fail(position{line, column}, fmt.Sprintf("control character %U", c), "remove it: YAML allows no control characters but tab and line end")
			return "", false
		}
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
	}
	return text, true
}

// tokenize splits text into YAML tokens. It recovers from panics of the YAML library,
// because a broken file must not end the program.
func tokenize(j *journal, text string) (tokens token.Tokens, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			j.fail(position{}, fmt.Sprintf("the YAML cannot be read: %v", p), "check indentation, quotes and brackets")
			tokens, ok = nil, false
		}
	}()
	return lexer.Tokenize(text), true
}

// parse builds the syntax tree. It recovers from panics like tokenize. It accepts
// duplicate keys; mapping.read reports them later, with all other errors.
func parse(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// located returns the position and the text of an error of the YAML library.
func located(err error) (position, string) {
	var at yaml.Error
	if errors.As(err, &at) {
		return tokenPosition(at.GetToken()), at.GetMessage()
	}
	return position{}, err.Error()
}

func tokenPosition(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// withinLanguage reports deep nesting, and YAML features that the language does not
// have. It runs before any recursive code reads the file. Anchors and aliases can
// expand a small file into a huge one; tags and directives have no meaning here.
func withinLanguage(j *journal, tokens token.Tokens, d dialect) bool {
	flow, dashes, line, count := 0, 0, 0, 0
	for _, t := range tokens {
		p := tokenPosition(t)
		if t.Type == token.CommentType {
			continue
		}
		if count++; count > d.tokens {
			j.fail(p, fmt.Sprintf("more than %d YAML tokens before this position", d.tokens), d.split)
			return false
		}
		if p.line != line {
			line, dashes = p.line, 0
			if p.column > d.indent && flow == 0 {
				j.fail(p, fmt.Sprintf("indented by more than %d characters", d.indent), d.shape)
				return false
			}
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType:
			dashes++
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			j.fail(p, "anchors, aliases and merge keys are not part of the language", d.anchor)
			return false
		case token.TagType:
			j.fail(p, "tags are not part of the language", "remove the tag; a value that starts with ! needs quotes")
			return false
		case token.DirectiveType:
			j.fail(p, "directives are not part of the language", "remove the line; a value that starts with % needs quotes")
			return false
		case token.MappingKeyType:
			j.fail(p, `keys in the form "? key" are not part of the language`, `write "key: value"`)
			return false
		}
		if flow > d.nesting || dashes > d.nesting {
			j.fail(p, fmt.Sprintf("nested more than %d deep", d.nesting), d.shape)
			return false
		}
	}
	return true
}

// onlyMapping returns the mapping of the file, which must have only one document.
func onlyMapping(j *journal, file *ast.File, d dialect) *ast.MappingNode {
	var root ast.Node
	for _, part := range file.Docs {
		if part.Body == nil || part.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			j.fail(nodePosition(part.Body), "a second document in the file", "one file holds "+strings.Replace(d.what, "a ", "one ", 1)+`: remove what follows the line "---"`)
			return nil
		}
		root = part.Body
	}
	switch n := root.(type) {
	case nil:
		j.fail(position{}, "the file is empty", d.start)
	case *ast.MappingNode:
		return n
	case *ast.MappingValueNode:
		return ast.Mapping(n.GetToken(), false, n)
	default:
		j.fail(nodePosition(n), "the file is "+shape(n)+", not a mapping of keys to values", d.start)
	}
	return nil
}

// nodePosition returns the position of n for messages. For a mapping it is the first
// key; the library would return the first colon.
func nodePosition(n ast.Node) position {
	switch n := n.(type) {
	case nil:
		return position{}
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return nodePosition(n.Values[0])
		}
	case *ast.MappingValueNode:
		return tokenPosition(n.Key.GetToken())
	case *ast.LiteralNode:
		return tokenPosition(n.Start)
	}
	return tokenPosition(n.GetToken())
}

// shape returns the kind of n for messages: "a mapping".
func shape(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode, nil:
		return "nothing"
	}
	return "a single value"
}
