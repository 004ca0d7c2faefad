// Package cli has what the command lines of both programs share.
package cli

import "github.com/spf13/cobra"

// helpFlags gives cobra's own flags of a command, and of the commands below it, help texts in the
// form of the others.
func helpFlags(cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Usage = "Show this help"
	cmd.InitDefaultVersionFlag()
	if f := cmd.Flags().Lookup("version"); f != nil {
		f.Usage = "Print the version"
	}
	for _, below := range cmd.Commands() {
		helpFlags(below)
	}
}
