package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

// mostState bounds a state file: 64 MB, as the agent does.
const mostState = 64 << 20

func applyCommand() *cobra.Command {
	var file string
	var output format
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Give the agent a desired state: nodes, networks, ports, routes, policies",
		Long: `Replaces the desired state. A state that is not valid is refused whole, with
everything that is wrong with it, and the running state stays as it is. Ports
that were added with "vrouter port add" stay.`,
		Example: "  vrouter apply -f state.yaml\n  vrouter state | sed 's/l3/l2l3/' | vrouter apply -f -",
		Args:    cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			state, err := readState(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			applied, err := c.PutState(ctx, state)
			var refused *api.Error
			switch {
			case errors.As(err, &refused):
				return fmt.Errorf("the state is refused, nothing was changed:\n%w", err)
			case err != nil:
				return err
			case output == asJSON:
				return writeJSON(cmd.OutOrStdout(), applied)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "applied;", summary(applied))
			warn(cmd, applied.Warnings)
			return nil
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the state as YAML; - reads it from standard input")
	cmd.MarkFlagRequired("file")
	cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	outputFlag(cmd, &output)
	return cmd
}

// readState reads a state file; "-" is standard input.
func readState(file string, stdin io.Reader) (model.State, error) {
	from, name := stdin, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return model.State{}, fmt.Errorf("read the desired state: %w", err)
		}
		defer f.Close()
		from, name = f, file
	}
	text, err := io.ReadAll(io.LimitReader(from, mostState+1))
	switch {
	case err != nil:
		return model.State{}, fmt.Errorf("read the desired state from %s: %w", name, err)
	case len(text) > mostState:
		return model.State{}, fmt.Errorf("read the desired state from %s: it is larger than %d MB", name, mostState>>20)
	}
	state, err := model.Parse(name, text)
	if err != nil {
		return model.State{}, shown(name, string(text), err)
	}
	return state, nil
}

// summary says what a change came to.
func summary(a api.Applied) string {
	return fmt.Sprintf("%s updated, %d deleted in %v", count(a.Updated, "entry"), a.Deleted, a.Took.Round(10*time.Microsecond))
}

func warn(cmd *cobra.Command, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
}

func stateCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:     "state",
		Short:   "The desired state that the agent works to, as YAML that `apply` takes",
		Example: "  vrouter state > state.yaml\n  vrouter state -o json",
		Args:    cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			state, err := c.State(ctx)
			switch {
			case err != nil:
				return err
			case output == asJSON:
				return writeJSON(cmd.OutOrStdout(), state)
			}
			text, err := stateYAML(state)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}),
	}
	outputFlag(cmd, &output, asYAML, asJSON)
	return cmd
}

func statusCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "How the agent is: what it cannot do, what it had to repair",
		Example: "  vrouter status\n  vrouter status -o json",
		Args:    cobra.NoArgs,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			status, err := c.Status(ctx)
			switch {
			case err != nil:
				return err
			case output == asJSON:
				return writeJSON(cmd.OutOrStdout(), status)
			}
			state, err := c.State(ctx)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), inspect.Describe(statusFields(status, state, time.Now())))
			return err
		}),
	}
	outputFlag(cmd, &output)
	return cmd
}

func statusFields(s api.Status, state model.State, now time.Time) []inspect.Field {
	synced := "never"
	if !s.Synced.IsZero() {
		synced = ago(s.Synced, now)
	}
	fields := []inspect.Field{
		{Name: "Node", Value: s.Node},
		{Name: "Agent", Value: fmt.Sprintf("%s, pid %d, started %s", s.Version, s.PID, ago(s.Started, now))},
		{Name: "In sync", Value: synced},
		{Name: "Store", Value: storeText(s.Store, now)},
		{Name: "State", Value: contents(state)},
		{Name: "Ports", Value: fmt.Sprintf("%d on this node", s.Ports)},
		{Name: "Routes", Value: fmt.Sprint(s.Routes)},
		{Name: "Repairs", Value: fmt.Sprint(s.Repairs)},
	}
	for _, f := range s.Fabric {
		value := fmt.Sprintf("%s, %s, MTU %d", f.Device, f.Mode, f.MTU)
		if f.Why != "" {
			value += " (" + f.Why + ")"
		}
		fields = append(fields, inspect.Field{Name: "Fabric", Value: value})
	}
	if s.Store.Refused != "" {
		fields = append(fields, inspect.Field{Name: "Problem", Value: s.Store.Refused})
	}
	if n := len(s.Store.Waiting); n > 0 {
		fields = append(fields, inspect.Field{Name: "Waiting", Value: fmt.Sprintf("%s to delete from the store once it answers", count(n, "port"))})
	}
	for _, p := range s.Problems {
		fields = append(fields, inspect.Field{Name: "Problem", Value: p})
	}
	return fields
}

// storeText says where the desired state is, and since when it is not heard of.
func storeText(s api.Store, now time.Time) string {
	switch {
	case s.Heard.IsZero():
		return s.Address + ", never answered: " + s.Problem
	case s.Problem != "":
		return fmt.Sprintf("%s, out of reach: what was known %s is in force (revision %d): %s", s.Address, ago(s.Heard, now), s.Revision, s.Problem)
	}
	return fmt.Sprintf("%s, revision %d", s.Address, s.Revision)
}

// contents sums a desired state up.
func contents(s model.State) string {
	if len(s.Nodes) == 0 {
		return "none yet; give one with `vrouter apply -f FILE`"
	}
	return fmt.Sprintf("%s, %s, %s", count(len(s.Nodes), "node"), count(len(s.Networks), "network"), count(len(s.Ports), "port"))
}

func ago(then, now time.Time) string { return inspect.Duration(now.Sub(then)) + " ago" }
