package model

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"
)

// checkSyntax is what to do about a file that is no YAML.
const checkSyntax = "check indentation, quotes and brackets; an address with colons may need quotes"

// located puts file, line and column in front of an error of the library, and
// says in a person's words what belongs there.
func located(name string, tokens token.Tokens, err error) error {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil && y.GetToken().Position != nil {
		t := y.GetToken()
		return fmt.Errorf("%s:%d:%d: %s", name, t.Position.Line, t.Position.Column, worded(y.GetMessage(), strings.TrimSpace(t.Value)))
	}
	word, text := wordedAddress(strings.TrimSpace(err.Error()))
	if t := only(tokens, word); t != nil {
		return fmt.Errorf("%s:%d:%d: %s", name, t.Position.Line, t.Position.Column, text)
	}
	return fmt.Errorf("%s: %s", name, text)
}

// only is the token of a value where there is one; nil for several: no place is
// better than a wrong one.
func only(tokens token.Tokens, value string) (found *token.Token) {
	for _, t := range tokens {
		if value == "" || t.Value != value {
			continue
		}
		if found != nil {
			return nil
		}
		found = t
	}
	return found
}

var (
	wrongType = regexp.MustCompile(`^cannot unmarshal (\S+)( \{\})? into Go .+ of type (\S+)`)
	twice     = regexp.MustCompile(`^mapping key (".*") already defined at \[(\d+):\d+\]$`)
)

// worded is the decoder's or the parser's message about a value.
func worded(message, value string) string {
	wrong := wrongType.FindStringSubmatch(message)
	duplicate := twice.FindStringSubmatch(message)
	switch {
	case duplicate != nil:
		return fmt.Sprintf("%s stands here again, after line %s; keep one", duplicate[1], duplicate[2])
	case strings.HasPrefix(message, "unknown field "):
		return message
	case strings.HasSuffix(message, "used where sequence is expected"):
		return "a list belongs here, such as [a, b]"
	case strings.HasSuffix(message, "used where mapping is expected"):
		return "fields belong here, such as name: a"
	case wrong == nil:
		return fmt.Sprintf("%s: %q; %s", message, clip(value), checkSyntax)
	}
	switch belongs := wrong[3]; {
	case strings.Contains(message, "overflow") && strings.HasPrefix(value, "-"):
		return clip(value) + " is too small a number here; none is below 0"
	case strings.Contains(message, "overflow"):
		return clip(value) + " is too large a number here"
	case strings.HasPrefix(belongs, "uint"):
		return fmt.Sprintf("a number belongs here, not %q", clip(value))
	case belongs == "bool":
		return fmt.Sprintf("true or false belongs here, not %q", clip(value))
	case wrong[1] == "[]interface":
		return "one word belongs here, not a list"
	}
	return fmt.Sprintf("one word belongs here, not %q", clip(value))
}

var (
	noAddress = regexp.MustCompile(`(?s)^ParseAddr\((".*")\): (.*)$`)
	noPrefix  = regexp.MustCompile(`(?s)^netip\.ParsePrefix\((".*")\): (.*)$`)
	noMAC     = regexp.MustCompile(`(?s)^(".*") is no MAC address`)
)

// wordedAddress is what to say of an address, and the word that is none.
func wordedAddress(message string) (word, text string) {
	text = message
	var m []string
	if m = noAddress.FindStringSubmatch(message); m != nil {
		text = fmt.Sprintf("%s is no IP address: %s", m[1], m[2])
	} else if m = noPrefix.FindStringSubmatch(message); m != nil {
		text = fmt.Sprintf("%s is no prefix: %s; write such as 10.1.0.0/16", m[1], m[2])
	} else if m = noMAC.FindStringSubmatch(message); m == nil {
		return "", message
	}
	word, _ = strconv.Unquote(m[1]) // as the libraries quote
	return word, text
}
