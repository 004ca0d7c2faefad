package main

import (
	"fmt"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	"windtunnel/lab/experiment"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/units"
)

// view shows how a run goes on: a live line on a terminal, one line a trial in
// a log.
type view struct {
	out     io.Writer
	started time.Time
	plan    *suite.Plan
	program *tea.Program // nil where there is no terminal
	ended   chan struct{}
}

func newView(plan *suite.Plan, out io.Writer, live bool) *view {
	v := &view{out: out, started: time.Now(), plan: plan}
	if live {
		v.program = tea.NewProgram(&liveModel{started: v.started}, tea.WithOutput(out), tea.WithInput(nil), tea.WithoutSignalHandler())
		v.ended = make(chan struct{})
		go func() {
			defer close(v.ended)
			v.program.Run()
		}()
	}
	return v
}

// Close ends the live view; its last state is wiped away.
func (v *view) Close() {
	if v.program != nil {
		v.program.Quit()
		<-v.ended
	}
}

func (*view) Up(*suite.Scenario, *experiment.Bench) {}

type beganMsg struct {
	trial                  experiment.Trial
	attempt, number, total int
}

func (v *view) Began(t experiment.Trial, attempt, number, total int) {
	if v.program != nil {
		v.program.Send(beganMsg{t, attempt, number, total})
	}
}

func (v *view) Moved(t experiment.Trial, p sample.Point) {
	if v.program != nil {
		v.program.Send(p)
	}
}

func (v *view) Ended(s sample.Sample, number, total int) {
	total = max(number, total)
	line := fmt.Sprintf("%s  %d/%d  %s  trial %d  %s", s.Started.Format(time.TimeOnly), number, total, s.Scenario, s.Block+1, outcome(s))
	if v.program != nil {
		v.program.Println(line)
		return
	}
	fmt.Fprintln(v.out, line)
}

// outcome is a sample in a few words.
func outcome(s sample.Sample) string {
	if !s.OK() {
		return s.Failure.String()
	}
	m := s.Metrics
	var text string
	switch {
	case has(m, sample.Transactions):
		text = units.FormatCount(m[sample.Transactions]) + " transactions/s"
		if has(m, sample.LatencyP50) {
			text += ", p50 " + units.FormatDuration(m[sample.LatencyP50])
		}
	default:
		text = units.FormatRate(m[sample.Throughput])
	}
	if has(m, sample.SenderCPU) && has(m, sample.ReceiverCPU) {
		text += fmt.Sprintf(", CPU %.0f %% / %.0f %%", m[sample.SenderCPU], m[sample.ReceiverCPU])
	}
	if s.Profiled {
		text += ", profiled"
	}
	for i, g := range s.Gates {
		if i == 0 {
			text += "; does not count"
		}
		text += ": " + g.Message
	}
	for _, g := range s.Flags {
		text += ", " + string(g.Name)
	}
	return text
}

func has(m sample.Metrics, name sample.Metric) bool {
	_, ok := m[name]
	return ok
}

// liveModel is the live line.
type liveModel struct {
	started time.Time
	began   beganMsg
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
		m.began, m.point = msg, nil
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
	if m.gone || m.began.total == 0 {
		return ""
	}
	b := m.began
	now := "setting up"
	if m.point != nil {
		now = fmt.Sprintf("%s, CPU %.0f %% / %.0f %%", units.FormatRate(m.point.Bits), m.point.SenderCPU, m.point.ReceiverCPU)
	}
	again := ""
	if b.attempt > 0 {
		again = fmt.Sprintf(" (attempt %d)", b.attempt+1)
	}
	return fmt.Sprintf("%s trial %d%s  %s  %s\n", strong.Render(b.trial.Scenario), b.trial.Block+1, again, now,
		faint.Render(fmt.Sprintf("%d of %d, %s left", b.number, b.total, m.left())))
}

// left estimates the remaining time from what the trials so far took.
func (m *liveModel) left() string {
	if m.began.number < 2 {
		return "…"
	}
	each := time.Since(m.started) / time.Duration(m.began.number)
	return (each * time.Duration(m.began.total-m.began.number)).Round(time.Second).String()
}
