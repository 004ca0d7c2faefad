package report

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// byHandHint tells readers the requirements and limits of the lines of ByHand.
const byHandHint = "As root, with windtunnel on PATH. The first line builds the nodes, the fabric and the system, and keeps them; the last line removes them and ends the servers. " +
	"The lab assigns the same addresses as the run did. Scenarios with VMs are not listed, because VMs end with the run. These lines have no meters, no validity checks and no random order. For a suite of your own, write the path of its file in place of its name."

// ByHand returns the shell commands, for root, that repeat a trial of each scenario without the
// engine: the lab builds nodes, fabric and system, and the tool's commands are those that the
// run recorded. It leaves out scenarios with VMs, because a VM ends with the program that
// started it. A run between pairs of hosts has none, because the lines make a testbed on one
// machine.
func ByHand(r *model.Report) []document.Code {
	var list []document.Code
	if r.HostMatrices != nil {
		return nil
	}
	for i := range r.Scenarios {
		if commands := commands(&r.Scenarios[i]); commands != nil && r.Scenarios[i].Endpoint.Kind != suite.VM {
			list = append(list, document.Code{Title: r.Scenarios[i].ID, Lines: byHand(r.Run.Suite, r.Scenarios[i].ID, commands)})
		}
	}
	return list
}

// commands returns the commands of the first trial that yielded figures.
func commands(s *model.Scenario) []sample.Command {
	for i := range s.Samples {
		if sm := &s.Samples[i]; sm.OK() && len(sm.Commands) > 0 {
			return sm.Commands
		}
	}
	return nil
}

// byHand returns the lines of one trial. The servers start first, then the clients
// after a second. All commands but the last run in the background.
func byHand(suiteName, scenario string, commands []sample.Command) []string {
	name := phrase.Shell([]string{suiteName})
	var lines phrase.Lines
	lines.Say("windtunnel lab up %s --scenario %s", name, phrase.Shell([]string{scenario}))
	several := false // several clients: wait for all of them
	ordered := slices.Clone(commands)
	slices.SortStableFunc(ordered, func(a, b sample.Command) int { return model.After(!isServer(a.Role), !isServer(b.Role)) })
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
		lines[i] = phrase.Printable(lines[i]) // a name must not break the line
	}
	return lines
}

// isServer reports whether a role is a server's: "server", or "server 2" for the
// second pair.
func isServer(role string) bool {
	return strings.HasPrefix(role, "server")
}

// Repeat returns the shell commands that repeat the run, and the processes of the first trial
// with recorded commands.
func Repeat(r *model.Report) []string {
	lines := phrase.Lines{fmt.Sprintf("%s --seed %d", r.Run.Command(), r.Run.Seed)}
	for i := range r.Scenarios {
		if commands := commands(&r.Scenarios[i]); commands != nil {
			lines.Say("")
			lines.Say("# one trial of %s", r.Scenarios[i].ID)
			for _, c := range commands {
				lines.Say("%s  # %s on %s", phrase.Shell(c.Argv), c.Role, c.On)
			}
			break
		}
	}
	return lines
}
