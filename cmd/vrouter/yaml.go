package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
)

// stateYAML formats a state as YAML. It omits empty fields and writes lists of
// scalars on one line. It converts the state's JSON, which has the same names. A state that is
// too large for YAML stays JSON, which is also YAML.
func stateYAML(s model.State) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the state as YAML: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := readNode(d)
	if err != nil {
		return nil, fmt.Errorf("write the state as YAML: %w", err)
	}
	var b bytes.Buffer
	if root.empty() {
		return []byte("{}\n"), nil
	}
	root.write(&b, "")
	if !model.FitsYAML(b.Bytes()) {
		return append(text, '\n'), nil
	}
	return b.Bytes(), nil
}

// node is one value of a JSON document; fields keep their order.
type node struct {
	scalar string // a YAML scalar; "" for a list or an object
	names  []string
	values []node // values of the names of an object, or items of a list without names
}

func readNode(d *json.Decoder) (node, error) {
	token, err := d.Token()
	if err != nil {
		return node{}, err
	}
	switch v := token.(type) {
	case json.Delim:
		return readMany(d, v == '{')
	case string:
		return node{scalar: scalar(v)}, nil
	case nil:
		return node{}, nil
	}
	return node{scalar: fmt.Sprint(token)}, nil
}

func readMany(d *json.Decoder, object bool) (node, error) {
	var n node
	for d.More() {
		if object {
			name, err := d.Token()
			if err != nil {
				return node{}, err
			}
			n.names = append(n.names, name.(string))
		}
		value, err := readNode(d)
		if err != nil {
			return node{}, err
		}
		n.values = append(n.values, value)
	}
	_, err := d.Token()
	return n, err
}

// unquoted matches strings that need no quotes, except booleans and null.
var unquoted = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// scalar formats a string, quoted where YAML would read another type. A quoted
// JSON string is valid YAML (YAML 1.2, section 1.3).
func scalar(s string) string {
	if s == "" {
		return ""
	}
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if unquoted.MatchString(s) && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Is4() {
		return s
	}
	if p, err := netip.ParsePrefix(s); err == nil && p.Addr().Is4() {
		return s
	}
	quoted, _ := json.Marshal(s) // a string always marshals
	return string(quoted)
}

// empty reports whether a value is empty. Every field of a state treats zero as
// absent, so 0 and false are empty.
func (n node) empty() bool {
	if n.scalar != "" {
		return n.scalar == "0" || n.scalar == "false"
	}
	return !slices.ContainsFunc(n.values, func(v node) bool { return !v.empty() })
}

// write prints each field of an object, or each item of a list.
func (n node) write(b *bytes.Buffer, indent string) {
	for i, v := range n.values {
		switch {
		case n.names == nil:
			n.writeItem(b, v, indent)
		case v.empty():
		case v.scalar != "":
			fmt.Fprintf(b, "%s%s: %s\n", indent, n.names[i], v.scalar)
		case v.flat():
			fmt.Fprintf(b, "%s%s: [%s]\n", indent, n.names[i], v.joined())
		default:
			fmt.Fprintf(b, "%s%s:\n", indent, n.names[i])
			v.write(b, indent+"  ")
		}
	}
}

// writeItem prints an object of a list after a dash.
func (n node) writeItem(b *bytes.Buffer, v node, indent string) {
	var item bytes.Buffer
	v.write(&item, indent+"  ")
	if item.Len() == 0 {
		fmt.Fprintf(b, "%s- {}\n", indent)
		return
	}
	b.WriteString(indent + "- ")
	b.Write(item.Bytes()[len(indent)+2:])
}

// flat reports whether it is a list of scalars.
func (n node) flat() bool {
	return n.names == nil && !slices.ContainsFunc(n.values, func(v node) bool { return v.scalar == "" })
}

func (n node) joined() string {
	words := make([]string, len(n.values))
	for i, v := range n.values {
		words[i] = v.scalar
	}
	return strings.Join(words, ", ")
}
