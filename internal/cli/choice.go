package cli

import (
	"fmt"
	"slices"
	"strings"
)

// Choice is the value of a flag that takes one of some words.
type Choice struct {
	Chosen *string
	Words  []string
}

// Type returns the type of the value, for the help.
func (c Choice) Type() string { return "string" }

func (c Choice) String() string {
	if c.Chosen == nil { // pflag compares with the zero value
		return ""
	}
	return *c.Chosen
}

// Set chooses a word.
func (c Choice) Set(given string) error {
	if !slices.Contains(c.Words, given) {
		return fmt.Errorf("choose one of %s", strings.Join(c.Words, ", "))
	}
	*c.Chosen = given
	return nil
}
