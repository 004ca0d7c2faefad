// Package clitest checks the help of a program's commands.
package clitest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sentence is the form of all help texts.
var sentence = regexp.MustCompile(`^[A-Z].*[^.]$`)

// Commands calls f for a command and all commands below it, without those that cobra adds.
func Commands(top *cobra.Command, f func(*cobra.Command)) {
	f(top)
	for _, c := range top.Commands() {
		if c.Name() != "help" && c.Name() != "completion" {
			Commands(c, f)
		}
	}
}

// Help checks that all help texts of a program have one form: they begin with a capital and end
// without a full stop. The text of a flag that takes several values says how to give them.
func Help(t *testing.T, top *cobra.Command) {
	Commands(top, func(c *cobra.Command) {
		if !sentence.MatchString(c.Short) {
			t.Errorf("%s: the help %q does not begin with a capital, or ends with a full stop", c.CommandPath(), c.Short)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, text := pflag.UnquoteUsage(f)
			if !sentence.MatchString(text) {
				t.Errorf("%s --%s: the help %q does not begin with a capital, or ends with a full stop", c.CommandPath(), f.Name, text)
			}
			if strings.Contains(value, " ") {
				t.Errorf("%s --%s: the help %q back-quotes %q, which pflag prints as the name of the value", c.CommandPath(), f.Name, f.Usage, value)
			}
			isList := strings.HasSuffix(strings.ToLower(f.Value.Type()), "slice") || f.Value.Type() == "strings"
			if says := strings.Contains(text, "(repeatable") || strings.Contains(text, "separated by commas"); isList && !says || strings.Contains(text, "repeated") {
				t.Errorf("%s --%s: the help %q does not say how to give several values: (repeatable), or separated by commas", c.CommandPath(), f.Name, text)
			}
		})
	})
}
