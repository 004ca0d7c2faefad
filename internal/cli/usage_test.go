package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"windtunnel/internal/must"
	"windtunnel/internal/phrase"
)

func TestErrorsOfWrongUsageSayWhatToWrite(t *testing.T) {
	for line, want := range map[string]string{
		"":                          "",
		"vif":                       "top vif needs a subcommand; `top vif --help` lists the commands",
		"vfi":                       "there is no command `top vfi`; did you mean \"vif\"? `top --help` lists the commands",
		"vif lsit":                  "there is no command `top vif lsit`; did you mean \"list\"? `top vif --help` lists the commands",
		"vif list more":             "top vif list takes no argument, 1 given: write `top vif list [flags]`",
		"vif list --nodee":          "unknown flag --nodee; did you mean --node? `top vif list --help` lists the flags",
		"vif list --node":           "flag needs an argument: --node; `top vif list --help` lists the flags with their values",
		"vif list --wait 5":         "--wait 5: give a unit, such as 5s",
		"vif list --vrf 4x":         "--vrf 4x: give a whole number of 0 or more",
		"vif list --vrf 1e9":        "--vrf 1e9: give a whole number of 0 or more",
		"vif list --vrf 5000000000": "--vrf 5000000000: the number is outside the possible range",
	} {
		top, vif := &cobra.Command{Use: "top", SilenceErrors: true, SilenceUsage: true}, &cobra.Command{Use: "vif"}
		list := &cobra.Command{Use: "list", Args: Takes(0, 0), RunE: func(*cobra.Command, []string) error { return nil }}
		list.Flags().String("node", "", "Node")
		list.Flags().Duration("wait", 0, "Wait")
		list.Flags().Uint32("vrf", 0, "VRF")
		vif.AddCommand(list)
		top.AddCommand(vif)
		Prepare(top, phrase.Nearest)
		top.SetArgs(strings.Fields(line))
		top.SetOut(io.Discard)
		got := ""
		if err := top.ExecuteContext(t.Context()); err != nil {
			must.Equal(t, ExitUsage, ExitCode(err))
			got = err.Error()
		}
		must.Equal(t, want, got)
	}
}
