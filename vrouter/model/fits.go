package model

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

var unmarshalsText = reflect.TypeFor[encoding.TextUnmarshaler]()

// fits refuses what the decoder would take for something else, or name no place
// of: a number with a fraction where a whole one belongs (it drops the
// fraction), and a list or fields where an address belongs. Other misfits are
// left to it.
func fits(name string, node ast.Node, t reflect.Type) error {
	switch n := node.(type) {
	case *ast.MappingNode:
		if takesText(t) {
			return misfit(name, node, "an address belongs here, not fields; write such as %s", example(t))
		}
		for _, value := range n.Values {
			if field, ok := fieldOf(t, value.Key); ok {
				if err := fits(name, value.Value, field); err != nil {
					return err
				}
			}
		}
	case *ast.SequenceNode:
		if takesText(t) {
			return misfit(name, node, "one address belongs here, not a list; write such as %s", example(t))
		}
		if t.Kind() != reflect.Slice {
			return nil
		}
		for _, value := range n.Values {
			if err := fits(name, value, t.Elem()); err != nil {
				return err
			}
		}
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		if t.Kind() == reflect.Uint16 || t.Kind() == reflect.Uint32 {
			return misfit(name, node, "a whole number belongs here, not %q", clip(node.GetToken().Value))
		}
	}
	return nil
}

func misfit(name string, node ast.Node, format string, args ...any) error {
	p := node.GetToken().Position
	return fmt.Errorf("%s:%d:%d: %s", name, p.Line, p.Column, fmt.Sprintf(format, args...))
}

func takesText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshalsText) }

// example is how a value of a type is written.
func example(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[MAC]():
		return "02:00:00:00:00:01"
	case strings.HasSuffix(t.Name(), "Prefix"):
		return "10.1.0.0/16"
	}
	return "192.0.2.1"
}

// fieldOf is the type of the field that a key names.
func fieldOf(t reflect.Type, key ast.MapKeyNode) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct || key.GetToken() == nil {
		return nil, false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("yaml") == key.GetToken().Value {
			return f.Type, true
		}
	}
	return nil, false
}
