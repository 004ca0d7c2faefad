package units

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const durationRemedy = `write a duration with its unit such as "500ms", "15s" or "2m30s"`

// ParseDuration parses a duration in Go's notation ("500ms", "15s", "2m30s"; ns, us,
// µs, ms, s, m and h). It must not be negative, and only zero may lack a unit. One
// space before the unit is valid, because FormatDuration prints it.
func ParseDuration(s string) (time.Duration, error) {
	fail := func(offset int, problem, remedy string) (time.Duration, error) {
		return 0, &Error{What: "duration", Text: s, Offset: offset, Problem: problem, Remedy: remedy}
	}
	if len(s) > longest {
		return fail(0, "is longer than any duration", durationRemedy)
	}
	body := strings.Trim(s, " ")
	start := len(s) - len(strings.TrimLeft(s, " "))
	switch {
	case body == "":
		return fail(0, "is empty", durationRemedy)
	case body[0] == '-':
		return fail(start, "is negative", durationRemedy)
	case body[0] == '+':
		return fail(start, "has a sign", durationRemedy)
	case strings.Trim(body, "0123456789.") == "" && strings.Trim(body, "0.") != "":
		return fail(start+len(body), "has no unit", fmt.Sprintf(`write "%ss" for seconds, or "%sms" for milliseconds`, body, body))
	}
	d, err := time.ParseDuration(strings.Replace(body, " ", "", 1))
	if err != nil {
		offset, problem := unitProblem(body)
		return fail(start+offset, problem, durationRemedy)
	}
	return d, nil
}

// unitProblem explains an error of time.ParseDuration.
func unitProblem(body string) (offset int, problem string) {
	rest := strings.TrimLeft(body, "0123456789.")
	offset = len(body) - len(rest)
	if offset == 0 {
		return 0, "does not start with a number"
	}
	for rest != "" {
		rest = strings.TrimLeft(rest, " ")
		offset = len(body) - len(rest)
		end := strings.IndexAny(rest, "0123456789. ")
		if end < 0 {
			end = len(rest)
		}
		switch unit := rest[:end]; unit {
		case "ns", "us", "µs", "μs", "ms", "s", "m", "h":
		case "d":
			return offset, `"d" is not a unit here: a day is "24h"`
		default:
			return offset, fmt.Sprintf("%q is not a unit of time", unit)
		}
		rest = strings.TrimLeft(rest[end:], "0123456789.")
	}
	return 0, "is not a duration, or one longer than 292 years"
}

// FormatDuration prints nanoseconds with three significant digits, "78 µs",
// "1.25 ms"; from a minute on as "3m20s". NaN and infinities print as "—".
func FormatDuration(ns float64) string {
	if !Finite(ns) {
		return absent
	}
	if math.Abs(ns) < 59.95e9 {
		return inLargestUnit(ns, 1000, []string{"ns", "µs", "ms", "s"})
	}
	if math.Abs(ns) >= math.MaxInt64 {
		return three(ns/3.6e12) + " h"
	}
	s := time.Duration(ns).Round(time.Second).String()
	s = strings.Replace(s, "h0m0s", "h", 1)
	return strings.Replace(s, "m0s", "m", 1)
}
