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

	"windtunnel/internal/cli"
	"windtunnel/internal/phrase"
	"windtunnel/internal/stopsignal"
	"windtunnel/lab/condition"
	"windtunnel/lab/experiment"
	"windtunnel/lab/meter"
	"windtunnel/lab/probe"
	"windtunnel/lab/profile"
	"windtunnel/lab/report/verdicts"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
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
	quiet     bool
	db        string
	out       string
	name      string
	note      string
	resume    string
	profiling experiment.Profiling
	gates     string
	cpus      cpuOptions
	testbed   string        // hosts file, or k8sTestbed; "" for a testbed on this machine
	hosts     []sample.Host // those hosts of the hosts file that the run uses
	lost      []string      // hosts of a resumed run which the hosts file does not have any more
	cluster   sample.Cluster
	matrix    matrixOptions
}

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
  windtunnel run quick --name main --note 'after the update of the kernel'
  windtunnel run my.yaml --dry-run
  windtunnel run --system bridge,vxlan --workload tcp_stream --streams 4
  windtunnel run quick --testbed hosts.yaml
  windtunnel run k8s-cni --testbed k8s
  windtunnel run k8s-cni --testbed k8s --image REG/windtunnel:TAG
  windtunnel run --resume latest`,
		Args: cli.Takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.command = recorded(cmd, args)
			if err := cli.Misuse(cmp.Or(resumable(cmd), clusterOnly(cmd, o.testbed), aboveZero(cmd, "trials", "max-trials", "max-time", "duration", "streams"), nonEmptyLists(cmd))); err != nil {
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
	o.cpus.flags(cmd)
	o.line.flags(cmd)
	f.IntVar(&o.trials, "trials", 0, "Trials of each scenario (with --precision: the minimum)")
	f.Var((*nonEmpty)(&o.precision), "precision", "Repeat until the throughput and the CPU of both sides are known to this precision, such as 2%")
	f.IntVar(&o.maxTrials, "max-trials", 0, "Maximum trials per scenario (needs --precision)")
	f.DurationVar(&o.maxTime, "max-time", 0, "Maximum time of the run, such as 20m (needs --precision)")
	f.BoolVar(&o.dryRun, "dry-run", false, "Print the plan and its duration, and measure nothing")
	f.BoolVar(profiled, "profile", false, fmt.Sprintf("Run each scenario of the first %d blocks a second time, with a CPU profiler", profiledBlocks))
	f.Var((*nonEmpty)(&o.testbed), "testbed", "Hosts file: measure between these hosts, reached by SSH, and not on this machine (docs/hosts.md); k8s: between nodes of a Kubernetes cluster (docs/kubernetes.md)")
	imageFlags(cmd, &o.cluster, "the first usable ones")
	f.Var((*nonEmpty)(&o.resume), "resume", "Resume an interrupted or killed run by its ID, with its plan and gates (--gates sets other gates for the remaining trials)")
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
		if !slices.Contains([]string{"resume", "gates", "db", "out", "quiet"}, f.Name) {
			others = append(others, "--"+f.Name)
		}
	})
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%s and --resume exclude each other: a resumed run keeps its plan, order, CPUs and profiler; omit the flags, or start a new run", strings.Join(others, ", "))
}

// recorded returns the subcommand with the arguments that affect the figures,
// quoted for a shell. The run stores --gates, --seed, --name and --note in other fields.
func recorded(cmd *cobra.Command, args []string) string {
	words := append([]string{cmd.Name()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		switch {
		case slices.Contains([]string{"db", "out", "resume", "dry-run", "gates", "seed", "name", "note", "quiet"}, f.Name) || value == "false":
		case value == "true":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name, value)
		}
	})
	return phrase.Shell(words)
}

// aboveZero returns an error if the user sets one of these flags to 0. If the default of a flag is
// 0, the suite's value is used without the flag.
func aboveZero(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && (f.Value.String() == "0" || f.Value.String() == "0s") {
			value := "the suite's value"
			if f.DefValue != f.Value.String() {
				value = "the default, " + f.DefValue
			}
			return fmt.Errorf("--%s %s: give a value above 0, or omit the flag to use %s", name, f.Value, value)
		}
	}
	return nil
}

// choices adds the flags that all measuring commands share.
func (o *runOptions) choices(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.short, "short", false, "Run the suite's short form, which takes a few minutes")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "Run only these scenarios: IDs, groups (the part before \"/\") or patterns, separated by commas")
	f.Var((*nonEmpty)(&o.tool), "tool", "Use this traffic tool in every scenario")
	f.DurationVar(&o.duration, "duration", 0, "Measured time of each trial, such as 2s")
	f.Uint64Var(&o.seed, "seed", 0, "Seed of the random order (0: generate one)")
	f.Var(cli.Choice{Chosen: &o.gates, Words: []string{"enforce", "warn"}}, "gates", "Treatment of disturbed trials: enforce (the default) repeats them and does not count them, warn counts them with a flag")
	f.StringVar(&o.out, "out", "", "Directory of the report (default out/RUN)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "Print no progress, only the report, warnings and errors")
	f.Var((*nonEmpty)(&o.name), "name", "Name of the run, such as a branch; several runs can have it, and NAME@latest is the newest of them")
	f.StringVar(&o.note, "note", "", "Note to store with the run")
	dbFlag(cmd, &o.db)
}

// mostNote is the largest number of bytes of a note.
const mostNote = 1000

func dbFlag(cmd *cobra.Command, db *string) {
	cmd.Flags().Var((*nonEmpty)(db), "db", "File of the results, or URL of a PostgreSQL database, such as postgres://USER@HOST/DATABASE (default windtunnel.db in the user's data directory)")
}

func (o *runOptions) run(ctx context.Context, out io.Writer, args []string) error {
	if err := cli.Misuse(o.check(args)); err != nil {
		return err
	}
	var plan *suite.Plan
	if o.resume == "" {
		var err error
		if plan, err = o.plan(ctx, args); err != nil {
			return err
		}
	}
	if o.dryRun && plan != nil {
		return o.dry(ctx, out, plan)
	}
	s := &runner{options: o, plan: plan, out: out}
	return s.execute(ctx)
}

// execute makes a new run, or continues an unfinished one.
func (s *runner) execute(ctx context.Context) (err error) {
	o, begin := s.options, s.open
	if o.resume != "" { // the store has the plan and the machines
		begin = s.reopen
		if s.store, err = openExisting(o.db); err != nil { // a misspelt --db is an error
			return err
		}
		defer s.store.Close()
		if err := s.load(o.resume); err != nil {
			return err
		}
	}
	if s.machines, err = o.reach(ctx, s.plan); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.machines.close()) }()
	if s.machines.hold != nil {
		if err := s.machines.hold(ctx); err != nil {
			return err
		}
	}
	if s.store == nil {
		if s.store, err = openStore(o.db, false); err != nil {
			return err
		}
		defer s.store.Close()
	}
	s.store.OnOutage(ctx, func(err error, limit time.Duration) {
		fmt.Fprintf(os.Stderr, "windtunnel: %v\nwindtunnel: the run waits for the server, %s at most\n", err, units.FormatDuration(float64(limit)))
	})
	if err := begin(); err != nil {
		return err
	}
	return s.measure(ctx)
}

// dryWithoutRoot is the note about a dry run of a user who is not root.
const dryWithoutRoot = "\nthe plan assumes the kernel features that only root can test; use sudo to test them\n"

// dry prints the plan with what cannot run.
func (o *runOptions) dry(ctx context.Context, out io.Writer, plan *suite.Plan) error {
	p, err := o.reach(ctx, plan)
	if err != nil {
		return err
	}
	note := ""
	if p.here && !p.facts[0].Root() {
		p.facts[0], note = p.facts[0].AssumeRoot(), dryWithoutRoot
	}
	plan.Skipped = experiment.Skips(plan, p.executor, p.facts...)
	_, err = io.WriteString(out, suite.Render(plan)+renderSkips(plan.Skipped)+note)
	return errors.Join(err, p.close())
}

// executorHere returns the executor for testbeds on this machine.
func executorHere(f *probe.Facts) *netns.Executor { return &netns.Executor{CPUs: f.UsableCPUs()} }

// check returns an error if not exactly one of suite, --system and --resume is given, or if the run's name or
// note cannot be stored.
func (o *runOptions) check(args []string) error {
	switch {
	case len(args) > 0 && o.resume != "":
		return fmt.Errorf("%s and --resume exclude each other: a resumed run keeps its plan; omit one of them", args[0])
	case len(args) == 0 && o.resume == "" && o.line.empty():
		return errors.New("no experiment is named: name a suite or a suite's file (`windtunnel suites` lists the suites), or give --system or --resume")
	case len(args) > 0 && !o.line.empty():
		return fmt.Errorf("%s and %s exclude each other: --system describes an experiment without a suite; omit one of them", args[0], o.line.first())
	case len(o.note) > mostNote:
		return fmt.Errorf("--note: it has %d bytes, and a note may have %d; shorten it", len(o.note), mostNote)
	case o.name != "":
		if err := sample.CheckName(o.name); err != nil {
			return fmt.Errorf("--name %s: %w", phrase.Clip(o.name), err)
		}
	}
	return nil
}

func (o *runOptions) plan(ctx context.Context, args []string) (*suite.Plan, error) {
	opts := suite.ExpandOptions{
		Short: o.short, Scenarios: o.scenarios, Tool: o.tool, Duration: o.duration,
		Trials: o.trials, MaxTrials: o.maxTrials, MaxTime: o.maxTime,
	}
	if o.precision != "" {
		var err error
		if opts.Precision, err = units.ParsePercent(o.precision); err != nil {
			return nil, cli.Misuse(fmt.Errorf("--precision: %w", err))
		}
		if opts.Precision == 0 {
			return nil, cli.Misuse(fmt.Errorf("--precision %s: give a value above 0, or omit the flag to use the suite's value", o.precision))
		}
	}
	var plan *suite.Plan
	var err error
	if len(args) == 0 {
		plan, err = o.line.plan(opts)
	} else {
		plan, err = loadPlan(args[0], opts)
	}
	if err == nil {
		err = o.placeable(plan)
	}
	if err == nil && o.matrix.pairs != "" {
		err = o.addMatrix(ctx, plan)
	}
	return plan, err
}

func openStore(path string, readOnly bool) (*results.Store, error) {
	if path == "" {
		var err error
		if path, err = results.DefaultPath(); err != nil {
			return nil, err
		}
	}
	store, err := results.Open(path, results.Options{ReadOnly: readOnly})
	if !readOnly || !errors.Is(err, results.ErrOlder) {
		return store, err
	}
	// An earlier version wrote this store. Opening it for writing updates its schema.
	writable, failed := results.Open(path, results.Options{})
	if failed != nil {
		return nil, err
	}
	if err := writable.Close(); err != nil {
		return nil, err
	}
	return results.Open(path, results.Options{ReadOnly: true})
}

// readStore reads from a store that is open for the time of the call.
func readStore[T any](db string, read func(*results.Store) (T, error)) (none T, err error) {
	store, err := openStore(db, true)
	if err != nil {
		return none, err
	}
	defer store.Close()
	return read(store)
}

// runner is one execution of `windtunnel run`.
type runner struct {
	options  *runOptions
	store    *results.Store
	machines *machines
	out      io.Writer
	plan     *suite.Plan
	run      sample.Run
	history  []sample.Sample // samples stored before the run was resumed
	counted  int             // number of samples whose figures count, with history
}

// open makes the run of the plan, and stores it.
func (s *runner) open() error {
	plan := s.plan
	now := time.Now()
	seed := s.options.seed
	if seed == 0 {
		seed = rand.Uint64()>>11 + 1 // at most 2^53, so that JSON readers keep it exact
	}
	skipped := experiment.Skips(plan, s.machines.executor, s.machines.facts...)
	if why := nothingRuns(plan, skipped); why != "" {
		fmt.Fprint(os.Stderr, why)
		return exitNothing
	}
	if err := makeReportDir(s.reportDir()); err != nil {
		return err
	}
	s.run = sample.Run{
		Suite: plan.Suite, Title: plan.Title, Name: s.options.name, Note: s.options.note, Started: now, Seed: seed, Status: sample.Running,
		Options: sample.Options{
			Command: s.options.command,
			Lenient: s.options.gates == "warn", ProfileRate: s.options.profiling.Rate, ProfileBlocks: s.options.profiling.Blocks,
			CPUs: s.options.cpus.cpus, CPUDistance: s.options.cpus.distance, Testbed: s.options.testbed, Hosts: s.options.hosts, Cluster: s.options.cluster,
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

// load loads an unfinished run, so that measure can continue it.
func (s *runner) load(name string) error {
	data, err := s.store.Load(name)
	if err != nil {
		return err
	}
	if data.Run.Status == sample.Complete {
		return fmt.Errorf("resume run %s: it is complete; start a new run", data.Run.ID)
	}
	s.plan, s.run = &data.Plan, data.Run
	estimable(s.plan)
	if s.options.gates != "" {
		s.run.Options.Lenient = s.options.gates == "warn"
	}
	s.options.cpus = cpuOptions{s.run.Options.CPUs, cmp.Or(s.run.Options.CPUDistance, string(condition.Auto))}
	s.options.testbed, s.options.hosts, s.options.cluster = s.run.Options.Testbed, s.run.Options.Hosts, s.run.Options.Cluster
	s.history = data.Samples
	for i := range s.history {
		s.count(&s.history[i])
	}
	return nil
}

// reopen stores that the loaded run continues.
func (s *runner) reopen() error {
	if err := makeReportDir(s.reportDir()); err != nil {
		return err
	}
	s.run.Status, s.run.Options.Hosts = sample.Running, s.options.hosts
	if s.plan.Matrix != nil {
		s.run.Skipped = skipLost(s.plan, s.run.Skipped, s.options.lost)
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
	env := s.machines.environment(experiment.Programs(s.plan))
	env.Version, env.Revision = version, revision
	env.CPUChoice = s.machines.choice
	env.CPUMeter = meter.IdleMethod(s.machines.fineIdle)
	return env
}

// measure runs the plan, stores the end of the run, and writes the report. It stores
// and reports also after an error of the run.
func (s *runner) measure(ctx context.Context) error {
	if err := makeReportDir(s.reportDir()); err != nil {
		return err
	}
	s.plan.Skipped = s.run.Skipped
	e := &experiment.Experiment{
		Plan: s.plan, ID: space.RunID(os.Getpid()), Seed: s.run.Seed, Self: s.machines.self, Attempts: suite.Attempts,
		Executor: s.machines.executor,
		Skipped:  s.run.Skipped, History: s.history, Lenient: s.run.Options.Lenient,
		Profiling: experiment.Profiling{Rate: s.run.Options.ProfileRate, Blocks: s.run.Options.ProfileBlocks},
		FineIdle:  s.run.Environment.CPUMeter == meter.IdleMethod(true),
		Distance:  condition.Choice(s.options.cpus.distance),
		Imprecise: s.imprecise,
		Adjust:    s.run.Options.Adjusted,
		Adjusting: s.adjust,
		Recorder:  s,
	}
	progress, live := io.Writer(os.Stderr), canRedraw(os.Stderr)
	if s.options.quiet {
		progress, live = io.Discard, false
	} else {
		fmt.Fprintf(s.out, "run %s: %s\n", s.run.ID, s.announce(e))
	}
	fmt.Fprint(s.out, renderSkips(s.run.Skipped))
	for _, f := range s.machines.facts {
		if warning := f.QuotaWarning(); warning != "" {
			fmt.Fprintf(os.Stderr, "%s: %s\n", f.Hostname, warning)
		}
	}
	if s.machines.here {
		fmt.Fprint(os.Stderr, busy(ctx, s.machines.facts[0].UsableCPUs()))
	}
	display := newDisplay(s.plan, progress, live)
	e.Observer = observers{display, newSettler(s)}
	runErr := e.Run(ctx)
	display.Close()
	if err := s.close(runErr); err != nil {
		return errors.Join(runErr, err)
	}
	if errors.Is(runErr, stopsignal.ErrInterrupted) {
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

// announce describes the trials of the run and their duration. For a resumed run these are the
// remaining trials.
func (s *runner) announce(e *experiment.Experiment) string {
	if s.options.resume == "" {
		return fmt.Sprintf("%s × %s, %s", s.scenarios(), s.trials(), s.plan.Lasts(s.profiling()))
	}
	whole := *e
	whole.History = nil
	left, all := e.Remaining(), whole.Remaining()
	text := fmt.Sprintf("%d of %s left", left, phrase.Count(all, "trial"))
	if s.plan.Stop.Precision > 0 {
		text += fmt.Sprintf(", and more until ±%s", units.FormatPercent(s.plan.Stop.Precision))
	}
	if left > 0 {
		text += ", about " + units.FormatDuration(float64(s.plan.Estimate())*s.profiling()*float64(left)/float64(all))
	}
	return text
}

// profiling returns the factor by which the profiled trials prolong the run. With --profile the
// first blocks run each scenario a second time.
func (s *runner) profiling() float64 {
	o := s.run.Options
	if o.ProfileRate == 0 {
		return 1
	}
	return 1 + float64(min(o.ProfileBlocks, s.plan.Trials))/float64(s.plan.Trials)
}

// scenarios describes the number of scenarios, and of the pairs of hosts.
func (s *runner) scenarios() string {
	if s.plan.Matrix == nil {
		return phrase.Count(len(s.plan.Scenarios)-len(s.run.Skipped), "scenario")
	}
	n := 0
	for _, sc := range s.plan.Scenarios {
		if s.run.Skipped[sc.ID] == "" {
			n++
		}
	}
	return phrase.Count(n, "scenario") + " between " + s.plan.Matrix.String()
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
	return len(verdicts.Imprecision(s.run.Options, *s.plan, samples)) > 0
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
	if slices.ContainsFunc(plan.Scenarios, func(sc suite.Scenario) bool { return skips[sc.ID] == "" }) {
		return ""
	}
	return "windtunnel: no scenario can run:\n" + renderSkips(skips)
}

// mostSkipped is the maximum number of scenarios that a line about skipped ones names.
const mostSkipped = 100

func renderSkips(skips map[string]string) string {
	var b strings.Builder
	for _, group := range groupSkips(skips) {
		fmt.Fprintf(&b, "skipped %s: %s\n", phrase.Some(group.ids, mostSkipped), group.why)
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
