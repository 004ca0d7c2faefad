package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"windtunnel/lab/agent"
	"windtunnel/lab/priority"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/tool"
)

// toolRun is one run of a tool over every pair of a bench.
type toolRun struct {
	bench  *Bench
	self   string
	sample *sample.Sample
	moved  func(sample.Point)
	grace  time.Duration
	// profileRate is the profiler's rate in samples a second; 0 means no profile.
	profileRate int
	conditions  *conditions
	last        bool // no further attempt at the trial follows
	fineIdle    bool

	runs []*pairRun
}

// pairRun is the tool's processes for one pair.
type pairRun struct {
	pair      Pair
	job       tool.Job
	plan      []tool.Process
	processes []*agent.Process // started so far, in the plan's order
	outputs   map[string]tool.Output
}

const (
	basePort     = system.PublishedFirst
	portsPerPair = 32
	readyTimeout = 5 * time.Second
	// guestReadyTimeout is readyTimeout for programs in VMs: on an emulated CPU of a busy
	// machine a program takes many seconds to start.
	guestReadyTimeout = 30 * time.Second
	// lookAgain is the interval at which a process that does not listen yet is checked.
	lookAgain    = 200 * time.Millisecond
	defaultGrace = 8 * time.Second
	// rounding is the time that tools with whole seconds add: they round each part of the
	// timing up.
	rounding    = 3 * time.Second
	stopTimeout = 2 * time.Second
)

// run generates and meters the traffic, and fills the sample.
func (b *Bench) run(ctx context.Context, t *toolRun) error {
	if err := b.scenario.tool.Supports(b.scenario.Workload); err != nil {
		return failed(sample.Unsupported, "%w", err)
	}
	if err := t.plan(); err != nil {
		return err
	}
	defer t.kill(context.WithoutCancel(ctx))
	defer priority.Raise()()
	m, err := newMeters(ctx, t)
	if err != nil {
		return err
	}
	defer m.close()
	if err := t.serve(ctx); err != nil {
		return errors.Join(err, t.keepOutputs(ctx))
	}
	started, err := t.begin(ctx)
	if err != nil {
		return errors.Join(err, t.keepOutputs(ctx))
	}
	changes := b.startChanges(ctx, started)
	meterErr := m.window(ctx, started)
	changed, changeErr := changes.finish()
	err = t.finish(ctx, started)
	if err := errors.Join(changeErr, err, t.keepOutputs(ctx)); err != nil {
		return err
	}
	meterErr = errors.Join(meterErr, m.listen(ctx), m.stop(ctx))
	if meterErr != nil {
		return failed(sample.Invalid, "read the meters: %w", meterErr)
	}
	measurement, err := t.parse()
	if err != nil {
		return err
	}
	measurement.Metrics.Merge(changed)
	return m.complete(measurement)
}

func (t *toolRun) plan() error {
	for i, p := range t.bench.Pairs {
		job := tool.Job{
			Workload: t.bench.scenario.Workload,
			Timing:   t.timing(),
			Sender:   p.Sender.Addr(t.bench.scenario.Workload.IPVersion),
			Receiver: p.Receiver.Addr(t.bench.scenario.Workload.IPVersion),
			Listen:   p.Receiver.Listen,
			Port:     uint16(basePort + i*portsPerPair),
			MTU:      t.bench.MTU,
			Self:     t.self,
		}
		if n := len(t.bench.Pairs); n > 1 {
			job.Workload.Rate /= int64(n) // the workload's rate is the sum of all pairs
		}
		plan, err := t.bench.scenario.tool.Plan(job)
		if err != nil {
			return failed(sample.Unsupported, "plan %s: %w", t.bench.scenario.tool.Name(), err)
		}
		t.runs = append(t.runs, &pairRun{pair: p, job: job, plan: plan})
	}
	return nil
}

func (r *pairRun) at(side tool.Side) Endpoint {
	if side == tool.OnSender {
		return r.pair.Sender
	}
	return r.pair.Receiver
}

// serve starts all but the last process of every pair and waits until each is
// ready.
func (t *toolRun) serve(ctx context.Context) error {
	for _, r := range t.runs {
		for _, p := range r.plan[:len(r.plan)-1] {
			t.note(r, p)
			if err := t.launch(ctx, r, p); err != nil {
				return err
			}
			if err := t.await(ctx, r, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// note adds a process's command line to the sample.
func (t *toolRun) note(r *pairRun, p tool.Process) {
	t.sample.Commands = append(t.sample.Commands, sample.Command{Role: t.role(r, p), On: r.at(p.On).String(), Argv: p.Argv})
}

// launch starts a process. Several goroutines may call it.
func (t *toolRun) launch(ctx context.Context, r *pairRun, p tool.Process) error {
	e := r.at(p.On)
	starter, name := e.tools()
	proc, err := starter.Start(ctx, agent.StartArgs{Endpoint: name, Argv: p.Argv})
	if err != nil {
		kind := sample.ToolFailed
		if errors.As(err, new(*agent.NotFoundError)) {
			kind = sample.ToolMissing
		}
		return failed(kind, "start the %s of %s: %w", p.Role, t.bench.scenario.tool.Name(), err)
	}
	r.processes = append(r.processes, proc)
	return nil
}

// role returns the name of a process in the sample.
func (t *toolRun) role(r *pairRun, p tool.Process) string {
	for i := range t.runs {
		if t.runs[i] == r && i > 0 {
			return fmt.Sprintf("%s %d", p.Role, i+1)
		}
	}
	return p.Role
}

// await waits until the newest process is ready: until it prints a line, or listens
// on its port.
func (t *toolRun) await(ctx context.Context, r *pairRun, p tool.Process) error {
	if p.Ready == nil {
		return t.awaitPort(ctx, r, p)
	}
	proc, limit := r.processes[len(r.processes)-1], t.readyTimeout()+p.Search
	deadline := time.Now().Add(limit)
	for {
		e, err := proc.Next(ctx, time.Until(deadline))
		if err != nil {
			return err
		}
		for _, line := range e.Lines {
			if p.Ready(line.Text) {
				return nil
			}
		}
		if e.Exited {
			return failed(sample.ToolFailed, "the %s of %s ended with exit status %d before it was ready: %s", p.Role, t.bench.scenario.tool.Name(), e.Exit, lastOutput(ctx, proc))
		}
		if !time.Now().Before(deadline) {
			return failed(sample.ToolHung, "the %s of %s was not ready within %v", p.Role, t.bench.scenario.tool.Name(), limit)
		}
	}
}

// readyTimeout returns the maximum time from the start of a process until it is ready.
func (t *toolRun) readyTimeout() time.Duration {
	if t.bench.scenario.Endpoint.Kind == suite.VM {
		return guestReadyTimeout
	}
	return readyTimeout
}

func (t *toolRun) awaitPort(ctx context.Context, r *pairRun, p tool.Process) error {
	if p.Port == 0 {
		return nil
	}
	starter, name := r.at(p.On).tools()
	proc, limit := r.processes[len(r.processes)-1], t.readyTimeout()
	deadline := time.Now().Add(limit)
	for {
		listening, err := starter.Listening(ctx, agent.ListenArgs{Endpoint: name, Port: p.Port, UDP: p.UDP, Wait: lookAgain})
		if err != nil || listening {
			return err
		}
		state, err := proc.Next(ctx, 0)
		if err != nil {
			return err
		}
		if state.Exited {
			return failed(sample.ToolFailed, "the %s of %s ended with exit status %d before it listened on port %d: %s", p.Role, t.bench.scenario.tool.Name(), state.Exit, p.Port, lastOutput(ctx, proc))
		}
		if !time.Now().Before(deadline) {
			return failed(sample.ToolFailed, "the %s of %s did not listen on port %d within %v: %s", p.Role, t.bench.scenario.tool.Name(), p.Port, limit, lastOutput(ctx, proc))
		}
	}
}

// lastOutput returns the end of a process's output.
func lastOutput(ctx context.Context, p *agent.Process) string {
	o, err := p.Output(ctx)
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(o.Stdout + o.Stderr)
	if text == "" {
		return "it printed nothing"
	}
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}

// finish waits for the last process of every pair, then for the others.
func (t *toolRun) finish(ctx context.Context, started time.Time) error {
	grace := t.grace
	if grace == 0 {
		grace = defaultGrace
	}
	deadline := started.Add(t.timing().Total() + rounding + grace)
	for _, r := range t.runs {
		last := len(r.processes) - 1
		exit, err := t.wait(ctx, r.processes[last], deadline)
		if err != nil {
			return err
		}
		if exit != 0 {
			return failed(sample.ToolFailed, "the %s of %s ended with exit status %d: %s", r.plan[last].Role, t.bench.scenario.tool.Name(), exit, lastOutput(ctx, r.processes[last]))
		}
	}
	return t.finishOthers(ctx, deadline)
}

// finishOthers waits for the processes that end by themselves and stops the others.
func (t *toolRun) finishOthers(ctx context.Context, deadline time.Time) error {
	for _, r := range t.runs {
		for i, p := range r.processes[:len(r.processes)-1] {
			if r.plan[i].Stays {
				if err := t.stop(ctx, p); err != nil {
					return err
				}
				continue
			}
			if _, err := t.wait(ctx, p, deadline); err != nil {
				return err
			}
		}
	}
	return nil
}

// stop ends a process: by SIGINT, then by SIGKILL.
func (t *toolRun) stop(ctx context.Context, p *agent.Process) error {
	if err := p.Signal(ctx, int(syscall.SIGINT)); err != nil {
		return err
	}
	if _, err := t.wait(ctx, p, time.Now().Add(stopTimeout)); err == nil {
		return nil
	}
	return p.Signal(ctx, int(syscall.SIGKILL))
}

// wait waits for the end of a process.
func (t *toolRun) wait(ctx context.Context, p *agent.Process, deadline time.Time) (int, error) {
	for {
		e, err := p.Next(ctx, max(time.Until(deadline), 0))
		if err != nil {
			return 0, err
		}
		if e.Exited {
			return e.Exit, nil
		}
		if !time.Now().Before(deadline) {
			return 0, failed(sample.ToolHung, "%s did not end within the planned time and was killed: %s", t.bench.scenario.tool.Name(), lastOutput(ctx, p))
		}
	}
}

// kill ends all processes that still run.
func (t *toolRun) kill(ctx context.Context) {
	var killing sync.WaitGroup
	for _, r := range t.runs {
		for _, p := range r.processes {
			killing.Go(func() { p.Signal(ctx, int(syscall.SIGKILL)) })
		}
	}
	killing.Wait()
}

// keepOutputs adds the raw output of every process to the sample.
func (t *toolRun) keepOutputs(ctx context.Context) error {
	for _, r := range t.runs {
		r.outputs = map[string]tool.Output{}
		for i, p := range r.processes {
			o, err := p.Output(ctx)
			if err != nil {
				return err
			}
			e, err := p.Next(ctx, 0)
			if err != nil {
				return err
			}
			if o.Truncated {
				t.sample.Warnings = append(t.sample.Warnings, fmt.Sprintf("the %s printed too much; the rest was left out", r.plan[i].Role))
			}
			r.outputs[r.plan[i].Role] = tool.Output{Stdout: o.Stdout, Stderr: o.Stderr, Exit: e.Exit}
			t.sample.Outputs = append(t.sample.Outputs, sample.Output{Role: t.role(r, r.plan[i]), Stdout: o.Stdout, Stderr: o.Stderr, Exit: e.Exit})
		}
	}
	return nil
}

// parse parses every pair's measurement and combines them.
func (t *toolRun) parse() (tool.Measurement, error) {
	var all []tool.Measurement
	for _, r := range t.runs {
		m, err := t.bench.scenario.tool.Parse(r.job, r.outputs)
		var typed *sample.Failure
		if errors.As(err, &typed) {
			return tool.Measurement{}, err
		}
		if err != nil {
			return tool.Measurement{}, failed(sample.NoResult, "%s gave no result that can be read: %w", t.bench.scenario.tool.Name(), err)
		}
		all = append(all, m)
	}
	total, err := sum(all)
	if err == nil && t.bench.scenario.Endpoint.HostVNIC {
		setHostShare(total.Metrics, all[len(all)-1].Metrics)
	}
	return total, err
}
