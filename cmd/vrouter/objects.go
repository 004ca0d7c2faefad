package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

// objects makes the commands create, list, get and delete for one kind of object.
type objects[O any] struct {
	noun     string
	all      func(*api.Client, context.Context) ([]O, error)
	name     func(O) string
	table    func([]O) inspect.Table
	fields   func(O) inspect.Fields                      // of one object; nil: the columns of its row
	put      func(*api.Client, context.Context, O) error // for create
	remove   func(*api.Client, context.Context, string) error
	complete completer
}

// create completes a command that writes an object. Flags set the fields of o, and the argument sets
// its name. The sentence that the command prints ends with contents.
func (k objects[O]) create(cmd *cobra.Command, o *O, name *string, contents func() string) *cobra.Command {
	cmd.Aliases, cmd.Args = []string{"set"}, cli.Takes(1, 1)
	cmd.RunE = withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
		*name = args[0]
		if err := k.put(c, ctx, *o); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), k.noun, *name, contents())
		return nil
	})
	return cmd
}

func (k objects[O]) list() *cobra.Command {
	return listing(&cobra.Command{
		Use:     "list",
		Short:   fmt.Sprintf("List the %s of the whole fleet", phrase.Plural(k.noun)),
		Aliases: []string{"ls"},
		Example: fmt.Sprintf("  vrouter %s list\n  vrouter %s list -o json", k.noun, k.noun),
	}, k.all, k.table)
}

func (k objects[O]) get() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:               "get NAME",
		Short:             fmt.Sprintf("Show one %s with all its fields", k.noun),
		Example:           fmt.Sprintf("  vrouter %s get NAME -o json", k.noun),
		Args:              cli.Takes(1, 1),
		ValidArgsFunction: firstArgument(k.complete),
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			rows, err := k.all(c, ctx)
			if err != nil {
				return err
			}
			o, err := find(k.noun, args[0], rows, k.name)
			if err != nil {
				return err
			}
			fields := k.table([]O{o}).Fields(0)
			if k.fields != nil {
				fields = k.fields(o)
			}
			return describe(cmd.OutOrStdout(), output, o, fields)
		}),
	}
	outputFlag(cmd, &output)
	return cmd
}

func (k objects[O]) delete(short string) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME…",
		Short:             short,
		Aliases:           []string{"rm"},
		Example:           fmt.Sprintf("  vrouter %s delete NAME", k.noun),
		Args:              cli.Takes(1, math.MaxInt),
		ValidArgsFunction: k.complete,
		RunE: withAgent(func(ctx context.Context, cmd *cobra.Command, c *api.Client, args []string) error {
			return deleteAll(ctx, cmd, k.noun, args, func(ctx context.Context, name string) error { return k.remove(c, ctx, name) })
		}),
	}
}

func deleteAll(ctx context.Context, cmd *cobra.Command, noun string, names []string, remove func(context.Context, string) error) error {
	for _, name := range names {
		if err := remove(ctx, name); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "deleted %s %s\n", noun, name)
	}
	return nil
}

// find finds an object by its name. The error suggests similar names.
func find[O any](noun, name string, all []O, nameOf func(O) string) (O, error) {
	var names []string
	for _, o := range all {
		if nameOf(o) == name {
			return o, nil
		}
		names = append(names, nameOf(o))
	}
	var none O
	return none, fmt.Errorf("there is no %s %q; %s", noun, name, phrase.Meant(phrase.Plural(noun), name, names))
}
