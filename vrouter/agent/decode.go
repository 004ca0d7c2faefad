package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// decodeStrictly reads one JSON value: no unknown fields, nothing behind it.
func decodeStrictly(r io.Reader, into any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return worded(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("there is more than one JSON value")
		}
		return worded(err)
	}
	return nil
}

// worded says what is wrong with a JSON text without Go's type names.
func worded(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("field %s: a %s does not fit there (byte %d)", kind.Field, kind.Value, kind.Offset)
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d: %w", syntax.Offset, err)
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends in the middle")
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown field %s", field)
	}
	return err
}
