package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"windtunnel/internal/screen"
	"windtunnel/lab/experiment"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// display shows the progress of a run: a live line on a terminal, or lines in a log.
type display struct {
	out     io.Writer
	program *tea.Program // nil without a terminal
	ended   chan struct{}
	done    progressCount
	styles  // of a live line

	latest string    // line about the latest attempt that the log does not have yet
	logged time.Time // time of the last line in the log
	block  int       // current block
}

// logInterval is the time between two lines in a log, unless a block ends.
const logInterval = 10 * time.Second

// log writes the line about the latest attempt, once.
func (d *display) log() {
	if d.latest != "" {
		fmt.Fprintln(d.out, d.latest)
		d.latest, d.logged = "", time.Now()
	}
}

// canRedraw reports whether a live line can be drawn on a file: the file is a terminal that
// understands escape sequences, and the variable CI is not set.
func canRedraw(f *os.File) bool {
	ci := os.Getenv("CI")
	return screen.IsTerminal(f) && os.Getenv("TERM") != "dumb" && (ci == "" || ci == "false")
}

func newDisplay(plan *suite.Plan, out io.Writer, live bool) *display {
	d := &display{out: out}
	if live {
		if screen.Of(out).Colour {
			d.styles = styles{lipgloss.NewStyle().Bold(true), lipgloss.NewStyle().Faint(true)}
		}
		d.program = tea.NewProgram(&liveModel{styles: d.styles, left: newCountdown(plan.Forecast(), time.Now()), pursues: plan.Stop.Precision > 0}, tea.WithOutput(out), tea.WithInput(nil), tea.WithoutSignalHandler())
		d.ended = make(chan struct{})
		go func() {
			defer close(d.ended)
			d.program.Run()
		}()
	}
	return d
}

// Close removes the live line, or completes the log.
func (d *display) Close() {
	d.log()
	if d.program != nil {
		d.program.Quit()
		<-d.ended
	}
}

type upMsg struct{}

// Up implements experiment.Observer: the testbed is ready, and the tools start.
func (d *display) Up(*suite.Scenario, *experiment.Bench) {
	if d.program != nil {
		d.program.Send(upMsg{})
	}
}

type beganMsg struct {
	trial experiment.Trial
	experiment.Progress
}

type endedMsg beganMsg

func (d *display) Began(t experiment.Trial, p experiment.Progress) {
	d.done.began(t, p)
	if t.Block != d.block {
		d.log()
		d.block = t.Block
	}
	if d.program != nil {
		d.program.Send(beganMsg{t, p})
	}
}

func (d *display) Moved(t experiment.Trial, p sample.Point) {
	if d.program != nil {
		d.program.Send(p)
	}
}

func (d *display) Ended(s sample.Sample, p experiment.Progress) {
	what := outcome(s, p)
	t := experiment.Trial{Scenario: s.Scenario, Block: s.Block, Profiled: s.Profiled}
	d.done.ended(t, p)
	if d.program == nil {
		d.latest = d.linePrefix(s, p) + what
		if time.Since(d.logged) >= logInterval {
			d.log()
		}
		return
	}
	d.program.Send(endedMsg{t, p})
	if s.OK() && len(s.Gates) > 0 {
		what = d.faint.Render(what)
	}
	d.program.Println(d.linePrefix(s, p) + what)
}

// linePrefix returns the first columns of the line about a finished attempt: the time
// of its start, the numbers of finished trials and of repeats, the scenario, and the number
// of the trial.
func (d *display) linePrefix(s sample.Sample, p experiment.Progress) string {
	return fmt.Sprintf("%s  %d/%d%s  %s  trial %d%s  ", s.Started.Format(time.TimeOnly), d.done.finishedTrials(), max(p.Number, p.Total), d.done.repeatsDue(), s.Scenario, s.Block+1, attemptOf(p))
}

// attemptOf returns the number of an attempt, " (attempt 2 of 3)"; "" for the first.
func attemptOf(p experiment.Progress) string {
	if p.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d of %d)", p.Attempt, p.Attempts)
}

// outcome describes the result of an attempt: its figures or its failure, the reason if
// the figures do not count, and whether the trial is repeated.
func outcome(s sample.Sample, p experiment.Progress) string {
	again := ""
	if p.Repeats {
		again = fmt.Sprintf("; repeated later (attempt %d of %d)", p.Attempt+1, p.Attempts)
	}
	return sentences.Attempt(&s) + again
}

// liveModel is the live line.
type liveModel struct {
	styles
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
		m.left.done.began(msg.trial, msg.Progress)
		m.left.began(msg.Progress, time.Now())
	case endedMsg:
		m.left.done.ended(msg.trial, msg.Progress)
		m.left.ended(msg.Progress)
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

type styles struct{ strong, faint lipgloss.Style }

func (m *liveModel) View() tea.View { return tea.NewView(m.line()) }

// line returns the live line; "" before the first trial and after the last.
func (m *liveModel) line() string {
	if m.gone || m.began.Total == 0 {
		return ""
	}
	b := m.began
	return fmt.Sprintf("%s trial %d%s  %s  %s\n", m.strong.Render(b.trial.Scenario), b.trial.Block+1, attemptOf(b.Progress), m.step(),
		m.faint.Render(fmt.Sprintf("%d of %d finished%s, %s left", m.left.done.finishedTrials(), b.Total, m.left.done.repeatsDue(), m.remains(time.Now()))))
}

// step returns the current step of the trial: "setting up", "measuring", or the latest
// point of the time series. A short trial ends before its first point.
func (m *liveModel) step() string {
	switch {
	case m.point != nil:
		rate := units.FormatRate(m.point.Bits)
		if m.point.SenderCPU == 0 && m.point.ReceiverCPU == 0 { // the nodes are not pinned, so the CPU use of each is not known
			return rate
		}
		return rate + ", " + sentences.BothCPUs(m.point.SenderCPU, m.point.ReceiverCPU)
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

// progressCount counts the finished trials of a run. A trial is finished if it needs no
// further attempt.
type progressCount struct {
	begun   int                       // trials with at least one attempt
	total   int                       // trials of the run, as the engine last reported them
	repeats map[experiment.Trial]bool // trials that must be repeated
	current int                       // number of attempts in progress
}

// began counts the start of an attempt. It drops the repeats of earlier blocks: the
// engine finishes the repeats of a block before the next block, or does not make them.
func (c *progressCount) began(t experiment.Trial, p experiment.Progress) {
	maps.DeleteFunc(c.repeats, func(due experiment.Trial, _ bool) bool { return due == t || due.Block < t.Block })
	c.begun, c.total = max(c.begun, p.Number), p.Total
	c.current++
}

// ended counts the end of an attempt.
func (c *progressCount) ended(t experiment.Trial, p experiment.Progress) {
	c.current--
	if p.Repeats {
		if c.repeats == nil {
			c.repeats = map[experiment.Trial]bool{}
		}
		c.repeats[t] = true
	}
}

// finishedTrials returns the number of finished trials.
func (c *progressCount) finishedTrials() int {
	return c.begun - len(c.repeats) - c.current
}

// repeatsDue returns the number of trials that wait for their repeat, as ", 3 to repeat"; "" for
// none.
func (c *progressCount) repeatsDue() string {
	if len(c.repeats) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d to repeat", len(c.repeats))
}

// countdown estimates the remaining time of a run. The time shown never rises, except
// for three reasons: trials were added, a trial must be repeated, or trials take clearly
// longer than estimated.
type countdown struct {
	started  time.Time
	forecast suite.Forecast
	end      time.Time     // estimated end of the run
	shown    time.Duration // remaining time, as last shown
	total    int           // trials of the run at the start of the last attempt
	attempts int           // finished attempts
	rejected int           // finished attempts whose trial must be repeated
	repeated bool          // the trial of the last attempt must be repeated
	done     progressCount
}

func newCountdown(f suite.Forecast, now time.Time) *countdown {
	return &countdown{started: now, forecast: f}
}

// began updates the estimate at the start of an attempt.
func (c *countdown) began(p experiment.Progress, now time.Time) {
	left := c.forecast.Left(suite.Pace{
		Elapsed: now.Sub(c.started), Attempts: c.attempts, Rejected: c.rejected, Unfinished: c.done.total - c.done.finishedTrials(), Most: p.Attempts,
	})
	c.end = now.Add(left)
	if c.done.total > c.total || c.repeated || left > c.shown*5/4+5*time.Second {
		c.shown = left
	}
	c.total, c.repeated = c.done.total, false
}

// ended counts a finished attempt.
func (c *countdown) ended(p experiment.Progress) {
	c.attempts++
	if p.Repeats {
		c.rejected++
	}
	c.repeated = c.repeated || p.Repeats
}

// at returns the remaining time to show, in whole seconds.
func (c *countdown) at(now time.Time) time.Duration {
	c.shown = min(c.shown, max(0, c.end.Sub(now)))
	return c.shown.Round(time.Second)
}
