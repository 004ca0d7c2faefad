package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"windtunnel/internal/cli"
)

// variables maps flags to the variables of the environment that have their defaults.
var variables = map[string]string{"db": "WINDTUNNEL_DB", "gates": "WINDTUNNEL_GATES", "out": "WINDTUNNEL_OUT"}

// useVariables sets the flags of a command that the command line does not give from the
// environment. An empty variable has no effect. A resumed run keeps its gates.
func useVariables(cmd *cobra.Command, _ []string) error {
	for name, variable := range variables {
		f, value := cmd.Flags().Lookup(name), os.Getenv(variable)
		if f == nil || f.Changed || value == "" || name == "gates" && cmd.Flags().Changed("resume") {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			var invalid *pflag.InvalidValueError
			if errors.As(err, &invalid) {
				err = errors.New(cli.RemedyOf(invalid))
			}
			return fmt.Errorf("%s=%s: %w; correct the variable, or give --%s", variable, value, err, name)
		}
	}
	return nil
}
