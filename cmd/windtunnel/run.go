package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"windtunnel/lab/condition"
	"windtunnel/lab/experiment"
	"windtunnel/lab/meter"
	"windtunnel/lab/phrase"
	"windtunnel/lab/probe"
	"windtunnel/lab/profile"
	"windtunnel/lab/report/model"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
	"windtunnel/lab/units"
)

// runOptions are the flags of `windtunnel run`.
type runOptions struct {
	command   string // subcommand and the arguments that affect the figures, quoted for a shell
	line      oneLine
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

// attempts is the maximum number of attempts of each trial.
const attempts = 3

func runCommand() *cobra.Command {
	var o runOptions
	profiled := new(bool)
	cmd := &cobra.Command{
		Use:   "run SUITE|FILE.yaml",
		Short: "Run a suite: measure, print a table, write a report",
		Long: `Run a suite: measure, print a table, write a report.

Without a suite, --system describes the experiment: every system carries every
--workload, and each is compared with the first system.`,
		Example: `  windtunnel run quick
  windtunnel run contrail-windows --short
  windtunnel run quick --scenario bridge,vxlan --trials 10
  windtunnel run quick --precision 2%
  windtunnel run my.yaml --dry-run
  windtunnel run --system bridge,vxlan --workload tcp_stream --streams 4
  windtunnel run --resume latest`,
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.command = recorded(cmd, args)
			if err := errors.Join(resumable(cmd), aboveZero(cmd, "trials", "max-trials", "max-time", "duration")); err != nil {
				return err
			}
			if *profiled {
				o.profiling = experiment.Profiling{Rate: profile.DefaultRate, Blocks: profiledBlocks}
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), args)
		},
	}
	f := cmd.Flags()
	o.choices(cmd)
	o.line.flags(cmd)
	f.IntVar(&o.trials, "trials", 0, "Trials of each scenario (with --precision: the minimum)")
	f.StringVar(&o.precision, "precision", "", "Repeat until the throughput and the CPU of both sides are known to this precision, such as 2%")
	f.IntVar(&o.maxTrials, "max-trials", 0, "Maximum trials per scenario (needs --precision)")
	f.DurationVar(&o.maxTime, "max-time", 0, "Maximum time of the run, such as 20m (needs --precision)")
	f.BoolVar(&o.dryRun, "dry-run", false, "Print the plan and its duration, and measure nothing")
	f.BoolVar(profiled, "profile", false, fmt.Sprintf("Run each scenario of the first %d blocks a second time, with a CPU profiler", profiledBlocks))
	f.StringVar(&o.resume, "resume", "", "Resume an interrupted or killed run by its ID, with its plan and gates (--gates sets other gates for the remaining trials)")
	return cmd
}

// resumable refuses flags that a resumed run cannot follow: it keeps its plan,
// its order, its CPUs and its profiler.
func resumable(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("resume") {
		return nil
	}
	var others []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"resume", "gates", "db", "out"}, f.Name) {
			others = append(others, "--"+f.Name)
		}
	})
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%s and --resume do not go together: a resumed run keeps its plan, order, CPUs and profiler; omit the flags, or start a new run", strings.Join(others, ", "))
}

// recorded returns the subcommand with the arguments that affect the figures,
// quoted for a shell. The run stores --gates and --seed in other fields.
func recorded(cmd *cobra.Command, args []string) string {
	words := append([]string{cmd.Name()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		switch {
		case slices.Contains([]string{"db", "out", "resume", "dry-run", "gates", "seed"}, f.Name) || value == "false":
		case value == "true":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, value)
		}
	})
	return phrase.Shell(words)
}

// aboveZero returns an error for a given flag whose value is 0. Without the flag,
// 0 stands for the suite's own value.
func aboveZero(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && (f.Value.String() == "0" || f.Value.String() == "0s") {
			return fmt.Errorf("--%s %s: give a value above 0, or omit the flag to use the suite's value", name, f.Value)
		}
	}
	return nil
}

// choices adds the flags that all measuring commands share.
func (o *runOptions) choices(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.short, "short", false, "Run the suite's short form, which takes a few minutes")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "Run only these scenarios: IDs, groups (the part before \"/\") or patterns, separated by commas")
	f.StringVar(&o.tool, "tool", "", "Use this traffic tool in every scenario")
	f.DurationVar(&o.duration, "duration", 0, "Measured time of each trial, such as 2s")
	f.Uint64Var(&o.seed, "seed", 0, "Seed of the random order (0: generate one)")
	f.StringVar(&o.gates, "gates", "", "Treatment of disturbed trials: enforce (the default) repeats them and does not count them, warn counts them with a flag")
	o.cpus.flags(cmd)
	f.StringVar(&o.out, "out", "", "Directory of the report (default out/RUN)")
	dbFlag(cmd, &o.db)
}

func dbFlag(cmd *cobra.Command, db *string) {
	cmd.Flags().StringVar(db, "db", "", "File of the results (default windtunnel.db in the user's data directory)")
}

func (o *runOptions) run(ctx context.Context, out io.Writer, args []string) error {
	if err := o.oneSource(args); err != nil {
		return err
	}
	if o.gates != "" && o.gates != "enforce" && o.gates != "warn" {
		return fmt.Errorf("--gates %s: choose enforce or warn", o.gates)
	}
	var plan *suite.Plan
	if o.resume == "" {
		var err error
		if plan, err = o.plan(args); err != nil {
			return err
		}
	}
	if o.dryRun && plan != nil {
		facts := probe.Probe()
		var err error
		if o.placement, err = o.cpus.place(facts); err != nil {
			return err
		}
		plan.Skipped = experiment.Skips(plan, o.executor(facts), facts)
		_, err = io.WriteString(out, suite.Render(plan)+renderSkips(plan.Skipped))
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("a measurement makes network namespaces and devices, which needs root: use sudo")
	}
	lock, err := takeLock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	store, err := o.openStore()
	if err != nil {
		return err
	}
	defer store.Close()
	s := &runner{options: o, store: store, facts: probe.Probe(), out: out}
	if o.resume != "" {
		if err := s.reopen(o.resume); err != nil {
			return err
		}
	}
	if o.placement, err = o.cpus.place(s.facts); err != nil {
		return err
	}
	if o.resume == "" {
		if err := s.open(plan); err != nil {
			return err
		}
	}
	return s.measure(ctx)
}

// executor returns the executor for the usable CPUs, which --cpus assigns.
func (o *runOptions) executor(f *probe.Facts) *netns.Executor {
	x := executorHere(f)
	x.Given = o.placement.layout
	return x
}

// executorHere returns the executor for testbeds on this machine.
func executorHere(f *probe.Facts) *netns.Executor { return &netns.Executor{CPUs: f.UsableCPUs()} }

// oneSource returns an error unless exactly one of suite, --system and --resume is
// given.
func (o *runOptions) oneSource(args []string) error {
	switch {
	case len(args) > 0 && o.resume != "":
		return fmt.Errorf("%s and --resume do not go together: a resumed run keeps its plan; omit one of them", args[0])
	case len(args) == 0 && o.resume == "" && o.line.empty():
		return errors.New("give a suite or a file (`windtunnel suites` lists the suites), or --system, or --resume")
	case len(args) > 0 && !o.line.empty():
		return fmt.Errorf("%s and %s do not go together: --system describes an experiment without a suite; omit one of them", args[0], o.line.first())
	}
	return nil
}

func (o *runOptions) plan(args []string) (*suite.Plan, error) {
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
	if len(args) == 0 {
		return o.line.plan(opts)
	}
	return loadPlan(args[0], opts)
}

// openStore opens the store for a run. A new run may make the store. A resumed run needs
// an existing one: then a misspelt --db is an error.
func (o *runOptions) openStore() (*results.Store, error) {
	if o.resume != "" {
		return openExisting(o.db)
	}
	return openStore(o.db, false)
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
		// An earlier version wrote this store. Opening it for writing updates its
		// schema.
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
	history []sample.Sample // samples stored before the run was resumed
	counted int             // number of samples whose figures count, with history
}

// open makes the run of a plan, and stores it.
func (s *runner) open(plan *suite.Plan) error {
	now := time.Now()
	seed := s.options.seed
	if seed == 0 {
		seed = rand.Uint64()>>11 + 1 // at most 2^53, so that JSON readers keep it exact
	}
	s.plan = plan
	skipped := experiment.Skips(plan, s.options.executor(s.facts), s.facts)
	if why := nothingRuns(plan, skipped); why != "" {
		fmt.Fprint(os.Stderr, why)
		return exitNothing
	}
	s.run = sample.Run{
		Suite: plan.Suite, Title: plan.Title, Started: now, Seed: seed, Status: sample.Running,
		Options: sample.Options{
			Command: s.options.command,
			Lenient: s.options.gates == "warn", ProfileRate: s.options.profiling.Rate, ProfileBlocks: s.options.profiling.Blocks,
			CPUs: s.options.cpus.cpus, CPUDistance: s.options.cpus.distance,
		},
		Environment: s.environment(), Skipped: skipped,
	}
	return s.create(now.Format("20060102-150405") + "-" + plan.Suite)
}

// create stores the run under an ID. If the store has this ID already, create appends a
// number to the ID.
func (s *runner) create(id string) error {
	s.run.ID = id
	for n := 2; ; n++ {
		err := s.store.CreateRun(s.run, *s.plan)
		if !errors.Is(err, results.ErrTaken) {
			return err
		}
		s.run.ID = fmt.Sprintf("%s-%d", id, n)
	}
}

// reopen loads an unfinished run, so that measure can continue it.
func (s *runner) reopen(name string) error {
	data, err := s.store.Load(name)
	if err != nil {
		return err
	}
	if data.Run.Status == sample.Complete {
		return fmt.Errorf("resume run %s: it is complete; start a new run", data.Run.ID)
	}
	s.plan, s.run = &data.Plan, data.Run
	estimable(s.plan)
	s.run.Status = sample.Running
	if s.options.gates != "" {
		s.run.Options.Lenient = s.options.gates == "warn"
	}
	s.options.cpus = cpuOptions{s.run.Options.CPUs, cmp.Or(s.run.Options.CPUDistance, string(condition.Auto))}
	s.history = data.Samples
	for i := range s.history {
		s.count(&s.history[i])
	}
	return s.store.UpdateRun(s.run)
}

// count adds 1 to counted if the sample's figures count.
func (s *runner) count(smp *sample.Sample) {
	if smp.Counts() {
		s.counted++
	}
}

func (s *runner) environment() sample.Environment {
	env := s.facts.Environment(experiment.Programs(s.plan))
	env.Version, env.Revision = version, revision
	env.CPUChoice = s.options.placement.choice
	env.CPUMeter = meter.IdleMethod(meter.FineIdle())
	return env
}

// measure runs the plan, stores the end of the run, and writes the report. It stores
// and reports also after an error of the run.
func (s *runner) measure(ctx context.Context) error {
	if left, err := netns.Clean(netns.RunPrefix); err != nil {
		return fmt.Errorf("remove the network namespaces and processes of an earlier run: %w", err)
	} else if n := len(left.Namespaces); n > 0 {
		fmt.Fprintf(os.Stderr, "removed %s of a killed run and ended its processes (%d)\n", phrase.Count(n, "network namespace"), len(left.Processes))
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the windtunnel program: %w", err)
	}
	if err := makeReportDir(s.reportDir()); err != nil {
		return err
	}
	s.plan.Skipped = s.run.Skipped
	fmt.Fprintf(s.out, "run %s: %s × %s, about %s, at worst %s\n%s", s.run.ID, phrase.Count(len(s.plan.Scenarios)-len(s.run.Skipped), "scenario"), s.trials(),
		units.FormatDuration(s.withProfiling(s.plan.Estimate())), units.FormatDuration(s.withProfiling(s.plan.WorstCase())), renderSkips(s.run.Skipped))
	fmt.Fprint(os.Stderr, busy(ctx, s.facts.UsableCPUs()))
	x := s.options.executor(s.facts)
	x.Agent = []string{self, "agent"}
	view := newView(s.plan, os.Stderr, term.IsTerminal(int(os.Stderr.Fd())))
	e := &experiment.Experiment{
		Plan: s.plan, ID: netns.RunID(os.Getpid()), Seed: s.run.Seed, Self: self, Attempts: attempts,
		Executor: x,
		Skipped:  s.run.Skipped, History: s.history, Lenient: s.run.Options.Lenient,
		Profiling: experiment.Profiling{Rate: s.run.Options.ProfileRate, Blocks: s.run.Options.ProfileBlocks},
		FineIdle:  s.run.Environment.CPUMeter == meter.IdleMethod(true),
		Distance:  condition.Choice(s.options.cpus.distance),
		Imprecise: s.imprecise,
		Adjust:    s.run.Options.Adjusted,
		Adjusting: s.adjust,
		Recorder:  s,
		Observer:  observers{view, newSettler(s)},
	}
	runErr := e.Run(ctx)
	view.Close()
	if err := s.close(runErr); err != nil {
		return errors.Join(runErr, err)
	}
	if errors.Is(runErr, errInterrupted) {
		runErr = fmt.Errorf("%w: the finished trials are stored; continue with `windtunnel run --resume %s`", runErr, s.run.ID)
	}
	nothing := "nothing was measured: no trial counts"
	if errors.Is(runErr, experiment.ErrNoneCounts) {
		nothing = "the run stopped after the first block, because none of its trials counts"
		runErr = nil
	}
	if err := errors.Join(s.report(), runErr); err != nil || s.counted > 0 {
		return err
	}
	fmt.Fprintln(os.Stderr, "windtunnel:", nothing)
	return exitNothing
}

// withProfiling returns a duration of the plan with the time of the profiled trials, in
// nanoseconds. With --profile the first blocks run each scenario a second time.
func (s *runner) withProfiling(d time.Duration) float64 {
	o := s.run.Options
	if o.ProfileRate == 0 {
		return float64(d)
	}
	return float64(d) * (1 + float64(min(o.ProfileBlocks, s.plan.Trials))/float64(s.plan.Trials))
}

// trials describes the number of trials of each scenario.
func (s *runner) trials() string {
	if stop := s.plan.Stop; stop.Precision > 0 {
		return fmt.Sprintf("%d to %d trials until ±%s", s.plan.Trials, stop.MaxTrials, units.FormatPercent(stop.Precision))
	}
	return phrase.Count(s.plan.Trials, "trial")
}

// close stores the end and the status of the run.
func (s *runner) close(runErr error) error {
	s.run.Finished = time.Now()
	switch {
	case runErr != nil && !errors.Is(runErr, experiment.ErrNoneCounts):
		s.run.Status = sample.Stopped
	case s.counted == 0:
		s.run.Status = sample.Empty
	default:
		s.run.Status = sample.Complete
	}
	return s.store.UpdateRun(s.run)
}

// imprecise reports whether more trials are needed for the plan's precision.
func (s *runner) imprecise(samples []sample.Sample) bool {
	choice := condition.Choice(s.run.Options.CPUDistance)
	if s.run.Options.Adjusted {
		samples = condition.Adjust(samples, choice)
	}
	return len(model.Imprecision(*s.plan, samples, choice)) > 0
}

// adjust prints and stores that the figures are adjusted for the state of the machine.
func (s *runner) adjust() error {
	fmt.Fprintln(os.Stderr, "the host moves this machine's CPUs, or steals their time, too often to measure in one state: the figures are adjusted for CPU distance and steal")
	s.run.Options.Adjusted = true
	return s.store.UpdateRun(s.run)
}

// Record implements experiment.Recorder.
func (s *runner) Record(smp sample.Sample) error {
	s.count(&smp)
	_, err := s.store.AppendSample(s.run.ID, smp)
	return err
}

// nothingRuns returns the reasons if no scenario of the plan can run; "" if at
// least one can.
func nothingRuns(plan *suite.Plan, skips map[string]string) string {
	if len(skips) < len(plan.Scenarios) {
		return ""
	}
	return "windtunnel: no scenario can run on this machine:\n" + renderSkips(skips)
}

func renderSkips(skips map[string]string) string {
	var b strings.Builder
	for _, group := range groupSkips(skips) {
		fmt.Fprintf(&b, "skipped %s: %s\n", strings.Join(group.ids, ", "), group.why)
	}
	return b.String()
}

// skipGroup is a reason with the scenarios that cannot run because of it.
type skipGroup struct {
	why string
	ids []string
}

func groupSkips(skips map[string]string) (groups []skipGroup) {
	ids := map[string][]string{}
	for _, id := range sortedKeys(skips) {
		why := phrase.Once(skips[id], "; ")
		ids[why] = append(ids[why], id)
	}
	for _, why := range sortedKeys(ids) {
		groups = append(groups, skipGroup{why, ids[why]})
	}
	return groups
}
