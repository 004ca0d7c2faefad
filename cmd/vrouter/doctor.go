package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/screen"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/api"
)

func doctorCommand() *cobra.Command {
	var path string
	var output format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check kernel features, attach modes, MTU and offloads of this host",
		Long: `Asks the agent. If no agent runs, it checks the kernel features that the data path
needs. With --config it also checks the underlay devices of that node. Nothing is
changed. The exit code is 1 if there is a problem.`,
		Example: "  vrouter doctor\n  vrouter doctor --config node.yaml",
		Args:    cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := diagnose(cmd.Context(), path)
			if err != nil {
				return err
			}
			return printFindings(cmd.OutOrStdout(), findings, output)
		},
	}
	cmd.Flags().StringVarP(&path, "config", "c", "", "Configuration of the node to check, a YAML `file`")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	outputFlag(cmd, &output)
	return cmd
}

// diagnose asks the agent. If none answers it checks the kernel itself. An agent
// selected by --node or --socket must answer; otherwise diagnose returns an error.
func diagnose(ctx context.Context, path string) ([]api.Finding, error) {
	if path == "" {
		findings, err := askAgent(ctx, connect)
		var none *api.Unreachable
		if errors.As(err, &none) && target.node == "" && target.socket == "" {
			return diagnoseKernel(), nil
		}
		return findings, err
	}
	c, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	findings, err := askAgent(ctx, func() (*api.Client, error) { return api.Dial(c.Socket).Within(target.timeout), nil })
	var none *api.Unreachable
	if errors.As(err, &none) {
		return append(diagnoseKernel(), diagnoseUnderlay(c)...), nil
	}
	return findings, err
}

func askAgent(ctx context.Context, dial func() (*api.Client, error)) ([]api.Finding, error) {
	c, err := dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Doctor(ctx)
}

// printFindings prints findings. It returns errSilent if one is a problem.
func printFindings(out io.Writer, findings []api.Finding, output format) error {
	if err := printAs(out, output, findings, findingsText(findings, screen.Of(out))); err != nil {
		return err
	}
	for _, f := range findings {
		if f.Level == api.LevelProblem {
			return errSilent
		}
	}
	return nil
}

// findingsText formats each finding as a paragraph with its remedy below.
func findingsText(findings []api.Finding, o screen.Terminal) string {
	indent := strings.Repeat(" ", len("problem  offload  "))
	text := ""
	for _, f := range findings {
		text += fmt.Sprintf("%-7s  %-7s  %s\n", f.Level, f.Topic, screen.Wrap(f.Text, o.Width, indent))
		if f.Remedy != "" {
			text += indent + "→ " + screen.Wrap(f.Remedy, o.Width, indent+"  ") + "\n"
		}
	}
	return text
}
