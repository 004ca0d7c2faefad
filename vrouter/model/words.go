package model

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"windtunnel/internal/phrase"
)

// checkSyntax is the remedy for a file that is not YAML.
const checkSyntax = "check indentation, quotes and brackets; an address with colons may need quotes"

// withPosition adds file, line and column to an error of the library, and
// translates the error into the terms of a state file.
func withPosition(name string, tokens token.Tokens, err error) error {
	t, text := explain(tokens, err)
	if t == nil {
		return fmt.Errorf("%s: %s", name, text)
	}
	return fmt.Errorf("%s:%d:%d: %s", name, t.Position.Line, t.Position.Column, text)
}

// YAMLError adds file, line, column and key to an error of the YAML library. It is for files that are not state files.
func YAMLError(name string, text []byte, err error) error {
	tokens := lexer.Tokenize(string(text))
	t, message := explain(tokens, err)
	if t == nil || t.Next != nil && t.Next.Type == token.MappingValueType { // the token is a key, and the message already names it
		return withPosition(name, tokens, err)
	}
	for k := t.Prev; k != nil; k = k.Prev {
		if k.Type == token.MappingValueType && k.Prev != nil {
			message = k.Prev.Value + ": " + message
			break
		}
	}
	return fmt.Errorf("%s:%d:%d: %s", name, t.Position.Line, t.Position.Column, message)
}

// explain translates an error of the YAML library. t is the token at which the error occurred; nil: unknown.
func explain(tokens token.Tokens, err error) (t *token.Token, text string) {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil && y.GetToken().Position != nil {
		return y.GetToken(), translate(y.GetMessage(), strings.TrimSpace(y.GetToken().Value))
	}
	word, text := translateText(strings.TrimSpace(err.Error()))
	return onlyToken(tokens, word), text
}

// onlyToken returns the token with a value; nil if several tokens have it. No
// position is better than a wrong one.
func onlyToken(tokens token.Tokens, value string) (found *token.Token) {
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

// translate translates a message of the parser or the decoder about a value.
func translate(message, value string) string {
	wrong := wrongType.FindStringSubmatch(message)
	duplicate := twice.FindStringSubmatch(message)
	switch {
	case duplicate != nil:
		return fmt.Sprintf("%s is already defined in line %s; keep one", duplicate[1], duplicate[2])
	case strings.HasPrefix(message, "unknown field "):
		return message
	case strings.HasSuffix(message, "used where sequence is expected"):
		return "a list belongs here, such as [a, b]"
	case strings.HasSuffix(message, "used where mapping is expected"):
		return "fields belong here, such as name: a"
	case wrong == nil:
		return fmt.Sprintf("%s: %q; %s", message, phrase.Clip(value), checkSyntax)
	}
	switch belongs := wrong[3]; {
	case strings.Contains(message, "overflow") && strings.HasPrefix(value, "-"):
		return phrase.Clip(value) + " is too small; the smallest number is 0"
	case strings.Contains(message, "overflow"):
		return phrase.Clip(value) + " is too large"
	case strings.HasPrefix(belongs, "uint"):
		return fmt.Sprintf("a number belongs here, not %q", phrase.Clip(value))
	case belongs == "time.Duration":
		return fmt.Sprintf("a time with its unit belongs here, such as 5s, not %q", phrase.Clip(value))
	case belongs == "bool":
		return fmt.Sprintf("true or false belongs here, not %q", phrase.Clip(value))
	case wrong[1] == "[]interface":
		return "one word belongs here, not a list"
	}
	return fmt.Sprintf("one word belongs here, not %q", phrase.Clip(value))
}

var (
	noAddress = regexp.MustCompile(`(?s)^ParseAddr\((".*")\): (.*)$`)
	noPrefix  = regexp.MustCompile(`(?s)^netip\.ParsePrefix\((".*")\): (.*)$`)
	noTime    = regexp.MustCompile(`(?s)^time: .* duration (".*")$`)
	noText    = regexp.MustCompile(`(?s)^(".*") is not an? `)
)

// translateText translates the error of an invalid address or time. It also returns the
// invalid word.
func translateText(message string) (word, text string) {
	text = message
	var m []string
	if m = noAddress.FindStringSubmatch(message); m != nil {
		text = fmt.Sprintf("%s is not an IP address: %s", m[1], m[2])
	} else if m = noPrefix.FindStringSubmatch(message); m != nil && m[1] == `"auto"` {
		text = "auto is only for a node that adds itself to a shared store; write a prefix such as fd00:0:0:17::/64, or settings.locators with 32 bits"
	} else if m != nil {
		text = fmt.Sprintf("%s is not a prefix: %s; write one such as 10.1.0.0/16", m[1], m[2])
	} else if m = noTime.FindStringSubmatch(message); m != nil {
		text = fmt.Sprintf("%s is not a time; write one with its unit, such as 5s", m[1])
	} else if m = noText.FindStringSubmatch(message); m == nil {
		return "", message
	}
	word, _ = strconv.Unquote(m[1]) // the libraries quote it
	return word, text
}
