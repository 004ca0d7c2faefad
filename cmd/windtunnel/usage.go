package main

import "errors"

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
