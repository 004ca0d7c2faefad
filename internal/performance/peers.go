package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"windtunnel/lab/space"
)

// peers measures two times for every system: to bring up the testbed and prove its
// connectivity, and to remove it. It also lists leftover namespaces and files.
func (b *session) peers() error {
	times := b.rounds(5)
	const target = 10 * time.Second
	if before := leftBehind(); before != "nothing" {
		return fmt.Errorf("remains of earlier runs exist: %s; remove them with `windtunnel lab clean`, because this part checks that nothing remains", before)
	}
	out, err := exec.Command(b.program, "run", "systems", "--dry-run").Output()
	if err != nil {
		return fmt.Errorf("list the scenarios of suite systems: %w", err)
	}
	table, _, _ := strings.Cut(string(out), "\ncompared")
	for line := range strings.Lines(table) {
		id, _, _ := strings.Cut(line, " ")
		name, isStream := strings.CutSuffix(id, "/stream")
		if !isStream || strings.Contains(string(out), "skipped "+id) {
			continue
		}
		var ups, downs []time.Duration
		for range times {
			up, err := b.runTimed("lab", "up", "systems", "--scenario", id)
			if err != nil {
				return err
			}
			down, err := b.runTimed("lab", "down", "systems")
			if err != nil {
				return err
			}
			ups, downs = append(ups, up), append(downs, down)
		}
		slices.Sort(ups)
		slices.Sort(downs)
		left := leftBehind()
		b.row(name, "up in < 10 s, nothing left",
			fmt.Sprintf("up %.1f s, at most %.1f s; down %.1f s; left: %s", ups[times/2].Seconds(), ups[times-1].Seconds(), downs[times/2].Seconds(), left),
			ups[times-1] < target && left == "nothing")
	}
	return nil
}

// runTimed runs the windtunnel program and returns the duration.
func (b *session) runTimed(args ...string) (time.Duration, error) {
	start := time.Now()
	if out, err := exec.Command(b.program, args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("windtunnel %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(start), nil
}

// leftBehind lists the lab's namespaces and directories that still exist.
func leftBehind() string {
	names, err := space.Named(space.NamePrefix)
	if err != nil {
		return err.Error()
	}
	homes, err := filepath.Glob(space.Home("*"))
	if err != nil {
		return err.Error()
	}
	for _, h := range homes {
		if _, err := os.Stat(h); err == nil {
			names = append(names, h)
		}
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
