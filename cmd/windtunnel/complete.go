package main

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"windtunnel/internal/cli"
	"windtunnel/lab/report/compare/source"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/tool"
	"windtunnel/suites"
)

// completer proposes values for an argument or a flag.
type completer = cobra.CompletionFunc

// noFiles makes the shell propose nothing else.
const noFiles = cobra.ShellCompDirectiveNoFileComp

// arguments maps commands to the completion of their arguments. Other commands take none.
var arguments = map[string]completer{
	"run": firstArgument(completeSuites), "matrix": firstArgument(completeSuites), "profile": firstArgument(completeSuites),
	"report": completeReports, "explain": firstArgument(completeRunNames), "runs delete": completeRunNames, "output": completeOutput,
	"compare": atMost(2, listed(completeRunNames)), "trend": firstArgument(completeStoredSuites),
	"lab up": firstArgument(completeSuites), "lab list": firstArgument(completeSuites), "lab exec": firstArgument(completeSuites), "lab down": firstArgument(completeSuites),
	"vm build": words(tool.Names()...), "man": cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
}

// flagValues maps flags to the completion of their values. A flag of type choice needs no entry.
var flagValues = map[string]completer{
	"scenario": listed(completeScenarios), "metric": listed(completeMetrics), "tool": words(tool.Names()...),
	"system": listed(words(system.Names()...)), "workload": listed(words(kinds()...)), "pairs": words("all", "ring"),
	"resume": completeUnfinished, "like": completeRunNames, "testbed": cobra.FixedCompletions([]string{k8sTestbed}, cobra.ShellCompDirectiveDefault), // else files
}

// completions sets the completion of every argument and flag below cmd.
func completions(cmd *cobra.Command) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	switch complete := arguments[path]; {
	case complete != nil:
		cmd.ValidArgsFunction = complete
	case !cmd.DisableFlagParsing && cmd.ValidArgsFunction == nil:
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		complete := flagValues[f.Name]
		if c, ok := f.Value.(cli.Choice); ok {
			complete = words(c.Words...)
		}
		if complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails only for flags that have one
		}
	})
	for _, below := range cmd.Commands() {
		completions(below)
	}
}

// words proposes fixed values.
func words(list ...string) completer { return cobra.FixedCompletions(list, noFiles) }

func firstArgument(complete completer) completer { return atMost(1, complete) }

// atMost proposes values for the first arguments only.
func atMost(most int, complete completer) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, noFiles
		}
		return complete(cmd, args, typed)
	}
}

// listed completes the last value of a list that is separated by commas.
func listed(complete completer) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		values, directive := complete(cmd, args, typed[len(before):])
		values = slices.Clone(values) // a fixed list stays as it is
		for i := range values {
			values[i] = before + values[i]
		}
		return values, directive
	}
}

// completeSuites proposes the suites, and files if no suite fits.
func completeSuites(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return suites.Names(), cobra.ShellCompDirectiveDefault
}

func completeMetrics(*cobra.Command, []string, string) (values []string, _ cobra.ShellCompDirective) {
	for _, info := range sample.Known() {
		values = append(values, string(info.Metric)+"\t"+info.Label)
	}
	return values, noFiles
}

// fromStore calls f with the store of the command line. It never changes a store.
func fromStore(cmd *cobra.Command, f func(*results.Store, []results.RunSummary) []string) ([]string, cobra.ShellCompDirective) {
	path := os.Getenv(variables["db"])
	if flag := cmd.Flags().Lookup("db"); flag != nil {
		path = cmp.Or(flag.Value.String(), path)
	}
	if path == "" {
		var err error
		if path, err = results.DefaultPath(); err != nil {
			return nil, noFiles
		}
	}
	store, err := results.Open(path, results.Options{ReadOnly: true})
	if err != nil {
		return nil, noFiles
	}
	defer store.Close()
	list, err := store.Runs()
	if err != nil {
		return nil, noFiles
	}
	return f(store, list), noFiles
}

// completeRunNames proposes latest, the names and the IDs of the stored runs.
func completeRunNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return fromStore(cmd, func(_ *results.Store, list []results.RunSummary) []string { return runNames(list) })
}

func runNames(list []results.RunSummary) []string {
	var values, names []string
	for _, r := range list {
		if r.Name != "" && !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
			values = append(values, r.Name+"@"+results.Latest+"\tsuite "+r.Suite)
		}
	}
	if len(list) > 0 {
		values = append(values, results.Latest+"\tsuite "+list[0].Suite)
	}
	for _, r := range list {
		values = append(values, r.ID+"\t"+strings.TrimSpace(r.Name+" "+r.Form.Words()+" "+string(r.Status)))
	}
	return values
}

// completeOutput completes the arguments RUN and SCENARIO of `windtunnel output`.
func completeOutput(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return completeRunNames(cmd, args, typed)
	case 1:
		return fromStore(cmd, func(store *results.Store, _ []results.RunSummary) []string {
			data, err := store.Head(args[0])
			if err != nil {
				return nil
			}
			return data.Plan.IDs()
		})
	}
	return nil, noFiles
}

// completeUnfinished proposes the runs that can be resumed.
func completeUnfinished(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return fromStore(cmd, func(_ *results.Store, list []results.RunSummary) (values []string) {
		for _, r := range list {
			if r.Status != sample.Complete && r.Status != sample.Running {
				values = append(values, r.ID+"\t"+string(r.Status))
			}
		}
		return values
	})
}

// completeReports proposes runs; for the format published also the suites that have runs.
func completeReports(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	several := cmd.Flags().Lookup("format").Value.String() == publishedFormat.name
	if len(args) > 0 && !several {
		return nil, noFiles
	}
	return fromStore(cmd, func(_ *results.Store, list []results.RunSummary) []string {
		values := runNames(list)
		if several {
			values = append(source.Suites(list), values...)
		}
		return values
	})
}

func completeStoredSuites(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return fromStore(cmd, func(_ *results.Store, list []results.RunSummary) []string { return source.Suites(list) })
}

// completeScenarios proposes the groups and IDs of the scenarios of the suite or the run that the
// command line names.
func completeScenarios(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, noFiles
	}
	if plan, err := loadPlan(args[0], suite.ExpandOptions{}); err == nil && cmd.Name() != "compare" {
		return suite.NamesFor(plan.IDs()), noFiles
	}
	return fromStore(cmd, func(store *results.Store, list []results.RunSummary) []string {
		run, _, _ := strings.Cut(args[0], ",")
		if i := slices.IndexFunc(list, func(r results.RunSummary) bool { return r.Suite == run }); i >= 0 {
			run = list[i].ID // trend names a suite
		}
		data, err := store.Head(run)
		if err != nil {
			return nil
		}
		return suite.NamesFor(data.Plan.IDs())
	})
}
