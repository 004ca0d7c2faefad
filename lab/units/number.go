package units

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// longest is the maximum length of a quantity's text, in bytes. It also limits the
// size of numbers in the exact arithmetic.
const longest = 64

// quantity is a decimal number and its unit.
type quantity struct {
	what   string
	remedy string // for any error in the number
	text   string // as given
	number string // digits with at most one point
	unit   string // without the spaces around it
	at     int    // byte of text where unit starts
}

func (q quantity) fail(offset int, problem, remedy string) error {
	return &Error{What: q.what, Text: q.text, Offset: offset, Problem: problem, Remedy: remedy}
}

// split separates the number of a quantity from its unit. Exponents, signs, digit
// separators and words are errors, because no traffic tool writes sizes with them.
func split(what, text, remedy string) (quantity, error) {
	q := quantity{what: what, remedy: remedy, text: text}
	if len(text) > longest {
		return q, q.fail(0, "is longer than any "+what, remedy)
	}
	body := strings.TrimRight(text, " ")
	start := len(body) - len(strings.TrimLeft(body, " "))
	if start == len(body) {
		return q, q.fail(0, "is empty", remedy)
	}
	if body[start] == '-' {
		return q, q.fail(start, "is negative", remedy)
	}
	end := start
	for end < len(body) && (body[end] >= '0' && body[end] <= '9' || body[end] == '.') {
		end++
	}
	q.number = body[start:end]
	q.at = end + len(body[end:]) - len(strings.TrimLeft(body[end:], " "))
	q.unit = body[q.at:]
	if err := q.checkNumber(start); err != nil {
		return q, err
	}
	return q, nil
}

func (q quantity) checkNumber(start int) error {
	switch {
	case q.number == "":
		return q.fail(start, "does not start with a number", q.remedy)
	case strings.Count(q.number, ".") > 1:
		second := start + strings.LastIndex(q.number, ".")
		return q.fail(second, "has a second decimal point", q.remedy)
	case strings.HasPrefix(q.number, ".") || strings.HasSuffix(q.number, "."):
		return q.fail(start+strings.Index(q.number, "."), "has a decimal point without digits on both sides", q.remedy)
	}
	return nil
}

// times multiplies the number by the unit's factor, exactly. A result that is not
// whole, or does not fit an int64, is an error and is never rounded.
func (q quantity) times(factor int64, of string) (int64, error) {
	whole, fraction, _ := strings.Cut(q.number, ".")
	value, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return 0, q.fail(0, "is not a number", q.remedy)
	}
	value.Mul(value, big.NewInt(factor))
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil)
	rest := new(big.Int)
	value.QuoRem(value, scale, rest)
	if rest.Sign() != 0 {
		return 0, q.fail(0, "is not a whole number of "+of, q.remedy)
	}
	if !value.IsInt64() {
		return 0, q.fail(0, "exceeds "+strconv.FormatInt(math.MaxInt64, 10)+" "+of, q.remedy)
	}
	return value.Int64(), nil
}

// absent is printed for a figure that does not exist.
const absent = "—"

// Finite reports whether f is a number that can be stored, compared and printed.
func Finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// three prints f with three significant digits and without trailing zeros. Numbers of
// 1000 and more keep all digits before the point.
func three(f float64) string {
	decimals := 0
	switch a := math.Abs(f); {
	case a < 9.995:
		decimals = 2
	case a < 99.95:
		decimals = 1
	}
	s := strconv.FormatFloat(f, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// inLargestUnit prints f in the largest unit in which the rounded number is at least
// 1. units are in ascending order; each unit is step times the unit before it.
func inLargestUnit(f, step float64, units []string) string {
	i := 0
	// 999.5 would print as 1000 of the smaller unit.
	for i < len(units)-1 && math.Abs(f) >= step-0.5 {
		f /= step
		i++
	}
	return three(f) + " " + units[i]
}

// FormatCount prints a count or a count per second. Below 1000 it has three
// significant digits ("8.25"). Below a million it has all digits, with separated
// thousands ("11,050"). Larger counts print as "1.23 M" or "4.5 G", NaN and infinities
// as "—".
func FormatCount(n float64) string {
	if !Finite(n) {
		return absent
	}
	switch a := math.Abs(n); {
	case a < 999.5:
		return three(n)
	case a < 999_999.5:
		s := strconv.FormatInt(int64(math.Round(n)), 10)
		for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	}
	return inLargestUnit(n/1e6, 1000, []string{"M", "G", "T"})
}
