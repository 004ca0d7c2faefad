package suite

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"windtunnel/lab/units"
)

// measure is a quantity with a unit, within bounds.
type measure[V ~int64 | ~float64] struct {
	parse       func(string) (V, error)
	print       func(V) string
	least, most V
	pattern     string // pattern of the accepted strings, for editors
	bare        bool   // a number without a unit is valid
}

// read parses the quantity at n. It adds the position in the line to an error of
// package units.
func (f measure[V]) read(j *journal, n ast.Node) (V, bool) {
	_, err := f.parse("")
	remedy := remedyOf(err)
	s, ok := scalarOf(j, n, "a quantity", remedy)
	if !ok {
		return 0, false
	}
	v, err := f.parse(s.text)
	var wrong *units.Error
	if errors.As(err, &wrong) {
		p := s.pos
		if !strings.Contains(s.text, "\n") {
			p.column += len([]rune(s.text[:wrong.Offset]))
		}
		j.fail(p, fmt.Sprintf("%s %q: %s", wrong.What, clip(s.text), wrong.Problem), wrong.Remedy)
		return 0, false
	}
	if err != nil {
		j.fail(s.pos, err.Error(), remedy)
		return 0, false
	}
	if v < f.least || v > f.most {
		j.fail(s.pos, fmt.Sprintf("%s is out of bounds", clip(s.text)), fmt.Sprintf("write %s to %s", f.print(f.least), f.print(f.most)))
		return 0, false
	}
	return v, true
}

func remedyOf(err error) string {
	var wrong *units.Error
	if errors.As(err, &wrong) {
		return wrong.Remedy
	}
	return ""
}

func (f measure[V]) schema() object {
	text := object{"type": "string", "pattern": f.pattern}
	if !f.bare {
		return text
	}
	return object{"anyOf": []object{{"type": "integer", "minimum": int64(f.least), "maximum": int64(f.most)}, text}}
}

func size(least, most int64) measure[int64] {
	return measure[int64]{parse: units.ParseBytes, print: units.FormatBytes, least: least, most: most, bare: true,
		pattern: `^ *[0-9]+(\.[0-9]+)? *([kKmMgGtT]([iI][bB])?|[bB])? *$`}
}

func rate(most int64) measure[int64] {
	return measure[int64]{parse: units.ParseRate, print: func(v int64) string { return units.FormatRate(float64(v)) }, most: most, bare: true,
		pattern: `^ *[0-9]+(\.[0-9]+)? *[kKmMgGtT]?([bB][iI][tT][sS]?(/[sS])?|b(/[sS])?|b[pP][sS])? *$`}
}

func span(least, most time.Duration) measure[time.Duration] {
	return measure[time.Duration]{parse: units.ParseDuration, print: time.Duration.String, least: least, most: most,
		pattern: `^ *(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*) *$`}
}

// fraction is a percentage, stored as a fraction.
func fraction(least, most float64) measure[float64] {
	return measure[float64]{parse: units.ParsePercent, print: units.FormatPercent, least: least, most: most,
		pattern: `^ *[0-9]+(\.[0-9]+)? *% *$`}
}
