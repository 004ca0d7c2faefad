package model

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// ByHand is how a person repeats one scenario's test without the engine: the
// lab builds nodes, fabric and system, and the tool's own commands, as the run
// recorded them, do the rest.
type ByHand struct {
	Scenario string
	Lines    []string // for a POSIX shell, as root
}

// ByHandHint says what the lines need and what they leave out.
const ByHandHint = "As root, with windtunnel on PATH. The first line builds the nodes, the fabric and the system, and leaves them standing; the last takes all of it away, servers included. " +
	"The addresses are those that the run had, and that the lab gives again. Scenarios with VMs, which live no longer than a run, cannot be repeated so. What the engine does around a trial (the meter, the gates, the order) is not in this. For a suite that does not come with the lab, put its file’s path for its name."

// ByHand gives, for every scenario that ran, the lines that repeat one trial. VMs
// live no longer than the program that started them, so theirs are left out.
func (r *Report) ByHand() []ByHand {
	var list []ByHand
	for i := range r.Scenarios {
		if commands := r.Scenarios[i].commands(); commands != nil && r.Scenarios[i].Endpoint.Kind != suite.VM {
			list = append(list, ByHand{Scenario: r.Scenarios[i].ID, Lines: byHand(r.Run.Suite, r.Scenarios[i].ID, commands)})
		}
	}
	return list
}

// commands are those of the first trial that yielded figures.
func (s *Scenario) commands() []sample.Command {
	for i := range s.Samples {
		if sm := &s.Samples[i]; sm.OK() && len(sm.Commands) > 0 {
			return sm.Commands
		}
	}
	return nil
}

// byHand starts the servers and then the others, all but the last in the
// background, as the engine does; the servers get a moment to listen.
func byHand(suiteName, scenario string, commands []sample.Command) []string {
	name := phrase.Shell([]string{suiteName})
	var lines phrase.Lines
	lines.Say("windtunnel lab up %s --scenario %s", name, phrase.Shell([]string{scenario}))
	several := false // clients at once, of which the last may not end last
	ordered := slices.Clone(commands)
	slices.SortStableFunc(ordered, func(a, b sample.Command) int { return after(!isServer(a.Role), !isServer(b.Role)) })
	for i, c := range ordered {
		end := ""
		switch {
		case i == len(ordered)-1:
		case isServer(c.Role):
			end = " &"
		default:
			end, several = ` & clients="$clients $!"`, true
		}
		lines.SayIf(i > 0 && isServer(ordered[i-1].Role) && !isServer(c.Role), "sleep 1")
		lines.Say("windtunnel lab exec %s %s -- %s%s  # %s", name, phrase.Shell([]string{c.On}), phrase.Shell(c.Argv), end, c.Role)
	}
	lines.SayIf(several, "wait $clients")
	lines.Say("windtunnel lab down %s", name)
	for i := range lines {
		lines[i] = phrase.Printable(lines[i]) // one line each, whatever a name holds
	}
	return lines
}

// isServer reports whether a role is that of a process that waits for others:
// "server", or "server 2" where there are several pairs.
func isServer(role string) bool {
	return strings.HasPrefix(role, "server")
}

// Repeat has the commands that repeat the run, and the processes of one trial.
type Repeat struct {
	Run      []string // shell commands that repeat the run
	Scenario string   // scenario of the trial in Steps
	Steps    []Step
}

// Step is one process of a trial.
type Step struct {
	Role, On string // "server", the endpoint
	Line     string // command line, quoted for a shell
}

// Repeat returns the commands that repeat the run. Its Steps are from the first
// trial with recorded commands.
func (r *Report) Repeat() Repeat {
	again := Repeat{Run: []string{fmt.Sprintf("%s --seed %d", r.Run.Command(), r.Run.Seed)}}
	for i := range r.Scenarios {
		if commands := r.Scenarios[i].commands(); commands != nil {
			again.Scenario = r.Scenarios[i].ID
			for _, c := range commands {
				again.Steps = append(again.Steps, Step{c.Role, c.On, phrase.Shell(c.Argv)})
			}
			break
		}
	}
	return again
}

// Command returns the command that started the run, without --seed. Runs of earlier
// versions recorded only the suite.
func (i *RunInfo) Command() string {
	text := "windtunnel " + i.Options.Command
	if i.Options.Command == "" {
		if text += "run " + phrase.Shell([]string{i.Suite}); i.Short {
			text += " --short"
		}
	}
	if i.Options.Lenient {
		text += " --gates warn"
	}
	return text
}
