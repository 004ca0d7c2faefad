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
	"windtunnel/lab/testbed/netns"
)

// peers measures, for every system, the time to bring up and prove its testbed, the
// time to remove it, and the leftovers.
func (b *bench) peers() error {
	const times = 5
	const target = 10 * time.Second
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
			up, err := b.timed("lab", "up", "systems", "--scenario", id)
			if err != nil {
				return err
			}
			down, err := b.timed("lab", "down", "systems")
			if err != nil {
				return err
			}
			ups, downs = append(ups, up), append(downs, down)
		}
		slices.Sort(ups)
		slices.Sort(downs)
		left := leftBehind()
		b.row(fmt.Sprintf("%s: up with its testbed and proven, median and longest of %d; down", name, times), "< 10 s, nothing left",
			fmt.Sprintf("%.1f s, %.1f s; %.1f s; left: %s", ups[times/2].Seconds(), ups[times-1].Seconds(), downs[times/2].Seconds(), left),
			ups[times-1] < target && left == "nothing")
	}
	return nil
}

// timed runs the windtunnel program and returns its duration.
func (b *bench) timed(args ...string) (time.Duration, error) {
	start := time.Now()
	if out, err := exec.Command(b.program, args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("windtunnel %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(start), nil
}

// leftBehind lists the remaining namespaces and homes of the lab.
func leftBehind() string {
	names, err := space.Named(netns.Prefix)
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
