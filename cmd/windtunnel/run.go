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

	"windtunnel/lab/distance"
	"windtunnel/lab/experiment"
	"windtunnel/lab/meter"
	"windtunnel/lab/meter/foreign"
	"windtunnel/lab/probe"
	"windtunnel/lab/profile"
	"windtunnel/lab/report"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed/netns"
	"windtunnel/lab/units"
)

// runOptions are the flags of `windtunnel run`.
type runOptions struct {
	short     bool
	scenarios []string
	tool      string
	duration  time.Duration
	trials    int
	precision string
	maxTrials int
	maxTime   time.Duration
	seed      uint64
	dryRun    bool
	db        string
	out       string
	resume    string
	profiling experiment.Profiling
	gates     string
	cpus      cpuOptions
	placement placement
}

// attempts at a trial whose failure may pass.
const attempts = 3

func runCommand() *cobra.Command {
	var o runOptions
	profiled := new(bool)
	cmd := &cobra.Command{
		Use:   "run SUITE|FILE.yaml",
		Short: "Measure: run a suite, print a table, write a report",
		Example: `  windtunnel run quick
  windtunnel run contrail-windows --short
  windtunnel run quick --scenario bridge,vxlan --trials 10
  windtunnel run quick --precision 2%
  windtunnel run my.yaml --dry-run
  windtunnel run --resume latest`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if *profiled {
				o.profiling = experiment.Profiling{Rate: profile.DefaultRate, Blocks: profiledBlocks}
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	o.choices(cmd)
	f.IntVar(&o.trials, "trials", 0, "trials of every scenario; with a precision the fewest")
	f.StringVar(&o.precision, "precision", "", "go on until throughput and both sides' CPU are known to within this, such as 2%")
	f.IntVar(&o.maxTrials, "max-trials", 0, "of a run with a precision: trials of every scenario at most")
	f.DurationVar(&o.maxTime, "max-time", 0, "of a run with a precision: how long it may take, such as 20m")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and how long it takes, measure nothing")
	f.BoolVar(profiled, "profile", false, fmt.Sprintf("in the first %d blocks run every scenario once more with a CPU profiler", profiledBlocks))
	f.StringVar(&o.resume, "resume", "", "go on with a run that was interrupted or killed")
	return cmd
}

// choices are the flags that every command has which measures.
func (o *runOptions) choices(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.short, "short", false, "the suite's short form, of a few minutes")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "only these: ids, groups (the part before \"/\") or patterns, parted by commas")
	f.StringVar(&o.tool, "tool", "", "use this tool in every scenario")
	f.DurationVar(&o.duration, "duration", 0, "measured time of every trial, such as 2s")
	f.Uint64Var(&o.seed, "seed", 0, "of the random order (0 = a new one)")
	f.StringVar(&o.gates, "gates", "enforce", "enforce: a trial measured under invalid conditions is repeated, and does not count; warn: it counts, with a flag")
	o.cpus.flags(cmd)
	f.StringVar(&o.out, "out", "", "folder for the report (default out/RUN)")
	dbFlag(cmd, &o.db)
}

func dbFlag(cmd *cobra.Command, db *string) {
	cmd.Flags().StringVar(db, "db", "", "file of the results (default windtunnel.db in the user's data folder)")
}

func (o *runOptions) run(ctx context.Context, out io.Writer, args []string) error {
	if (len(args) == 1) == (o.resume != "") {
		return errors.New("name a suite or a file to run, or --resume a run; `windtunnel suites` lists the suites")
	}
	if o.short && o.resume != "" {
		return errors.New("--short and --resume do not go together: the run has its plan already")
	}
	if o.gates != "enforce" && o.gates != "warn" {
		return fmt.Errorf("--gates %q is unknown; there are enforce and warn", o.gates)
	}
	var plan *suite.Plan
	if o.resume == "" {
		var err error
		if plan, err = o.plan(args[0]); err != nil {
			return err
		}
	}
	if o.dryRun && plan != nil {
		facts := probe.Probe()
		if _, err := o.cpus.place(facts); err != nil {
			return err
		}
		_, err := io.WriteString(out, suite.Render(plan)+renderSkips(experiment.Skips(plan, facts)))
		return err
	}
	if o.dryRun {
		return errors.New("--dry-run and --resume do not go together: the run has its plan already")
	}
	if os.Geteuid() != 0 {
		return errors.New("a run makes network namespaces and devices, which needs root: use sudo")
	}
	lock, err := takeLock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	store, err := openStore(o.db, false)
	if err != nil {
		return err
	}
	defer store.Close()
	s := &runner{options: o, store: store, facts: probe.Probe(), out: out}
	if o.placement, err = o.cpus.place(s.facts); err != nil {
		return err
	}
	if o.resume != "" {
		err = s.reopen(o.resume)
	} else {
		err = s.open(plan)
	}
	if err != nil {
		return err
	}
	return s.measure(ctx)
}

func (o *runOptions) plan(name string) (*suite.Plan, error) {
	opts := suite.ExpandOptions{
		Short: o.short, Scenarios: o.scenarios, Tool: o.tool, Duration: o.duration,
		Trials: o.trials, MaxTrials: o.maxTrials, MaxTime: o.maxTime,
	}
	if o.precision != "" {
		var err error
		if opts.Precision, err = units.ParsePercent(o.precision); err != nil {
			return nil, fmt.Errorf("--precision: %w", err)
		}
	}
	return loadPlan(name, opts)
}

func openStore(path string, readOnly bool) (*results.Store, error) {
	if path == "" {
		var err error
		if path, err = results.DefaultPath(); err != nil {
			return nil, err
		}
	}
	store, err := results.Open(path, results.Options{ReadOnly: readOnly})
	if readOnly && errors.Is(err, results.ErrOlder) {
		// An earlier version wrote it: one who may write brings it up to date.
		if store, err := results.Open(path, results.Options{}); err == nil {
			return store, nil
		}
	}
	return store, err
}

// runner is one execution of `windtunnel run`.
type runner struct {
	options *runOptions
	store   *results.Store
	facts   *probe.Facts
	out     io.Writer
	plan    *suite.Plan
	run     sample.Run
	history []sample.Sample // of earlier parts of the run
}

// open begins a new run.
func (s *runner) open(plan *suite.Plan) error {
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
	s.plan, s.run = &data.Plan, data.Run
	s.plan.SetUp = system.SetUps()
	s.run.Status = sample.Running
	s.history = data.Samples
	return s.store.UpdateRun(s.run)
}

func (s *runner) environment() sample.Environment {
	env := s.facts.Environment(experiment.Programs(s.plan))
	env.Version, env.Revision = version, revision
	env.CPUChoice = s.options.placement.choice
	env.CPUMeter = meter.IdleMethod(meter.FineIdle())
	return env
}

// measure runs the plan, closes the run whatever happened, and reports.
func (s *runner) measure(ctx context.Context) error {
	if left, err := netns.Clean(netns.RunPrefix); err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	} else if n := len(left.Namespaces); n > 0 {
		fmt.Fprintf(os.Stderr, "removed %d network namespaces and %d processes that a killed run had left\n", n, len(left.Processes))
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the windtunnel program: %w", err)
	}
	fmt.Fprintf(s.out, "run %s: %d scenarios × %s, about %s, at worst %s\n%s", s.run.ID, len(s.plan.Scenarios)-len(s.run.Skipped), s.trials(),
		units.FormatDuration(float64(s.plan.Estimate())), units.FormatDuration(float64(s.plan.WorstCase())), renderSkips(s.run.Skipped))
	watch, done := watchMachine(s.facts.UsableCPUs())
	defer done()
	view := newView(s.plan, os.Stderr, term.IsTerminal(int(os.Stderr.Fd())))
	e := &experiment.Experiment{
		Plan: s.plan, ID: netns.RunID(os.Getpid()), Seed: s.run.Seed, Self: self, Attempts: attempts,
		Executor: &netns.Executor{CPUs: s.facts.UsableCPUs(), Layout: s.options.placement.layout, Agent: []string{self, "agent"}},
		Skipped:  s.run.Skipped, History: s.history, Profiling: s.options.profiling,
		FineIdle: s.run.Environment.CPUMeter == meter.IdleMethod(true),
		Distance: distance.Choice(s.options.cpus.distance),
		Watch:    watch, Lenient: s.options.gates == "warn",
		Imprecise: func(samples []sample.Sample) bool { return len(report.Imprecision(*s.plan, samples)) > 0 },
		Recorder:  recorder{s.store, s.run.ID},
		Observer:  observers{view, newSettler(s)},
	}
	runErr := e.Run(ctx)
	view.Close()
	if err := s.close(runErr); err != nil {
		return errors.Join(runErr, err)
	}
	return errors.Join(s.report(), runErr)
}

// trials says how often each scenario runs.
func (s *runner) trials() string {
	if stop := s.plan.Stop; stop.Precision > 0 {
		return fmt.Sprintf("%d to %d trials until ±%s", s.plan.Trials, stop.MaxTrials, units.FormatPercent(stop.Precision))
	}
	return fmt.Sprintf("%d trials", s.plan.Trials)
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
	for _, group := range groupSkips(skips) {
		fmt.Fprintf(&b, "skipped %s: %s\n", strings.Join(group.ids, ", "), group.why)
	}
	return b.String()
}

// skipGroup is the scenarios that one reason stops.
type skipGroup struct {
	why string
	ids []string
}

func groupSkips(skips map[string]string) (groups []skipGroup) {
	ids := map[string][]string{}
	for _, id := range sortedKeys(skips) {
		ids[skips[id]] = append(ids[skips[id]], id)
	}
	for _, why := range sortedKeys(ids) {
		groups = append(groups, skipGroup{why, ids[why]})
	}
	return groups
}

// watchMachine meters what other programs take of the CPUs, where the kernel
// allows that.
func watchMachine(cpus []int) (experiment.Watch, func()) {
	m, err := foreign.Open(cpus)
	if err != nil {
		return experiment.Watch{Why: err.Error()}, func() {}
	}
	return experiment.Watch{Foreign: m}, m.Close
}
