package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
)

// topModel is `vrouter top` on a terminal.
type topModel struct {
	ctx     context.Context
	client  *api.Client
	before  sample
	rates   []inspect.Rate
	options inspect.Options
	height  int
	node    string
	err     error
}

type sampled struct {
	sample
	err error
}

func topOnTerminal(ctx context.Context, c *api.Client) error {
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	first, err := takeSample(ctx, c)
	if err != nil {
		return err
	}
	m := topModel{ctx: ctx, client: c, before: first, node: status.Node, options: optionsFor(os.Stdout)}
	end, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("draw on this terminal: %w; use `vrouter top | cat` for plain lines", err)
	}
	return end.(topModel).err
}

// Init schedules the next reading.
func (m topModel) Init() tea.Cmd { return m.nextSecond() }

func (m topModel) nextSecond() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg {
		s, err := takeSample(m.ctx, m.client)
		return sampled{s, err}
	})
}

// Update handles readings, keys and changes of the terminal's size.
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.options.Width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			return m, tea.Quit
		}
	case sampled:
		if msg.err != nil {
			m.err = msg.err
			return m, tea.Quit
		}
		m.rates, m.before = msg.since(m.before), msg.sample
		return m, m.nextSecond()
	}
	return m, nil
}

// View fills the terminal.
func (m topModel) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}

// text has as many rows as the terminal has lines for.
func (m topModel) text() string {
	head := fmt.Sprintf("node %s  %s  q quits\n\n", m.node, m.before.at.Format("15:04:05"))
	if m.rates == nil {
		return head + "measuring for one second…\n"
	}
	shown := m.rates
	const around = 6 // the head, the headings, notes below
	if room := m.height - around; room > 0 && len(shown) > room {
		shown = shown[:room]
	}
	text := head + inspect.RateTable(shown).Render(m.options)
	if len(shown) < len(m.rates) {
		text += fmt.Sprintf("and %d less busy\n", len(m.rates)-len(shown))
	}
	return text
}
