package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nonEmpty is the value of a flag that must not be empty: an empty variable of a shell script must
// not stand for the default.
type nonEmpty string

func (v *nonEmpty) String() string { return string(*v) }
func (v *nonEmpty) Type() string   { return "string" }

func (v *nonEmpty) Set(given string) error {
	if given == "" {
		return errors.New("the value is empty")
	}
	*v = nonEmpty(given)
	return nil
}

// nonEmptyLists returns an error if a flag that takes a list was given an empty value.
func nonEmptyLists(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok && len(list.GetSlice()) == 0 {
			err = fmt.Errorf("--%s \"\": the value is empty; give one, or omit the flag", f.Name)
		}
	})
	return err
}
