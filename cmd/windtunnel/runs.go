package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"windtunnel/internal/cli"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/export"
	"windtunnel/lab/results"
)

func runsCommand() *cobra.Command {
	var db, format string
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the stored runs, the newest first; delete runs",
		Args:  cli.Takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			runs, err := storedRuns(db)
			if err != nil {
				return err
			}
			if format == "json" {
				return export.JSON(cmd.OutOrStdout(), orEmpty(runs))
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "RUN\tNAME\tSUITE\tSTARTED\tSTATUS\tSCENARIOS\tSAMPLES\tFAILED\tSKIPPED\tTESTBED, FLAGS\tNOTE")
			for _, r := range runs {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.ID, cmp.Or(r.Name, "-"), r.Suite, r.Started.Local().Format(time.DateTime), r.Status,
					r.Scenarios, r.Samples, r.Failures, r.Skipped, cmp.Or(phrase.Printable(r.Form.Words()), "-"), cmp.Or(phrase.Printable(r.Note), "-"))
			}
			return w.Flush()
		},
	}
	cmd.AddCommand(runsDelete())
	listFormat(cmd, &format)
	dbFlag(cmd, &db)
	return cmd
}

// storedRuns returns the stored runs: none before the first run, which makes the default store.
func storedRuns(db string) ([]results.RunSummary, error) {
	store, err := openStore(db, true)
	if db == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return store.Runs()
}

func runsDelete() *cobra.Command {
	var db string
	cmd := &cobra.Command{
		Use:   "delete RUN…",
		Short: "Delete runs with all their stored data; the files of their reports remain",
		Example: `  windtunnel runs delete 20261121-093015
  windtunnel runs delete latest`,
		Args: cli.Takes(1, math.MaxInt),
		RunE: func(cmd *cobra.Command, names []string) error {
			store, err := openExisting(db)
			if err != nil {
				return err
			}
			defer store.Close()
			// Resolve all names before deleting any run. Then "latest" is one run, and a
			// misspelt name deletes nothing.
			ids := make([]string, len(names))
			for i, name := range names {
				if name == "" {
					return errors.New("delete a run: the name is empty; `windtunnel runs` lists the runs")
				}
				if ids[i], err = store.Resolve(name); err != nil {
					return err
				}
			}
			slices.Sort(ids)
			for _, id := range slices.Compact(ids) {
				if _, err := store.DeleteRun(id); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "deleted run %s\n", id)
			}
			return nil
		},
	}
	dbFlag(cmd, &db)
	return cmd
}

// openExisting opens a store for writing. It returns an error if there is no store, so
// that a misspelt --db makes no new one.
func openExisting(db string) (*results.Store, error) {
	store, err := openStore(db, true)
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return openStore(db, false)
}
