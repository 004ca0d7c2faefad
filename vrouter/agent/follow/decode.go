package follow

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode decodes one JSON value from a stream. Unknown fields and data after
// the value are errors. It does not keep the whole text in memory, because a fleet's
// state has many megabytes.
func Decode(r io.Reader, into any) error {
	if err := json.UnmarshalRead(r, into, json.RejectUnknownMembers(true)); err != nil {
		return translate(err)
	}
	return nil
}

// translate translates a JSON error into a text without Go's type names.
func translate(err error) error {
	var meaning *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &meaning) && errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("unknown field %q", meaning.JSONPointer.LastToken())
	case errors.As(err, &meaning):
		why := fmt.Errorf("a %s is not allowed here", kindName(meaning.JSONKind))
		if meaning.Err != nil {
			why = meaning.Err
		}
		return fmt.Errorf("field %s: %w (byte %d)", dotted(meaning.JSONPointer), why, meaning.ByteOffset)
	case errors.Is(err, io.EOF), errors.As(err, &syntax) && errors.Is(err, io.ErrUnexpectedEOF) && syntax.ByteOffset == 0:
		return errors.New("the JSON text is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early")
	case errors.As(err, &syntax):
		return fmt.Errorf("invalid JSON at byte %d: %w", syntax.ByteOffset, syntax.Err)
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

// dotted formats a JSON pointer with dots: state.nodes.0.
func dotted(p jsontext.Pointer) string {
	return strings.Join(slices.Collect(p.Tokens()), ".")
}
