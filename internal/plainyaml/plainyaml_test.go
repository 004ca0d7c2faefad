package plainyaml

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
)

var small = Limits{Bytes: 100, Tokens: 20, Indent: 10, Nesting: 3, Split: "split it", Shape: "make it flat", Anchor: "write it out"}

func TestEachErrorHasItsPlaceAndARemedy(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("#", 101):    "the file has 101 bytes, at most 100 are allowed; split it",
		"a: caf\xe9":                "1:7: byte 0xe9 is not UTF-8; save the file as UTF-8 text",
		"a: 1\r\nb: \x00":           "2:4: control character U+0000; remove it: YAML allows no control characters but tab and line end",
		strings.Repeat("- a\n", 20): "11:1: more than 20 YAML tokens before this position; split it",
		"a:\n           b: 1":       "2:12: indented by more than 10 characters; make it flat",
		"a: [[[[1]]]]":              "1:7: nested more than 3 deep; make it flat",
		"- - - - a":                 "1:7: nested more than 3 deep; make it flat",
		"a: &x 1":                   "1:4: anchors, aliases and merge keys are not allowed; write it out",
		"a: *x":                     "1:4: anchors, aliases and merge keys are not allowed; write it out",
		"<<: {}":                    "1:1: anchors, aliases and merge keys are not allowed; write it out",
		"a: !x 1":                   "1:4: tags are not allowed; remove the tag; a value that starts with ! needs quotes",
		"%YAML 1.2\n---\na: 1":      "1:1: directives are not allowed; remove the line; a value that starts with % needs quotes",
		"? a\n: 1":                  `1:1: keys in the form "? key" are not allowed; write "key: value"`,
		"a: 1\n---\nb: 1":           `2:1: a second document in the file; remove what follows the line "---"`,
		"---\n---\na: 1":            `2:1: a second document in the file; remove what follows the line "---"`,
		"a: 1\n---\n---\nb: 1":      `2:1: a second document in the file`,
		"a: 1\n...\nb: 1":           `2:1: a second document in the file; remove what follows the line "..."`,
		"a: !x":                     "1:4: tags are not allowed",
		"a: [1":                     "1:4: the YAML cannot be read: sequence end token ']' not found; check the indentation, quotes and brackets near this position",
		"a: >= 1":                   `1:4: the YAML cannot be read: `,
		"a:\n\tb: 1":                "the YAML cannot be read: ",
	} {
		_, err := Parse([]byte(text), small)
		must.Fail(t, err, want)
	}
}

func TestAFileHasItsBodyAndLines(t *testing.T) {
	for text, lines := range map[string]int{"": 1, "# none\n": 2, "\ufeffa: 1\r\nb: 2\rc: 3": 3, "---\na: 1\n---\n# end\n": 5, "a: 1\n...\n---\n": 4} {
		f := must.Get(Parse([]byte(text), small))(t)
		must.Equal(t, lines, strings.Count(f.Text, "\n")+1)
		must.Equal(t, strings.Contains(text, "a: 1"), f.Body != nil)
	}
}
