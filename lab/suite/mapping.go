package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// mapping is a YAML mapping with known keys, read into a T.
type mapping[T any] struct {
	what   string // "a scenario", for messages
	doc    string
	alone  bool                // the mapping is not part of the suite language
	places func(*T) *positions // where T keeps the positions of its keys; nil if it needs none
	oneOf  []string            // exactly one of these keys is mandatory; nil if there is no such rule
	fields []field[T]
}

// field is one key of a mapping. One line of Go defines the name of the key, its
// meaning, its form, and the variable for its value. The parser, the schema and the
// reference use this line.
type field[T any] struct {
	key      string
	alias    string // another name of the same key
	doc      string
	required bool
	kinds    []Kind // kinds of workload that have the key; nil means all
	preset   any    // the default; nil if there is none
	init     func(*T)
	read     func(*journal, ast.Node, position, *T) bool
	schema   func() object
}

// positions has the positions of the keys that the file sets.
type positions map[string]position

func (p positions) has(key string) bool { return p[key].line > 0 }

// set makes a field. f reads its value into the variable that ref returns.
func set[T, V any](key string, f form[V], ref func(*T) *V, doc string) field[T] {
	return field[T]{
		key: key, doc: doc, schema: f.schema,
		init: func(*T) {},
		read: func(j *journal, n ast.Node, _ position, t *T) (ok bool) {
			*ref(t), ok = f.read(j, n)
			return ok
		},
	}
}

// setOr is like set, with a default value.
func setOr[T, V any](key string, f form[V], ref func(*T) *V, value V, doc string) field[T] {
	s := set(key, f, ref, doc)
	s.preset = schemaDefault(value)
	s.init = func(t *T) { *ref(t) = value }
	return s
}

// bind is like set, for a value that records its own position in the file.
func bind[T, V any](key string, f form[V], ref func(*T) *at[V], doc string) field[T] {
	return field[T]{
		key: key, doc: doc, schema: f.schema,
		init: func(*T) {},
		read: func(j *journal, n ast.Node, key position, t *T) bool {
			// Store an unreadable value as set. Otherwise a second message would say
			// that the key is missing.
			v, ok := f.read(j, n)
			*ref(t) = at[V]{V: v, Pos: or(nodePosition(n), key), Set: true}
			return ok
		},
	}
}

// preset is bind with a default.
func preset[T, V any](key string, f form[V], ref func(*T) *at[V], value V, doc string) field[T] {
	b := bind(key, f, ref, doc)
	b.preset = schemaDefault(value)
	b.init = func(t *T) { ref(t).V = value }
	return b
}

func or(p, otherwise position) position {
	if p.line == 0 {
		return otherwise
	}
	return p
}

// must makes a key mandatory.
func (f field[T]) must() field[T] { f.required = true; return f }

// also gives the key a second name.
func (f field[T]) also(alias string) field[T] { f.alias = alias; return f }

// shows names a default that bind cannot apply because it is not a plain value.
func (f field[T]) shows(preset any) field[T] { f.preset = schemaDefault(preset); return f }

// only limits the key to kinds of workload.
func (f field[T]) only(kinds ...Kind) field[T] { f.kinds = kinds; return f }

// read reads the mapping at n. If there are errors, it returns false and the values
// that could be read.
func (t mapping[T]) read(j *journal, n ast.Node) (T, bool) {
	var out T
	for _, f := range t.fields {
		f.init(&out)
	}
	entries, ok := entriesOf(j, n, t.what)
	if !ok {
		return out, false
	}
	seen := map[string]position{}
	good := true
	var misspelt []*ast.MappingValueNode
	for _, e := range entries {
		if j.full() {
			return out, false
		}
		key, ok := keyOf(j, e)
		if !ok {
			good = false
			continue
		}
		f, known := t.field(key.text)
		if !known {
			j.fail(key.pos, fmt.Sprintf("unknown key %q in %s", clip(key.text), t.what), t.remedy(key.text))
			misspelt = append(misspelt, e)
			continue
		}
		if first, twice := seen[f.key]; twice {
			j.fail(key.pos, fmt.Sprintf("%q is set twice, first in line %d", f.key, first.line), "remove one of the two")
			good = false
			continue
		}
		seen[f.key] = key.pos
		good = t.readField(j, f, e.Value, key.pos, &out) && good
	}
	t.readMisspelt(j, misspelt, seen, &out)
	return out, t.complete(j, n, seen) && good && misspelt == nil
}

// readMisspelt reads the values of unknown keys as those of the most similar keys that the
// mapping lacks. So an unknown key does not cause errors about what is missing, and mistakes
// in its value are reported too.
func (t mapping[T]) readMisspelt(j *journal, entries []*ast.MappingValueNode, seen map[string]position, out *T) {
	for _, e := range entries {
		key, _ := keyOf(j, e)
		f, near := t.field(Nearest(key.text, t.keys()))
		if _, taken := seen[f.key]; !near || taken || j.full() {
			continue
		}
		seen[f.key] = key.pos
		t.readField(j, f, e.Value, key.pos, out)
	}
}

// readField reads the value of a field, and keeps its position.
func (t mapping[T]) readField(j *journal, f field[T], n ast.Node, key position, out *T) bool {
	ok := f.read(j, n, key, out)
	if t.places != nil {
		p := t.places(out)
		if *p == nil {
			*p = positions{}
		}
		(*p)[f.key] = or(nodePosition(n), key)
	}
	return ok
}

// complete reports the missing mandatory keys.
func (t mapping[T]) complete(j *journal, n ast.Node, seen map[string]position) bool {
	var missing []string
	for _, f := range t.fields {
		if _, ok := seen[f.key]; f.required && !ok {
			missing = append(missing, f.key)
		}
	}
	given := slices.DeleteFunc(slices.Clone(t.oneOf), func(key string) bool { _, ok := seen[key]; return !ok })
	if t.oneOf != nil && len(given) == 0 {
		missing = append(missing, t.oneOf[0]+" or "+strings.Join(t.oneOf[1:], " or "))
	}
	switch {
	case len(given) > 1:
		j.fail(nodePosition(n), fmt.Sprintf("%s has %s, and may have only one of them", t.what, strings.Join(given, " and ")), "remove the others")
		return false
	case len(missing) == 0:
		return true
	}
	first, _, _ := strings.Cut(missing[0], " or ")
	j.fail(nodePosition(n), fmt.Sprintf("%s lacks %s", t.what, strings.Join(missing, ", ")), fmt.Sprintf("add a line %q", first+": …"))
	return false
}

func (t mapping[T]) field(key string) (field[T], bool) {
	i := slices.IndexFunc(t.fields, func(f field[T]) bool { return f.key == key || f.alias == key && key != "" })
	if i < 0 {
		return field[T]{}, false
	}
	return t.fields[i], true
}

// keys lists the names of the keys, with their aliases.
func (t mapping[T]) keys() (known []string) {
	for _, f := range t.fields {
		known = append(known, f.key)
		if f.alias != "" {
			known = append(known, f.alias)
		}
	}
	return known
}

// remedy returns the remedy for an unknown key: a similar key, or the mapping that has
// the key.
func (t mapping[T]) remedy(key string) string {
	known := t.keys()
	if !t.alone && Nearest(key, known) == "" {
		if home := homes[key]; home != "" && home != t.what {
			return fmt.Sprintf("%q belongs in %s; known here: %s", key, home, enumerate(known))
		}
	}
	return Suggest(key, "known here", known)
}

func (t mapping[T]) schema() object {
	properties := object{}
	var required []string
	var rules []object
	for _, f := range t.fields {
		s := f.schema()
		s["description"] = f.doc
		if f.preset != nil {
			s["default"] = f.preset
		}
		properties[f.key] = s
		if f.alias != "" {
			other := f.schema()
			other["description"] = "Another name of " + f.key + "."
			properties[f.alias] = other
		}
		switch {
		case f.required && f.alias != "":
			rules = append(rules, object{"anyOf": []object{{"required": []string{f.key}}, {"required": []string{f.alias}}}})
		case f.required:
			required = append(required, f.key)
		}
	}
	if t.oneOf != nil {
		var choices []object
		for _, key := range t.oneOf {
			choices = append(choices, object{"required": []string{key}})
		}
		rules = append(rules, object{"oneOf": choices})
	}
	s := object{"type": "object", "description": t.doc, "properties": properties, "additionalProperties": false}
	if required != nil {
		s["required"] = required
	}
	if rules = append(rules, t.kindRules()...); rules != nil {
		s["allOf"] = rules
	}
	return s
}

// kindRules returns schema rules. For each kind of workload they forbid the keys that
// the kind does not support.
func (t mapping[T]) kindRules() []object {
	var rules []object
	for _, k := range kinds {
		forbidden := object{}
		for _, f := range t.fields {
			if f.kinds != nil && !slices.Contains(f.kinds, k) {
				forbidden[f.key] = false
				if f.alias != "" {
					forbidden[f.alias] = false
				}
			}
		}
		if len(forbidden) > 0 {
			rules = append(rules, object{
				"if":   object{"properties": object{"kind": object{"const": k}}, "required": []string{"kind"}},
				"then": object{"properties": forbidden},
			})
		}
	}
	return rules
}

// entriesOf returns the keys and values of the mapping at n.
func entriesOf(j *journal, n ast.Node, what string) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	j.fail(nodePosition(n), fmt.Sprintf("%s instead of %s", shape(n), what), `write it as lines of "key: value", indented`)
	return nil, false
}

func keyOf(j *journal, e *ast.MappingValueNode) (scalar, bool) {
	if n, ok := e.Key.(ast.ScalarNode); ok {
		return scalarOf(j, n, "a key", "")
	}
	j.fail(nodePosition(e), "a key must be a single word", "")
	return scalar{}, false
}

// named is an entry of a mapping whose keys are names that the user chooses.
type named[T any] struct {
	name  string
	pos   position
	value T
}

// index is a mapping from names to mappings with known keys.
type index[T any] struct {
	name single[string]
	of   mapping[T]
	most int
}

func (f index[T]) read(j *journal, n ast.Node) ([]named[T], bool) {
	entries, good := entriesOf(j, n, "names with "+f.of.what+" each")
	if !good {
		return nil, false
	}
	if len(entries) == 0 || len(entries) > f.most {
		j.fail(nodePosition(n), fmt.Sprintf("there are %d entries", len(entries)), fmt.Sprintf("write 1 to %d", f.most))
		return nil, false
	}
	var out []named[T]
	seen := map[string]position{}
	for _, e := range entries {
		if j.full() {
			return out, false
		}
		key, ok := keyOf(j, e)
		if !ok {
			good = false
			continue
		}
		if _, problem, remedy := f.name.parse(key.text); problem != "" {
			j.fail(key.pos, problem, remedy)
			good = false
		}
		if first, twice := seen[key.text]; twice {
			j.fail(key.pos, fmt.Sprintf("%q is defined twice, first in line %d", clip(key.text), first.line), "rename or remove one of the two")
			good = false
			continue
		}
		seen[key.text] = key.pos
		v, ok := f.of.read(j, e.Value)
		good = good && ok
		out = append(out, named[T]{name: key.text, pos: key.pos, value: v})
	}
	return out, good
}

func (f index[T]) schema() object {
	return object{
		"type": "object", "minProperties": 1, "maxProperties": f.most,
		"propertyNames":        object{"pattern": f.name.language["pattern"]},
		"additionalProperties": f.of.schema(),
	}
}
