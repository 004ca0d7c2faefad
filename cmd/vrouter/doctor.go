package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/agent"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

// Levels of a finding.
const (
	levelOK      = "ok"
	levelNote    = "note"
	levelProblem = "problem"
)

func doctorCommand() *cobra.Command {
	var config string
	var output format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "What this host can do: kernel features, attach modes, MTU and offload findings",
		Long: `Asks the agent. Where none runs, the kernel is asked for what the data path
needs; with --config, the underlay that a node's agent would use is looked at
too. Nothing is changed. The exit code is 1 where there is a problem.`,
		Example: "  vrouter doctor\n  vrouter doctor --config node.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings, err := diagnose(cmd.Context(), config)
			if err != nil {
				return err
			}
			return printFindings(cmd.OutOrStdout(), findings, output)
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "the configuration of the node to look at, a YAML `file`")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	outputFlag(cmd, &output)
	return cmd
}

// diagnose asks the agent, or looks itself where none answers. An agent that
// was named and does not answer is an error, not a reason to look elsewhere.
func diagnose(ctx context.Context, config string) ([]api.Finding, error) {
	if config == "" {
		findings, err := askAgent(ctx, connect)
		var none *api.Unreachable
		if errors.As(err, &none) && target.node == "" && target.socket == "" {
			return diagnoseKernel(), nil
		}
		return findings, err
	}
	c, err := agent.LoadConfig(config)
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

// printFindings prints findings; the error is silent where one is a problem.
func printFindings(out io.Writer, findings []api.Finding, output format) error {
	var err error
	if output == asJSON {
		err = writeJSON(out, findings)
	} else {
		_, err = io.WriteString(out, findingsText(findings, optionsFor(out)))
	}
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Level == levelProblem {
			return errSilent
		}
	}
	return nil
}

// findingsText is a paragraph a finding, its remedy under it.
func findingsText(findings []api.Finding, o inspect.Options) string {
	const indent = len("problem  offload  ")
	text := ""
	for _, f := range findings {
		text += fmt.Sprintf("%-7s  %-7s  %s\n", f.Level, f.Topic, inspect.Wrap(f.Text, o.Width, indent))
		if f.Remedy != "" {
			text += fmt.Sprintf("%*s→ %s\n", indent, "", inspect.Wrap(f.Remedy, o.Width, indent+2))
		}
	}
	return text
}
