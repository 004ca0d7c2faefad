package tool

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"windtunnel/lab/sample"
)

// exitError returns the error for a process that failed, with its last output.
func exitError(tool, role string, out Output) error {
	how := fmt.Sprintf("exited with code %d", out.Exit)
	if out.Exit < 0 {
		how = "was ended by a signal"
	}
	said := lastWords(out.Stderr)
	if said == "" {
		said = lastWords(out.Stdout)
	}
	if said == "" {
		said = "it printed nothing"
	}
	return &sample.Failure{Kind: sample.ToolFailed, Message: fmt.Sprintf("%s %s %s: %s", tool, role, how, said)}
}

// outputOf returns the output of the process with a role. If the process failed, it
// returns an error.
func outputOf(tool, role string, outputs map[string]Output) (Output, error) {
	out, ran := outputs[role]
	switch {
	case !ran:
		return out, noResult(tool, "there is no output of the %s", role)
	case out.Exit != 0:
		return out, exitError(tool, role, out)
	}
	return out, nil
}

// reportedError returns an error that the tool itself reported.
func reportedError(tool, format string, args ...any) error {
	return &sample.Failure{Kind: sample.ToolFailed, Message: tool + ": " + fmt.Sprintf(format, args...)}
}

// noResult returns the error for an output without a measurement.
func noResult(tool, format string, args ...any) error {
	return &sample.Failure{Kind: sample.NoResult, Message: tool + ": " + fmt.Sprintf(format, args...)}
}

// lastWords returns the end of an output on one line, for a message.
func lastWords(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(strings.ToValidUTF8(ansi.Strip(text), "?")), " ")
	if runes := []rune(text); len(runes) > most {
		text = "…" + string(runes[len(runes)-most:])
	}
	return text
}

// figure parses a number in a tool's output, which must be finite and not negative.
func figure(name, text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, fmt.Errorf("%s is %q, not a number", name, text)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%s is %q, want a finite number of at least 0", name, text)
	}
	return v, nil
}

// sound checks a parser's measurement: it must have a result, and no impossible
// figure.
func sound(tool string, m Measurement) (Measurement, error) {
	if m.Metrics[sample.Throughput] == 0 && m.Metrics[sample.Transactions] == 0 {
		return Measurement{}, noResult(tool, "the output has neither a throughput nor transactions above zero")
	}
	for name, v := range m.Metrics {
		impossible := math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || name == sample.LossRatio && v > 1
		if impossible {
			return Measurement{}, &sample.Failure{
				Kind:    sample.Invalid,
				Message: fmt.Sprintf("%s: %s of %v is impossible; the raw output is kept with the sample", tool, name, v),
			}
		}
	}
	return m, nil
}
