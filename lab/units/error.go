// Package units parses and prints sizes, rates and durations in the notation of
// traffic tools: "128k" is 131072 bytes, "10Gbit" is 10^10 bits per second, "15s" is
// fifteen seconds. Inside the lab every quantity is in its SI unit.
package units

import (
	"fmt"

	"windtunnel/internal/phrase"
)

// Error is a mistake in the text of a quantity. A caller that knows the position of
// the text in a file adds Offset to it.
type Error struct {
	What    string // kind of quantity: "size", "rate", "duration"
	Text    string // the whole text as given
	Offset  int    // byte of Text where the problem starts
	Problem string // error in the text
	Remedy  string // description of the correct form
}

// Error prints text, place, problem and remedy on one line.
func (e *Error) Error() string {
	where := ""
	if e.Offset > 0 {
		where = fmt.Sprintf(" at character %d", len([]rune(e.Text[:e.Offset]))+1)
	}
	return fmt.Sprintf("%s %q%s: %s; %s", e.What, phrase.Clip(e.Text), where, e.Problem, e.Remedy)
}
