// Package phrase has the helpers for the texts of messages: counts with a noun, lists,
// sentences, shortened and printable text, words for a shell, and the most similar name.
package phrase

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Count returns a number with its noun: "1 trial", "3 trials", "2 policies".
func Count(n int, noun string) string {
	if n != 1 {
		noun = Plural(noun)
	}
	return strconv.Itoa(n) + " " + noun
}

// Plural returns the plural of a noun. A y at its end becomes ies after a consonant.
func Plural(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeou") {
		return stem + "ies"
	}
	return noun + "s"
}

// And joins parts for a sentence: "a, b and c".
func And(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// Some lists names. If there are more than most names, it lists the first of them and
// counts the others: "a, b and 3 more".
func Some(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names, ", ")
}

// Once splits text at separator and removes each part that is equal to an earlier
// part: Once("a; b; a", "; ") is "a; b".
func Once(text, separator string) string {
	var parts []string
	for part := range strings.SplitSeq(text, separator) {
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, separator)
}

// Capital changes the first letter to upper case.
func Capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// Lines collects sentences.
type Lines []string

// Say adds a sentence. The arguments are those of fmt.Sprintf.
func (l *Lines) Say(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

// SayIf adds the sentence if applies is true.
func (l *Lines) SayIf(applies bool, format string, args ...any) {
	if applies {
		l.Say(format, args...)
	}
}

// Groups collects texts by key. It keeps the order in which the keys were added.
type Groups struct {
	keys []string
	of   map[string][]string
}

// Add adds a text to the group of key, unless the group has the same text already.
func (g *Groups) Add(key, text string) {
	if g.of == nil {
		g.of = make(map[string][]string)
	}
	if g.of[key] == nil {
		g.keys = append(g.keys, key)
	}
	if !slices.Contains(g.of[key], text) {
		g.of[key] = append(g.of[key], text)
	}
}

// Of returns the texts of key.
func (g *Groups) Of(key string) []string { return g.of[key] }

// All yields each key and its texts.
func (g *Groups) All() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, key := range g.keys {
			if !yield(key, g.of[key]) {
				return
			}
		}
	}
}

// Clip shortens a value in a message to 60 characters.
func Clip(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// Printable replaces white space by blanks, line ends too, and control characters by U+FFFD. Names
// and messages from other programs could contain terminal commands.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Shell joins argv to one line, with quotes where they are needed. A POSIX shell splits
// the line into the same words.
func Shell(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		plain := a != "" && strings.IndexFunc(a, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=+@%", r))
		}) < 0
		if words[i] = a; !plain {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Meant returns the remedy for an unknown name: the most similar known name, else the first ten
// known names. kind is the plural of the named things: "networks".
func Meant(kind, given string, known []string) string {
	switch meant := Nearest(given, known); {
	case meant != "":
		return fmt.Sprintf("did you mean %q?", meant)
	case len(known) == 0:
		return "there are no " + kind
	}
	return kind + ": " + Some(known, 10)
}

// Nearest returns the known name with the fewest edits from given, or "" if all differ too much.
func Nearest(given string, known []string) string {
	if len(given) > 100 {
		return ""
	}
	given = strings.ToLower(given)
	best, fewest := "", max(1, len([]rune(given))/3)+1
	for _, k := range known {
		if d := Distance(given, strings.ToLower(k)); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// Distance is the optimal string alignment distance in characters: insertions,
// deletions, substitutions and transpositions of neighbours.
func Distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(s)][len(t)]
}
