package suite

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"windtunnel/internal/plainyaml"
)

// MaxFileBytes is the maximum size of a suite file. The lab's suites are far smaller.
const MaxFileBytes = 1 << 20

// dialect describes a language of this package: suites, or gate files. Its limits are
// checked before the keys are read. So a hostile file costs little time and memory.
type dialect struct {
	plainyaml.Limits
	start string // remedy for an empty file
}

var suiteLanguage = dialect{
	Limits: plainyaml.Limits{
		Bytes: MaxFileBytes, Nesting: 32, Indent: 200, Tokens: 50_000,
		Shape:  "a suite needs a nesting of five and ten characters of indent",
		Split:  "split the file into several suites",
		Anchor: "define a name under fabrics or workloads, and use this name",
	},
	start: `start with a line such as "suite: my-suite"; workloads and scenarios are needed too`,
}

// document parses the YAML of a file, which must be one mapping. If it is not,
// the result is nil and j has the error. It accepts duplicate keys; mapping.read
// reports them later, with all other errors.
func document(j *journal, data []byte, d dialect) *ast.MappingNode {
	file, err := plainyaml.Parse(data, d.Limits, parser.AllowDuplicateMapKey())
	j.lines = strings.Split(file.Text, "\n")
	var wrong *plainyaml.Error
	if errors.As(err, &wrong) {
		j.fail(position{wrong.Line, wrong.Column}, wrong.Text, wrong.Remedy)
		return nil
	}
	switch n := file.Body.(type) {
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

func tokenPosition(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{max(t.Position.Line, 1), max(t.Position.Column, 1)}
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
