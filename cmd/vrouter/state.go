package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/pause"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func applyCommand() *cobra.Command {
	var file string
	var output format
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Replace the desired state with a file: nodes, networks, ports, routes, policies",
		Long: `Replaces the desired state. If the file has errors, the command lists all of them
and changes nothing. Ports of "vrouter port add" stay.`,
		Example: "  vrouter apply -f state.yaml\n  vrouter state | sed 's/l3/l2l3/' | vrouter apply -f -",
		Args:    cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			state, err := readState(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			applied, err := c.PutState(ctx, state)
			var refused *api.Error
			switch {
			case errors.As(err, &refused):
				return fmt.Errorf("apply the state: it is refused and nothing was changed:\n%w", err)
			case err != nil:
				return err
			case output == asTable:
				warn(cmd, applied.Warnings)
			}
			return printAs(cmd.OutOrStdout(), output, applied, "applied; "+summary(applied)+"\n")
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "State as YAML; - reads standard input")
	cmd.MarkFlagRequired("file")
	cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	outputFlag(cmd, &output)
	return cmd
}

// readState reads and parses a state file; "-" is standard input.
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
	text, err := io.ReadAll(io.LimitReader(from, model.MaxFileBytes+1))
	switch {
	case err != nil:
		return model.State{}, fmt.Errorf("read the desired state from %s: %w", name, err)
	case len(text) > model.MaxFileBytes:
		return model.State{}, fmt.Errorf("read the desired state from %s: it is larger than %d MB", name, model.MaxFileBytes>>20)
	}
	state, err := model.Parse(name, text)
	if err != nil {
		return model.State{}, withSourceLine(name, string(text), err)
	}
	return state, nil
}

// summary formats the counts of a change.
func summary(a api.Applied) string {
	return fmt.Sprintf("%s updated, %d deleted in %v", phrase.Count(a.Updated, "entry"), a.Deleted, a.Took.Round(10*time.Microsecond))
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
		Short:   "Print the desired state as YAML for `vrouter apply`",
		Example: "  vrouter state > state.yaml\n  vrouter state -o json",
		Args:    cli.Takes(0, 0),
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
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the agent's state, problems and repairs",
		Example: "  vrouter status\n  vrouter status -o json\n  vrouter status --wait 10s",
		Args:    cli.Takes(0, 0),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, _ []string) error {
			status, err := c.Status(ctx)
			switch {
			case err != nil:
				return err
			case output == asJSON:
				return writeJSON(cmd.OutOrStdout(), status)
			}
			state, err := c.KnownState(ctx)
			if err != nil {
				return err
			}
			return describe(cmd.OutOrStdout(), output, status, statusFields(status, state, time.Now()))
		}),
	}
	outputFlag(cmd, &output)
	show := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("wait") {
			if err := awaitSync(cmd.Context(), wait); err != nil {
				return err
			}
		}
		return show(cmd, args)
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "Wait until the agent runs and the node is in sync; fail after this `time`")
	return cmd
}

// awaitPause is the time between two looks at a node that is not in sync.
const awaitPause = 20 * time.Millisecond

// awaitSync waits until an agent answers and its node is in sync. When the limit is over, the
// error says why the node is not in sync.
func awaitSync(ctx context.Context, limit time.Duration) error {
	if limit <= 0 {
		return cli.Misuse(fmt.Errorf("--wait %v: give a time above 0, such as 10s", limit))
	}
	for deadline := time.Now().Add(limit); ; {
		node, why := notInSync(ctx, time.Until(deadline))
		var none *api.Unreachable
		switch {
		case why == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case node == "" && !errors.As(why, &none), errors.Is(why, fs.ErrPermission):
			return why
		case time.Until(deadline) <= awaitPause:
			return fmt.Errorf("wait for the node: %s is not in sync after %v: %w", cmp.Or(node, "it"), limit, why)
		}
		_ = pause.For(ctx, awaitPause) // the loop tests ctx
	}
}

// notInSync returns why a node is not in sync; nil: it is. node is "" if no agent answered.
func notInSync(ctx context.Context, limit time.Duration) (node string, why error) {
	c, err := connect()
	if err != nil {
		return "", err
	}
	defer c.Close()
	s, err := c.Within(max(limit, awaitPause)).Status(ctx)
	if err != nil || s.InSync {
		return "", err
	}
	var reasons []string
	for _, r := range []string{s.Store.Problem, s.Store.Refused} {
		if r != "" {
			reasons = append(reasons, r)
		}
	}
	for _, p := range s.Problems {
		if p.Kind != "" {
			reasons = append(reasons, p.Text)
		}
	}
	return "node " + s.Node, errors.New(cmp.Or(strings.Join(reasons, "; "), "the agent is still starting"))
}

func statusFields(s api.Status, state model.State, now time.Time) (fields inspect.Fields) {
	synced := "never"
	if !s.Synced.IsZero() {
		synced = ago(s.Synced, now)
	}
	fields.Add("Node", s.Node)
	fields.Add("Agent", fmt.Sprintf("%s, pid %d, started %s", s.Version, s.PID, ago(s.Started, now)))
	fields.Add("In sync", synced)
	fields.Add("Store", storeText(s.Store, now))
	fields.Add("State", contents(state))
	fields.Add("Ports", fmt.Sprintf("%d on this node", s.Ports))
	fields.Add("Routes", fmt.Sprint(s.Routes))
	fields.Add("Repairs", fmt.Sprint(s.Repairs))
	for _, f := range s.Fabric {
		value := fmt.Sprintf("%s, %s, MTU %d", f.Device, f.Mode, f.MTU)
		if f.Why != "" {
			value += " (" + f.Why + ")"
		}
		fields.Add("Fabric", value)
	}
	if s.Store.WentBack != "" {
		fields.Add("Note", s.Store.WentBack)
	}
	if s.Store.Refused != "" {
		fields.Add("Problem", s.Store.Refused)
	}
	if n := len(s.Store.Waiting); n > 0 {
		fields.Add("Waiting", phrase.Count(n, "port")+" to delete from the store when it is reachable")
	}
	for _, p := range s.Problems {
		text := p.Text
		switch {
		case !p.Retry.IsZero():
			text += fmt.Sprintf(" (%s, retry in %s)", phrase.Count(p.Tries, "failed attempt"), inspect.Duration(max(0, p.Retry.Sub(now))))
		case p.Kind != "":
			text += " (retry after a change)"
		}
		fields.Add("Problem", text)
	}
	return fields
}

// storeText formats the store's address and revision, and since when it is unreachable or refused.
func storeText(s api.Store, now time.Time) string {
	switch {
	case s.Heard.IsZero():
		return s.Address + ", not read yet: " + s.Problem
	case s.Problem != "":
		return fmt.Sprintf("%s, not in use; the state of %s (revision %d) applies: %s", s.Address, ago(s.Heard, now), s.Revision, s.Problem)
	}
	return fmt.Sprintf("%s, revision %d", s.Address, s.Revision)
}

// contents summarises a desired state.
func contents(s model.State) string {
	if len(s.Nodes)+len(s.Networks)+len(s.Ports)+len(s.Routes)+len(s.Gateways)+len(s.Policies) == 0 {
		return "none yet; set one with `vrouter apply -f FILE`"
	}
	return fmt.Sprintf("%s, %s, %s known", phrase.Count(len(s.Nodes), "node"), phrase.Count(len(s.Networks), "network"), phrase.Count(len(s.Ports), "port"))
}

func ago(then, now time.Time) string { return inspect.Duration(now.Sub(then)) + " ago" }

// errorPosition matches the line and column at the start of a parse error.
var errorPosition = regexp.MustCompile(`^:(\d+):(\d+): `)

// withSourceLine adds the line of the state file in which the error is, and a
// caret below its column. An error without a position stays as it is.
func withSourceLine(name, text string, err error) error {
	message, ok := strings.CutPrefix(err.Error(), name)
	position := errorPosition.FindStringSubmatch(message)
	if !ok || position == nil {
		return err
	}
	line, _ := strconv.Atoi(position[1]) // the expression matches digits only
	column, _ := strconv.Atoi(position[2])
	lines := strings.Split(text, "\n")
	if line == 0 || line > len(lines) {
		return err
	}
	at := strings.ReplaceAll(strings.TrimRight(lines[line-1], "\r"), "\t", " ")
	margin := fmt.Sprintf("%5d | ", line)
	mark := strings.Repeat(" ", len(margin)-2) + "| " + strings.Repeat(" ", max(0, column-1)) + "^"
	return fmt.Errorf("%w\n%s%s\n%s", err, margin, at, mark)
}
