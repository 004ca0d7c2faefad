package suite

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"windtunnel/internal/phrase"
)

// form is the notation of a value. It reads a value, and describes it as JSON Schema,
// so that parser and schema agree.
type form[V any] interface {
	// read returns the value at n. If the value is wrong, read adds an error to j and
	// returns false.
	read(j *journal, n ast.Node) (V, bool)
	schema() object
}

// object is a JSON object of the schema.
type object = map[string]any

// at is a value and its position in the file. Set is false for a default.
type at[V any] struct {
	V   V
	Pos position
	Set bool
}

// scalar is the text of a single value as written.
type scalar struct {
	text string
	pos  position // position of the first character of text
}

// scalarOf returns the single value at n. If n is another kind of node, it adds an
// error to j and returns false.
func scalarOf(j *journal, n ast.Node, wants, remedy string) (scalar, bool) {
	s := scalar{pos: nodePosition(n)}
	switch n := n.(type) {
	case *ast.LiteralNode:
		s.text = n.Value.Value
		return s, true
	case *ast.StringNode:
		s.text = n.Value
	case *ast.NullNode, nil:
		j.fail(s.pos, "the value is missing; expected "+wants, remedy)
		return s, false
	case ast.ScalarNode:
		s.text = n.GetToken().Value
	default:
		j.fail(s.pos, shape(n)+" instead of "+wants, remedy)
		return s, false
	}
	if t := n.GetToken().Type; t == token.DoubleQuoteType || t == token.SingleQuoteType {
		s.pos.column++
	}
	return s, true
}

// single reads one value, such as a name or a number.
type single[V any] struct {
	wants, remedy string // for the error if the node is not a single value
	// parse returns the value. For an invalid text it returns the problem and the
	// remedy.
	parse    func(text string) (v V, problem, remedy string)
	language object // JSON schema
}

func (f single[V]) read(j *journal, n ast.Node) (v V, ok bool) {
	s, ok := scalarOf(j, n, f.wants, f.remedy)
	if !ok {
		return v, false
	}
	v, problem, remedy := f.parse(s.text)
	if problem != "" {
		j.fail(s.pos, problem, remedy)
		return *new(V), false
	}
	return v, true
}

func (f single[V]) schema() object { return maps.Clone(f.language) }

// sentence is a text for readers, of at most this many characters.
func sentence(most int) single[string] {
	parse := func(text string) (string, string, string) {
		text = strings.TrimSpace(text)
		if text == "" {
			return "", "the text is empty", "write a text, or leave the key out"
		}
		if c := len([]rune(text)); c > most {
			return "", fmt.Sprintf("the text has %d characters, %d are allowed", c, most), "shorten it"
		}
		return text, "", ""
	}
	return single[string]{"text", "", parse, object{"type": anyScalar, "minLength": 1, "maxLength": most}}
}

// word is a text that matches the pattern. Ids, file names and command lines contain
// such texts.
func word(what, pattern, remedy string) single[string] {
	valid := regexp.MustCompile(pattern)
	parse := func(text string) (string, string, string) {
		if !valid.MatchString(text) {
			return "", fmt.Sprintf("%q cannot be %s", clip(text), what), remedy
		}
		return text, "", ""
	}
	return single[string]{what, remedy, parse, object{"type": anyScalar, "pattern": pattern}}
}

// anyScalar has the schema types of a text. YAML reads a text such as 5 or true as a
// number or a boolean.
var anyScalar = []string{"string", "number", "boolean"}

// choice is one of the allowed words.
func choice[V ~string](allowed ...V) single[V] {
	words := make([]string, len(allowed))
	for i, v := range allowed {
		words[i] = string(v)
	}
	parse := func(text string) (V, string, string) {
		if !slices.Contains(words, text) {
			return "", fmt.Sprintf("%q is not known here", clip(text)), Suggest(text, "allowed", words)
		}
		return V(text), "", ""
	}
	return single[V]{"one of " + strings.Join(words, ", "), "", parse, object{"enum": allowed}}
}

// choiceOr is like choice, and uses a word for the zero value.
func choiceOr[V ~string](zero string, others ...V) single[V] {
	words := []string{zero}
	for _, o := range others {
		words = append(words, string(o))
	}
	f := choice(words...)
	return single[V]{f.wants, f.remedy, func(text string) (V, string, string) {
		word, problem, remedy := f.parse(text)
		return V(strings.TrimPrefix(word, zero)), problem, remedy
	}, f.language}
}

// number is a whole number within bounds.
func number(least, most int) single[int] {
	wants := fmt.Sprintf("a whole number from %d to %d", least, most)
	parse := func(text string) (int, string, string) {
		v, err := strconv.Atoi(text)
		if err != nil || v < least || v > most {
			return 0, fmt.Sprintf("%q is not %s", clip(text), wants), "write a number without unit within these bounds"
		}
		return v, "", ""
	}
	return single[int]{wants, "", parse, object{"type": "integer", "minimum": least, "maximum": most}}
}

// amount is a number without unit, from 0 to most.
func amount(most float64) single[float64] {
	wants := fmt.Sprintf("a number from 0 to %g", most)
	parse := func(text string) (float64, string, string) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= most) {
			return 0, fmt.Sprintf("%q is not %s", clip(text), wants), "write a number without unit within these bounds, such as 0.02"
		}
		return v, "", ""
	}
	return single[float64]{wants, "", parse, object{"type": "number", "minimum": 0, "maximum": most}}
}

// oneOf is one of the allowed numbers.
func oneOf(allowed ...int) single[int] {
	words := strings.ReplaceAll(strings.Trim(fmt.Sprint(allowed), "[]"), " ", ", ")
	parse := func(text string) (int, string, string) {
		i := slices.IndexFunc(allowed, func(v int) bool { return strconv.Itoa(v) == text })
		if i < 0 {
			return 0, fmt.Sprintf("%q is not known here", clip(text)), "allowed: " + words
		}
		return allowed[i], "", ""
	}
	return single[int]{"one of " + words, "", parse, object{"enum": allowed}}
}

// flag is true or false.
var flag = single[bool]{"true or false", "", func(text string) (bool, string, string) {
	if text != "true" && text != "false" {
		return false, fmt.Sprintf("%q is neither true nor false", clip(text)), "write true or false"
	}
	return text == "true", "", ""
}, object{"type": "boolean"}}

// unless is like flag, and inverts the value.
var unless = single[bool]{flag.wants, flag.remedy, func(text string) (bool, string, string) {
	on, problem, remedy := flag.parse(text)
	return !on, problem, remedy
}, flag.language}

// list is a sequence of values.
type list[V any] struct {
	of          form[V]
	least, most int
	bare        bool // a list of one value may omit the brackets
}

// oneOrMore is a list. With one value it may omit the brackets.
func oneOrMore[V any](of form[V]) list[V] { return list[V]{of, 1, mostNames, true} }

func (f list[V]) read(j *journal, n ast.Node) ([]at[V], bool) {
	seq, isList := n.(*ast.SequenceNode)
	if !isList {
		if !f.bare {
			j.fail(nodePosition(n), shape(n)+" instead of a list", `start each entry with "- "`)
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
	if good && len(out) < f.least {
		j.fail(nodePosition(n), "the list has 1 entry", fmt.Sprintf("it may have %d to %d", f.least, f.most))
		good = false
	}
	return out, good
}

func (f list[V]) schema() object {
	many := object{"type": "array", "items": f.of.schema(), "minItems": f.least, "maxItems": f.most}
	if !f.bare {
		return many
	}
	return object{"anyOf": []object{f.of.schema(), many}}
}

// clip shortens a huge value, so that a message stays readable.
var clip = phrase.Clip

// schemaDefault returns a default in the form that the schema shows.
func schemaDefault(v any) any {
	if d, ok := v.(time.Duration); ok {
		return d.String()
	}
	if b, err := json.Marshal(v); err == nil {
		return json.RawMessage(b)
	}
	return fmt.Sprint(v)
}
