package main

import (
	"fmt"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	"windtunnel/lab/experiment"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// view shows the progress of a run: a live line on a terminal, one line a trial
// in a log.
type view struct {
	out     io.Writer
	program *tea.Program // nil where there is no terminal
	ended   chan struct{}
}

func newView(plan *suite.Plan, out io.Writer, live bool) *view {
	v := &view{out: out}
	if live {
		v.program = tea.NewProgram(&liveModel{left: newCountdown(plan, time.Now()), pursues: plan.Stop.Precision > 0}, tea.WithOutput(out), tea.WithInput(nil), tea.WithoutSignalHandler())
		v.ended = make(chan struct{})
		go func() {
			defer close(v.ended)
			v.program.Run()
		}()
	}
	return v
}

// Close ends the live view and removes its line.
func (v *view) Close() {
	if v.program != nil {
		v.program.Quit()
		<-v.ended
	}
}

type upMsg struct{}

// Up implements experiment.Observer: the testbed is ready, and the tools start.
func (v *view) Up(*suite.Scenario, *experiment.Bench) {
	if v.program != nil {
		v.program.Send(upMsg{})
	}
}

type beganMsg struct {
	trial experiment.Trial
	experiment.Progress
}

func (v *view) Began(t experiment.Trial, p experiment.Progress) {
	if v.program != nil {
		v.program.Send(beganMsg{t, p})
	}
}

func (v *view) Moved(t experiment.Trial, p sample.Point) {
	if v.program != nil {
		v.program.Send(p)
	}
}

func (v *view) Ended(s sample.Sample, p experiment.Progress) {
	what := outcome(s, p)
	if v.program == nil {
		fmt.Fprintln(v.out, headed(s, p)+what)
		return
	}
	if s.OK() && len(s.Gates) > 0 {
		what = faint.Render(what)
	}
	v.program.Println(headed(s, p) + what)
}

// headed is what a line about an attempt begins with.
func headed(s sample.Sample, p experiment.Progress) string {
	return fmt.Sprintf("%s  %d/%d  %s  trial %d  ", s.Started.Format(time.TimeOnly), p.Number, max(p.Number, p.Total), s.Scenario, s.Block+1)
}

// outcome is an attempt in a few words: its figures, whether they count, and
// whether it is repeated.
func outcome(s sample.Sample, p experiment.Progress) string {
	again := ""
	if p.Repeats {
		again = fmt.Sprintf("; repeated later (%d of %d)", p.Attempt+1, p.Attempts)
	}
	if !s.OK() {
		return s.Failure.String() + again
	}
	text := figures(s.Metrics)
	if s.Profiled {
		text += ", profiled"
	}
	if len(s.Gates) > 0 {
		text += "; rejected (" + model.Brief(s.Gates) + ")"
	}
	if len(s.Flags) > 0 {
		text += "; flagged (" + model.Brief(s.Flags) + ")"
	}
	return text + again
}

func figures(m sample.Metrics) string {
	text := units.FormatRate(m[sample.Throughput])
	if has(m, sample.Transactions) {
		text = units.FormatCount(m[sample.Transactions]) + " transactions/s"
		if has(m, sample.LatencyP50) {
			text += ", p50 " + units.FormatDuration(m[sample.LatencyP50])
		}
	}
	if has(m, sample.SenderCPU) && has(m, sample.ReceiverCPU) {
		text += ", " + bothCPUs(m[sample.SenderCPU], m[sample.ReceiverCPU])
	}
	return text
}

func bothCPUs(sender, receiver float64) string {
	return fmt.Sprintf("sender CPU %.0f %%, receiver %.0f %%", sender, receiver)
}

func has(m sample.Metrics, name sample.Metric) bool {
	_, ok := m[name]
	return ok
}

// liveModel is the live line.
type liveModel struct {
	left    *countdown
	pursues bool // more trials follow until a precision is reached
	began   beganMsg
	up      bool
	point   *sample.Point
	gone    bool
}

type tickMsg struct{}

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

func (m *liveModel) Init() tea.Cmd { return tick() }

func (m *liveModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case beganMsg:
		m.began, m.point, m.up = msg, nil, false
		m.left.began(time.Now(), msg.Progress)
	case upMsg:
		m.up = true
	case sample.Point:
		m.point = &msg
	case tickMsg:
		return m, tick()
	case tea.QuitMsg:
		m.gone = true
	}
	return m, nil
}

var (
	strong = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
)

func (m *liveModel) View() string {
	if m.gone || m.began.Total == 0 {
		return ""
	}
	b := m.began
	again := ""
	if b.Attempt > 1 {
		again = fmt.Sprintf(" (attempt %d of %d)", b.Attempt, b.Attempts)
	}
	return fmt.Sprintf("%s trial %d%s  %s  %s\n", strong.Render(b.trial.Scenario), b.trial.Block+1, again, m.doing(),
		faint.Render(fmt.Sprintf("%d of %d, %s left", b.Number, b.Total, m.remains(time.Now()))))
}

// doing says what happens now. Short trials end before their first point, so
// that they only measure.
func (m *liveModel) doing() string {
	switch {
	case m.point != nil:
		return units.FormatRate(m.point.Bits) + ", " + bothCPUs(m.point.SenderCPU, m.point.ReceiverCPU)
	case m.up:
		return "measuring"
	}
	return "setting up"
}

func (m *liveModel) remains(now time.Time) string {
	left := m.left.at(now).String()
	if m.pursues {
		return "at least " + left
	}
	return "about " + left
}

// countdown estimates the time that a run still takes. It falls or stands still,
// and rises only for a reason: trials were added or repeated, or they take
// clearly longer than was estimated.
type countdown struct {
	started time.Time
	each    time.Duration // of a trial, as the plan estimates it
	prior   int           // so many trials that estimate weighs as
	mean    time.Duration // of a trial, by the estimate and by those that ended
	end     time.Time
	shown   time.Duration // the time left, as last shown
	total   int           // trials of the run, as last heard
}

func newCountdown(plan *suite.Plan, now time.Time) *countdown {
	c := &countdown{started: now, prior: max(1, len(plan.Scenarios)-len(plan.Skipped))}
	if trials := plan.Trials * c.prior; trials > 0 {
		c.each = plan.Estimate() / time.Duration(trials)
	}
	return c
}

// began updates the estimate at the start of an attempt.
func (c *countdown) began(now time.Time, p experiment.Progress) {
	ended := p.Number - 1
	if p.Attempt <= 1 {
		c.mean = (now.Sub(c.started) + time.Duration(c.prior)*c.each) / time.Duration(ended+c.prior)
	}
	left := c.mean * time.Duration(p.Total-ended)
	c.end = now.Add(left)
	if p.Total > c.total || p.Attempt > 1 || left > c.shown*5/4+5*time.Second {
		c.shown = left
	}
	c.total = p.Total
}

// at returns the time left at a moment, in whole seconds.
func (c *countdown) at(now time.Time) time.Duration {
	c.shown = min(c.shown, max(0, c.end.Sub(now)))
	return c.shown.Round(time.Second)
}
