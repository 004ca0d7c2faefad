package agent

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeStrictly reads one JSON value as it comes in: no unknown fields, nothing
// behind it. A fleet's state has many megabytes, which are not held as text.
func decodeStrictly(r io.Reader, into any) error {
	if err := json.UnmarshalRead(r, into, json.RejectUnknownMembers(true)); err != nil {
		return worded(err)
	}
	return nil
}

// worded says what is wrong with a JSON text without Go's type names.
func worded(err error) error {
	var meaning *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &meaning) && errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("unknown field %q", meaning.JSONPointer.LastToken())
	case errors.As(err, &meaning):
		why := fmt.Errorf("a %s does not fit there", kindName(meaning.JSONKind))
		if meaning.Err != nil {
			why = meaning.Err
		}
		return fmt.Errorf("field %s: %w (byte %d)", dotted(meaning.JSONPointer), why, meaning.ByteOffset)
	case errors.Is(err, io.EOF), errors.As(err, &syntax) && errors.Is(err, io.ErrUnexpectedEOF) && syntax.ByteOffset == 0:
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends in the middle")
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d: %w", syntax.ByteOffset, syntax.Err)
	}
	return err
}

func kindName(k jsontext.Kind) string {
	names := map[jsontext.Kind]string{'n': "null", 't': "truth value", 'f': "truth value", '"': "string", '0': "number", '{': "object", '[': "list"}
	if name, ok := names[k]; ok {
		return name
	}
	return "value"
}

// dotted writes a JSON pointer as people do: state.nodes.0.
func dotted(p jsontext.Pointer) string {
	return strings.Join(slices.Collect(p.Tokens()), ".")
}
