package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
)

// stateYAML formats a state as YAML. It omits empty fields, since a state treats zero as absent,
// and writes lists of scalars on one line. A state that is too large for YAML becomes JSON, which
// is also YAML. The encoder of goccy/go-yaml cannot omit empty fields: it would also omit each
// netip.Prefix, which has no exported fields. It also writes texts without quotes that YAML reads
// as something else: ".inf", and "a,b" in lists on one line.
func stateYAML(s model.State) ([]byte, error) {
	var b bytes.Buffer
	writeFields(&b, "", reflect.ValueOf(s))
	switch {
	case b.Len() == 0:
		return []byte("{}\n"), nil
	case model.FitsYAML(b.Bytes()):
		return b.Bytes(), nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the state as JSON: %w", err)
	}
	return append(text, '\n'), nil
}

// writeFields writes the fields of an object that are not empty.
func writeFields(b *bytes.Buffer, indent string, object reflect.Value) {
	for field, v := range object.Fields() {
		name := indent + field.Tag.Get("yaml") + ":"
		switch {
		case v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0:
		case isObject(v.Type()):
			var below bytes.Buffer
			if writeFields(&below, indent+"  ", v); below.Len() > 0 {
				fmt.Fprintf(b, "%s\n%s", name, below.Bytes())
			}
		case v.Kind() != reflect.Slice:
			fmt.Fprintf(b, "%s %s\n", name, scalar(v))
		case isObject(v.Type().Elem()):
			fmt.Fprintf(b, "%s\n", name)
			writeItems(b, indent+"  ", v)
		default:
			var words []string
			for _, item := range v.Seq2() {
				words = append(words, scalar(item))
			}
			fmt.Fprintf(b, "%s [%s]\n", name, strings.Join(words, ", "))
		}
	}
}

// writeItems writes each object of a list after a dash.
func writeItems(b *bytes.Buffer, indent string, list reflect.Value) {
	for _, v := range list.Seq2() {
		var item bytes.Buffer
		writeFields(&item, indent+"  ", v)
		text := bytes.TrimLeft(item.Bytes(), " ")
		if len(text) == 0 {
			text = []byte("{}\n")
		}
		fmt.Fprintf(b, "%s- %s", indent, text)
	}
}

// isObject reports whether values of a type have fields: a struct that is not written as text.
func isObject(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// unquoted matches words, and IPv4 addresses and prefixes.
var unquoted = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_./-]*|\d+\.\d+\.\d+\.\d+(/\d+)?)$`)

// scalar formats a value, quoted where YAML would read another type. A quoted JSON string is valid
// YAML (YAML 1.2, section 1.3).
func scalar(v reflect.Value) string {
	text, _ := json.Marshal(v.Interface()) // numbers, booleans and text always marshal
	var word string
	if json.Unmarshal(text, &word) != nil {
		return string(text)
	}
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if unquoted.MatchString(word) && !slices.Contains(words, strings.ToLower(word)) {
		return word
	}
	return string(text)
}
