package model

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"windtunnel/internal/phrase"
)

// texts are the types that decode themselves from text, with examples.
var texts = map[reflect.Type]string{
	reflect.TypeFor[MAC]():                "02:00:00:00:00:01",
	reflect.TypeFor[netip.Addr]():         "192.0.2.1",
	reflect.TypeFor[netip.Prefix]():       "10.1.0.0/16",
	reflect.TypeFor[RouteTarget]():        "64512:1",
	reflect.TypeFor[RouteDistinguisher](): "64512:1",
}

// fieldTypes are the types of a state's fields, by object and YAML name.
var fieldTypes = typesOf(map[reflect.Type]map[string]reflect.Type{}, reflect.TypeFor[State]())

func typesOf(all map[reflect.Type]map[string]reflect.Type, t reflect.Type) map[reflect.Type]map[string]reflect.Type {
	for t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || takesText(t) || all[t] != nil {
		return all
	}
	all[t] = map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("yaml") == "-" {
			continue
		}
		all[t][f.Tag.Get("yaml")] = f.Type
		typesOf(all, f.Type)
	}
	return all
}

// fits refuses wrong values that the decoder would accept, or refuse without a
// position in the file. These are a fraction for an integer (the decoder drops
// the fraction), a list or fields for an address, and misspelt field names. The
// decoder checks the rest. fits also quotes text that looks like a number,
// since the decoder turns 007 into 7.
func fits(name string, node ast.Node, t reflect.Type) (ast.Node, error) {
	switch n := node.(type) {
	case *ast.MappingNode:
		if err := notFields(name, node, t); err != nil {
			return nil, err
		}
		for _, value := range n.Values {
			if _, err := fits(name, value, t); err != nil {
				return nil, err
			}
		}
		return node, nil
	case *ast.MappingValueNode:
		if err := notFields(name, node, t); err != nil {
			return nil, err
		}
		field, ok := fieldOf(t, n.Key)
		if !ok {
			return node, suggestField(name, n.Key, t)
		}
		value, err := fits(name, n.Value, field)
		if err == nil {
			n.Value = value
		}
		return node, err
	case *ast.SequenceNode:
		return node, listFits(name, n, t)
	}
	return scalarFits(name, node, t)
}

// suggestField suggests a field for an unknown key. Without a similar field it
// returns nil, and the decoder refuses the key.
func suggestField(name string, key ast.MapKeyNode, t reflect.Type) error {
	given, ok := key.(*ast.StringNode)
	if !ok {
		return nil
	}
	meant := phrase.Nearest(given.Value, slices.Sorted(maps.Keys(fieldTypes[t])))
	if meant == "" {
		return nil
	}
	return errorAt(name, given, "unknown field %q; did you mean %q?", phrase.Clip(given.Value), meant)
}

func notFields(name string, node ast.Node, t reflect.Type) error {
	if !takesText(t) {
		return nil
	}
	return errorAt(name, node, "one word belongs here, not fields; write one such as %q, in quotes where it has colons", texts[t])
}

func listFits(name string, n *ast.SequenceNode, t reflect.Type) error {
	switch {
	case takesText(t):
		return errorAt(name, n, "one word belongs here, not a list; write one such as %s", texts[t])
	case t.Kind() != reflect.Slice:
		return nil
	}
	for i, value := range n.Values {
		fitting, err := fits(name, value, t.Elem())
		if err != nil {
			return err
		}
		n.Values[i] = fitting
	}
	return nil
}

func scalarFits(name string, node ast.Node, t reflect.Type) (ast.Node, error) {
	switch n := node.(type) {
	case *ast.StringNode: // the decoder parses the text again as YAML and would read fd00:: as a field
		if at := n.Token; takesText(t) && at.Type == token.StringType && strings.HasSuffix(n.Value, ":") {
			return ast.String(token.DoubleQuote(n.Value, strconv.Quote(n.Value), at.Position)), nil
		}
		return node, nil
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		if t.Kind() == reflect.Uint16 || t.Kind() == reflect.Uint32 {
			return nil, errorAt(name, node, "a whole number belongs here, not %q", phrase.Clip(node.GetToken().Value))
		}
	case *ast.IntegerNode:
	default:
		return node, nil
	}
	if t.Kind() == reflect.String {
		return ast.String(node.GetToken()), nil
	}
	return node, nil
}

func errorAt(name string, node ast.Node, format string, args ...any) error {
	p := node.GetToken().Position
	return fmt.Errorf("%s:%d:%d: %s", name, p.Line, p.Column, fmt.Sprintf(format, args...))
}

func takesText(t reflect.Type) bool { return texts[t] != "" }

// fieldOf returns the type of the field with a key.
func fieldOf(t reflect.Type, key ast.MapKeyNode) (reflect.Type, bool) {
	if key.GetToken() == nil {
		return nil, false
	}
	f, ok := fieldTypes[t][key.GetToken().Value]
	return f, ok
}
