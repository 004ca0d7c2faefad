package ssh

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"windtunnel/internal/plainyaml"
)

// ReadHosts reads a hosts file. Paths in the file are relative to its directory.
func ReadHosts(path string) (*Hosts, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the hosts of the testbed: %w; name a hosts file (docs/hosts.md), or k8s", err)
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

var limits = plainyaml.Limits{
	Bytes: 1 << 20, Tokens: 50_000, Indent: 100, Nesting: 8,
	Split: "measure between fewer hosts", Shape: "a hosts file needs three levels", Anchor: "write the value out, or in quotes",
}

// parseHosts reads the text of a hosts file. An unknown key is an error.
func parseHosts(text []byte) (*Hosts, error) {
	h := &Hosts{}
	file, err := plainyaml.Parse(text, limits)
	if err == nil && file.Body != nil {
		err = yaml.NodeToValue(file.Body, h, yaml.Strict())
	}
	if err != nil {
		return nil, errors.New(strings.TrimSpace(yaml.FormatError(inWords(err), false, true)))
	}
	return h, h.check()
}

// inWords replaces errors that name Go types by errors that say what to write in the hosts file.
func inWords(err error) error {
	var plain *plainyaml.Error
	var kind *yaml.TypeError
	var node *yaml.UnexpectedNodeTypeError
	var large *yaml.OverflowError
	switch {
	case errors.As(err, &plain) && plain.Token != nil:
		return wrong(plain.Token, "%s; %s", plain.Text, plain.Remedy)
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
