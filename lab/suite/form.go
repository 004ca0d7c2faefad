package suite

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"windtunnel/lab/phrase"
)

// form is how a value is written: it reads one and describes it as JSON
// Schema, so that the parser and the schema cannot differ.
type form[V any] interface {
	// read returns the value at n; false after noting an error in j.
	read(j *journal, n ast.Node) (V, bool)
	schema() object
}

// object is a JSON object of the schema.
type object = map[string]any

// at is a value and where it stands in the file. Set is false for a default.
type at[V any] struct {
	V   V
	Pos position
	Set bool
}

// scalar is the text of a single value as written.
type scalar struct {
	text   string
	pos    position // of the text's first character
	quoted bool
}

// scalarOf returns the single value at n; false after noting an error.
func scalarOf(j *journal, n ast.Node, wants, remedy string) (scalar, bool) {
	s := scalar{pos: nodePosition(n)}
	switch n := n.(type) {
	case *ast.LiteralNode:
		s.text, s.quoted = n.Value.Value, true
		return s, true
	case *ast.StringNode:
		s.text = n.Value
	case *ast.NullNode, nil:
		j.fail(s.pos, "there is no value; "+wants+" belongs here", remedy)
		return s, false
	case ast.ScalarNode:
		s.text = n.GetToken().Value
	default:
		j.fail(s.pos, shape(n)+" stands where "+wants+" belongs", remedy)
		return s, false
	}
	if t := n.GetToken().Type; t == token.DoubleQuoteType || t == token.SingleQuoteType {
		s.quoted = true
		s.pos.column++
	}
	return s, true
}

// sentence is text for people.
type sentence struct{ most int }

func (f sentence) read(j *journal, n ast.Node) (string, bool) {
	s, ok := scalarOf(j, n, "text", "")
	if !ok {
		return "", false
	}
	text := strings.TrimSpace(s.text)
	if text == "" {
		j.fail(s.pos, "the text is empty", "write some, or leave the key out")
		return "", false
	}
	if c := len([]rune(text)); c > f.most {
		j.fail(s.pos, fmt.Sprintf("the text has %d characters, %d are allowed", c, f.most), "shorten it")
		return "", false
	}
	return text, true
}

func (f sentence) schema() object {
	return object{"type": anyScalar, "minLength": 1, "maxLength": f.most}
}

// word is a name: it becomes part of ids, file names and command lines.
type word struct {
	what    string
	pattern *regexp.Regexp
	remedy  string
}

func (f word) read(j *journal, n ast.Node) (string, bool) {
	s, ok := scalarOf(j, n, f.what, f.remedy)
	if !ok {
		return "", false
	}
	if !f.pattern.MatchString(s.text) {
		j.fail(s.pos, fmt.Sprintf("%q cannot be %s", clip(s.text), f.what), f.remedy)
		return "", false
	}
	return s.text, true
}

func (f word) schema() object {
	return object{"type": anyScalar, "pattern": f.pattern.String()}
}

// anyScalar is the schema of text: what YAML takes for a number or a truth
// value is text where the language wants text.
var anyScalar = []string{"string", "number", "boolean"}

// choice is one of a few words.
type choice[V ~string] struct{ allowed []V }

func (f choice[V]) read(j *journal, n ast.Node) (V, bool) {
	words := make([]string, len(f.allowed))
	for i, v := range f.allowed {
		words[i] = string(v)
	}
	wants := "one of " + strings.Join(words, ", ")
	s, ok := scalarOf(j, n, wants, "")
	if !ok {
		return "", false
	}
	if !slices.Contains(f.allowed, V(s.text)) {
		j.fail(s.pos, fmt.Sprintf("%q is not known here", clip(s.text)), Suggest(s.text, "allowed", words))
		return "", false
	}
	return V(s.text), true
}

func (f choice[V]) schema() object { return object{"enum": f.allowed} }

// number is a whole number within bounds.
type number struct{ least, most int }

func (f number) read(j *journal, n ast.Node) (int, bool) {
	wants := fmt.Sprintf("a whole number from %d to %d", f.least, f.most)
	s, ok := scalarOf(j, n, wants, "")
	if !ok {
		return 0, false
	}
	v, err := strconv.Atoi(s.text)
	if err != nil || v < f.least || v > f.most {
		j.fail(s.pos, fmt.Sprintf("%q is not %s", clip(s.text), wants), "write a number without unit within these bounds")
		return 0, false
	}
	return v, true
}

func (f number) schema() object {
	return object{"type": "integer", "minimum": f.least, "maximum": f.most}
}

// amount is a number without unit, from 0 to most.
type amount struct{ most float64 }

func (f amount) read(j *journal, n ast.Node) (float64, bool) {
	wants := fmt.Sprintf("a number from 0 to %g", f.most)
	s, ok := scalarOf(j, n, wants, "")
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(s.text, 64)
	if err != nil || !(v >= 0 && v <= f.most) {
		j.fail(s.pos, fmt.Sprintf("%q is not %s", clip(s.text), wants), "write a number without unit within these bounds, such as 0.02")
		return 0, false
	}
	return v, true
}

func (f amount) schema() object {
	return object{"type": "number", "minimum": 0, "maximum": f.most}
}

// oneOf is a number of which only a few values make sense.
type oneOf struct{ allowed []int }

func (f oneOf) read(j *journal, n ast.Node) (int, bool) {
	words := make([]string, len(f.allowed))
	for i, v := range f.allowed {
		words[i] = strconv.Itoa(v)
	}
	s, ok := scalarOf(j, n, "one of "+strings.Join(words, ", "), "")
	if !ok {
		return 0, false
	}
	i := slices.Index(words, s.text)
	if i < 0 {
		j.fail(s.pos, fmt.Sprintf("%q is not known here", clip(s.text)), "allowed: "+strings.Join(words, ", "))
		return 0, false
	}
	return f.allowed[i], true
}

func (f oneOf) schema() object { return object{"enum": f.allowed} }

// flag is true or false.
type flag struct{}

func (flag) read(j *journal, n ast.Node) (bool, bool) {
	s, ok := scalarOf(j, n, "true or false", "")
	if !ok {
		return false, false
	}
	if s.text != "true" && s.text != "false" {
		j.fail(s.pos, fmt.Sprintf("%q is neither true nor false", clip(s.text)), "write true or false")
		return false, false
	}
	return s.text == "true", true
}

func (flag) schema() object { return object{"type": "boolean"} }

// list is a sequence of values; where single is true, one value may stand
// without the brackets.
type list[V any] struct {
	of     form[V]
	single bool
	most   int
}

func (f list[V]) read(j *journal, n ast.Node) ([]at[V], bool) {
	seq, isList := n.(*ast.SequenceNode)
	if !isList {
		if !f.single {
			j.fail(nodePosition(n), shape(n)+" stands where a list belongs", `start each entry with "- "`)
			return nil, false
		}
		v, ok := f.of.read(j, n)
		return []at[V]{{V: v, Pos: nodePosition(n), Set: true}}, ok
	}
	if len(seq.Values) == 0 || len(seq.Values) > f.most {
		j.fail(nodePosition(n), fmt.Sprintf("the list has %d entries", len(seq.Values)), fmt.Sprintf("it may have 1 to %d", f.most))
		return nil, false
	}
	var out []at[V]
	good := true
	for _, entry := range seq.Values {
		if j.full() {
			return out, false
		}
		v, ok := f.of.read(j, entry)
		good = good && ok
		out = append(out, at[V]{V: v, Pos: nodePosition(entry), Set: true})
	}
	return out, good
}

func (f list[V]) schema() object {
	many := object{"type": "array", "items": f.of.schema(), "minItems": 1, "maxItems": f.most}
	if !f.single {
		return many
	}
	return object{"anyOf": []object{f.of.schema(), many}}
}

// several is a list with a least length.
type several[V any] struct {
	list[V]
	least int
}

func (f several[V]) read(j *journal, n ast.Node) ([]at[V], bool) {
	out, ok := f.list.read(j, n)
	if ok && len(out) < f.least {
		j.fail(nodePosition(n), "the list has 1 entry", fmt.Sprintf("it may have %d to %d", f.least, f.most))
		return out, false
	}
	return out, ok
}

func (f several[V]) schema() object {
	s := f.list.schema()
	s["minItems"] = f.least
	return s
}

// clip keeps a message readable when a value is huge.
var clip = phrase.Clip

// printed is a default as the schema shows it.
func printed(v any) any {
	if d, ok := v.(time.Duration); ok {
		return d.String()
	}
	if b, err := json.Marshal(v); err == nil {
		return json.RawMessage(b)
	}
	return fmt.Sprint(v)
}
