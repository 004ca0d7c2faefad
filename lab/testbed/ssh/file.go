package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// ReadHosts reads a hosts file. Paths in the file are relative to its directory.
func ReadHosts(path string) (*Hosts, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the hosts of the testbed: %w", err)
	}
	h, err := parseHosts(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range h.Hosts {
		host := &h.Hosts[i]
		host.Key, host.knownHosts = below(filepath.Dir(path), host.Key), below(filepath.Dir(path), host.knownHosts)
	}
	return h, nil
}

// below returns a path of a hosts file in the given directory. Absolute paths, paths that begin
// with "~/" and "" stay.
func below(dir, path string) string {
	if path == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "~/") {
		return path
	}
	return filepath.Join(dir, path)
}

// parseHosts reads the text of a hosts file. An unknown key is an error. The text may begin
// with a byte order mark, which some editors write.
func parseHosts(text []byte) (*Hosts, error) {
	h := &Hosts{}
	body, err := document(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err == nil && body != nil {
		err = yaml.NodeToValue(body, h, yaml.Strict())
	}
	if err != nil {
		return nil, errors.New(strings.TrimSpace(yaml.FormatError(inWords(err), false, true)))
	}
	return h, h.check()
}

// document returns the only YAML document of a file; nil if the file is empty.
func document(text []byte) (body ast.Node, err error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case body != nil:
			return nil, &yaml.SyntaxError{Message: "a hosts file has one YAML document; remove the lines from `---` on", Token: doc.Start}
		default:
			body = doc.Body
		}
	}
	return body, nil
}

// inWords replaces errors that name Go types by errors that say what to write in the hosts file.
func inWords(err error) error {
	var kind *yaml.TypeError
	var node *yaml.UnexpectedNodeTypeError
	var large *yaml.OverflowError
	switch {
	case errors.As(err, &node) && node.Expected == ast.SequenceType:
		if node.Actual != ast.MappingType {
			return wrong(node.Token, "write a list, such as [%s]", node.Token.Value)
		}
		return wrong(node.Token, "write a list: begin each element with `-`")
	case errors.As(err, &node):
		return wrong(node.Token, "write keys with values, such as `name: a`")
	case errors.As(err, &large):
		return wrong(large.Token, "the number %s is too large", large.SrcNum)
	case !errors.As(err, &kind):
		return err
	}
	switch kind.DstType.Kind() {
	case reflect.Int:
		return wrong(kind.Token, "write a number, not %q", kind.Token.Value)
	case reflect.Bool:
		return wrong(kind.Token, "write true or false, not %q", kind.Token.Value)
	}
	return wrong(kind.Token, "write one word, not a list or keys with values")
}

func wrong(at *token.Token, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: at}
}
