package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
	"windtunnel/lab/units"
)

// runOptions are the flags of `windtunnel run`.
type runOptions struct {
	scenarios []string
	tool      string
	duration  time.Duration
	trials    int
	seed      uint64
	dryRun    bool
	db        string
	out       string
	resume    string
}

// attempts at a trial whose failure may pass.
const attempts = 3

func runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run SUITE|FILE.yaml",
		Short: "Measure: run a suite, print a table, write a report",
		Example: `  windtunnel run quick
  windtunnel run quick --scenario bridge,vxlan --trials 10
  windtunnel run my.yaml --dry-run
  windtunnel run --resume latest`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.scenarios, "scenario", nil, "only these: ids, groups (the part before \"/\") or patterns, parted by commas")
	f.StringVar(&o.tool, "tool", "", "use this tool in every scenario")
	f.DurationVar(&o.duration, "duration", 0, "measured time of every trial, such as 2s")
	f.IntVar(&o.trials, "trials", 0, "trials of every scenario")
	f.Uint64Var(&o.seed, "seed", 0, "of the random order (0 = a new one)")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and how long it takes, measure nothing")
	f.StringVar(&o.out, "out", "", "folder for the report (default out/RUN)")
	f.StringVar(&o.resume, "resume", "", "go on with a run that was interrupted or killed")
	dbFlag(cmd, &o.db)
	return cmd
}

func dbFlag(cmd *cobra.Command, db *string) {
	cmd.Flags().StringVar(db, "db", "", "file of the results (default windtunnel.db in the user's data folder)")
}

func (o *runOptions) run(ctx context.Context, out io.Writer, args []string) error {
	if (len(args) == 1) == (o.resume != "") {
		return errors.New("name a suite or a file to run, or --resume a run; `windtunnel suites` lists the suites")
	}
	if o.dryRun && o.resume == "" {
		plan, err := o.plan(args[0])
		if err != nil {
			return err
		}
		facts := probe.Probe()
		_, err = io.WriteString(out, suite.Render(plan)+renderSkips(experiment.Skips(plan, facts)))
		return err
	}
	if o.dryRun {
		return errors.New("--dry-run and --resume do not go together: the run has its plan already")
	}
	if os.Geteuid() != 0 {
		return errors.New("a run makes network namespaces and devices, which needs root: use sudo")
	}
	store, err := openStore(o.db, false)
	if err != nil {
		return err
	}
	defer store.Close()
	s := &runner{options: o, store: store, facts: probe.Probe(), out: out}
	if o.resume != "" {
		err = s.reopen(o.resume)
	} else {
		err = s.open(args[0])
	}
	if err != nil {
		return err
	}
	return s.measure(ctx)
}

func (o *runOptions) plan(name string) (*suite.Plan, error) {
	return loadPlan(name, suite.ExpandOptions{Scenarios: o.scenarios, Tool: o.tool, Duration: o.duration, Trials: o.trials})
}

func openStore(path string, readOnly bool) (*results.Store, error) {
	if path == "" {
		var err error
		if path, err = results.DefaultPath(); err != nil {
			return nil, err
		}
	}
	return results.Open(path, results.Options{ReadOnly: readOnly})
}

// runner is one execution of `windtunnel run`.
type runner struct {
	options *runOptions
	store   *results.Store
	facts   *probe.Facts
	out     io.Writer
	plan    *suite.Plan
	run     sample.Run
	done    map[experiment.Trial]bool
	tried   map[experiment.Trial]int
}

// open begins a new run.
func (s *runner) open(name string) error {
	plan, err := s.options.plan(name)
	if err != nil {
		return err
	}
	now := time.Now()
	seed := s.options.seed
	if seed == 0 {
		seed = rand.Uint64()>>11 + 1 // as long as JSON's numbers are exact
	}
	s.plan = plan
	s.run = sample.Run{
		ID: now.Format("20060102-150405") + "-" + plan.Suite, Suite: plan.Suite, Title: plan.Title,
		Started: now, Seed: seed, Status: sample.Running,
		Environment: s.environment(), Skipped: experiment.Skips(plan, s.facts),
	}
	return s.store.CreateRun(s.run, *plan)
}

// reopen goes on with a run where it was left.
func (s *runner) reopen(name string) error {
	data, err := s.store.Load(name)
	if err != nil {
		return err
	}
	if data.Run.Status == sample.Complete {
		return fmt.Errorf("run %s is complete: there is nothing to resume", data.Run.ID)
	}
	done, err := s.store.Done(data.Run.ID)
	if err != nil {
		return err
	}
	tried, err := s.store.Attempts(data.Run.ID)
	if err != nil {
		return err
	}
	s.plan, s.run = &data.Plan, data.Run
	s.run.Status = sample.Running
	s.done, s.tried = map[experiment.Trial]bool{}, map[experiment.Trial]int{}
	for t := range done {
		s.done[experiment.Trial(t)] = true
	}
	for t, n := range tried {
		s.tried[experiment.Trial(t)] = n
	}
	return s.store.UpdateRun(s.run)
}

func (s *runner) environment() sample.Environment {
	env := s.facts.Environment(experiment.Programs(s.plan))
	env.Version, env.Revision = version, revision
	return env
}

// measure runs the plan, closes the run whatever happened, and reports.
func (s *runner) measure(ctx context.Context) error {
	lock, err := takeLock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if left, err := netns.Clean(netns.RunPrefix); err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	} else if n := len(left.Namespaces); n > 0 {
		fmt.Fprintf(os.Stderr, "removed %d network namespaces and %d processes that a killed run had left\n", n, len(left.Processes))
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the windtunnel program: %w", err)
	}
	fmt.Fprintf(s.out, "run %s: %d scenarios × %d trials, about %s\n%s", s.run.ID, len(s.plan.Scenarios)-len(s.run.Skipped), s.plan.Trials,
		units.FormatDuration(float64(s.plan.Estimate())), renderSkips(s.run.Skipped))
	view := newView(s.plan, os.Stderr, term.IsTerminal(int(os.Stderr.Fd())))
	e := &experiment.Experiment{
		Plan: s.plan, ID: netns.RunID(os.Getpid()), Seed: s.run.Seed, Self: self, Attempts: attempts,
		Executor: &netns.Executor{CPUs: s.facts.UsableCPUs(), Agent: []string{self, "agent"}},
		Skipped:  s.run.Skipped, Done: s.done, Tried: s.tried,
		Recorder: recorder{s.store, s.run.ID},
		Observer: observers{view, &settler{runner: s}},
	}
	runErr := e.Run(ctx)
	view.Close()
	if err := s.close(runErr); err != nil {
		return errors.Join(runErr, err)
	}
	return errors.Join(s.report(), runErr)
}

// close records how the run ended.
func (s *runner) close(runErr error) error {
	s.run.Finished = time.Now()
	s.run.Status = sample.Complete
	if runErr != nil {
		s.run.Status = sample.Stopped
	}
	return s.store.UpdateRun(s.run)
}

// recorder puts samples into the store.
type recorder struct {
	store *results.Store
	run   string
}

func (r recorder) Record(s sample.Sample) error {
	_, err := r.store.AppendSample(r.run, s)
	return err
}

func renderSkips(skips map[string]string) string {
	var b strings.Builder
	for _, id := range sortedKeys(skips) {
		fmt.Fprintf(&b, "skipped %s: %s\n", id, skips[id])
	}
	return b.String()
}
