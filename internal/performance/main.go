// Command performance measures the figures of docs/performance.md, keeps them in a store, and
// writes them into the page. Run nothing else meanwhile.
//
//	go run ./internal/performance -write docs/performance.md           # measure what the store lacks, write the page
//	go run ./internal/performance -only overlay,systems -time 25m      # two parts; the same command continues after 25 minutes
//	go run ./internal/performance -render -write docs/performance.md   # write what the store has
//
// A part is measured if the store has no figures of it at the revision of the windtunnel program.
// Changes that are not committed do not count; -again measures the parts again. An interrupted run of a suite is
// resumed. Only complete runs are written into the page.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/stopsignal"
)

// part is a section of the figures that is measured by itself.
type part struct {
	name string
	// suite has the arguments of `windtunnel run`, if one run has all figures of the part. grids are the tables of this run.
	suite []string
	grids []grid
	// measure adds the rows of a part that needs several runs, or measures without the lab.
	measure func(*session) error
	// apart: the figures are in another page, and the part is measured only by its name.
	apart bool
	// A part with neither suite nor measure is measured by make bench-kubernetes.
}

var parts = []part{
	{name: "overlay", suite: []string{"overlay"}, grids: overlay},
	{name: "parity", suite: []string{"parity"}, grids: parity},
	{name: "overlay-traffic", suite: []string{"overlay-traffic"}, grids: overlayTraffic},
	{name: "lossy", suite: []string{"overlay-traffic", "--scenario", scenarios(lossy)}, grids: lossy},
	{name: "systems", suite: []string{"systems"}, grids: systems},
	{name: "packets", suite: []string{"packets", "--trials", "6", "--scenario", scenarios(packets)}, grids: packets},
	{name: "loaded-latency", suite: []string{"loaded-latency", "--trials", "6", "--scenario", scenarios(loadedLatency)}, grids: loadedLatency},
	{name: "loss", suite: []string{"packets", "--trials", "6", "--scenario", scenarios(loss)}, grids: loss},
	{name: "pace", suite: []string{"loaded-latency", "--trials", "6", "--scenario", scenarios(pace)}, grids: pace},
	{name: "sweep", suite: []string{"sweep"}, grids: sweep},
	{name: "churn", suite: []string{"churn", "--trials", "6", "--scenario", "bridge,docker-bridge,vrouter-direct,vrouter-direct-policy,vrouter-vxlan,vxlan,flannel-vxlan"}, grids: churn},
	{name: "gateway", suite: []string{"gateway"}, grids: gateway},
	{name: "kubernetes-pods"}, {name: "kubernetes-connections"}, {name: "kubernetes-start"},
	{name: "peers", measure: (*session).peers},
	{name: "vrouter", measure: (*session).vrouter},
	{name: "steadiness", measure: (*session).steadiness},
	{name: "distance", measure: (*session).distances},
	{name: "agreement", measure: (*session).agreement},
	{name: "overheads", measure: (*session).overheads},
	{name: "honesty", measure: (*session).honesty},
	{name: "power", measure: (*session).power},
	{name: "rigor", measure: (*session).rigor},
	{name: "scale", measure: (*session).scale, apart: true},
}

// session measures with the windtunnel program, which it runs as a user does.
type session struct {
	ctx      context.Context
	program  string
	revision string // of the program
	store    string // folder with the runs and rows of each part
	scratch  string // folder of files that are not kept
	noise    string // file for the samples of honesty; "" writes none
	runs     int    // number of runs of each suite in honesty and power
	short    bool   // two brief trials of each scenario, to show that the parts work
	again    bool

	part     string // name of the part that is being measured
	measured measurement
}

func main() {
	var s session
	flag.StringVar(&s.program, "program", "bin/windtunnel", "The windtunnel program")
	flag.StringVar(&s.store, "store", "out/performance", "Folder of the measured figures")
	flag.StringVar(&s.noise, "noise", "", "File for the samples of the honesty runs (CSV), for the simulation over them")
	flag.IntVar(&s.runs, "runs", 20, "Number of runs of each suite in honesty and power")
	flag.BoolVar(&s.short, "short", false, "Show in minutes that the parts work, in another store: the figures say nothing")
	flag.BoolVar(&s.again, "again", false, "Measure the parts of -only again")
	only := flag.String("only", "", "Parts to measure and show, separated by commas (default: all but scale): "+strings.Join(names(parts), ", "))
	limit := flag.Duration("time", 0, "Interrupt the measurement after this time, such as 25m; the same command resumes it")
	page := flag.String("write", "", "Page to write the figures into")
	render := flag.Bool("render", false, "Measure nothing, and show or write what the store has")
	flag.Parse()
	ctx, stop := stopsignal.Context()
	defer stop()
	if *limit > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, *limit, fmt.Errorf("the time of -time, %s, is over", *limit))
		defer stop()
	}
	s.ctx = ctx
	if err := s.run(*only, *page, *render); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// rounds returns how often a part makes a measurement: `all` times, or once with -short.
func (b *session) rounds(all int) int {
	if b.short {
		return 1
	}
	return all
}

func names(parts []part) (list []string) {
	for _, p := range parts {
		list = append(list, p.name)
	}
	return list
}

// run measures parts, and then shows all blocks of these parts or writes them into the page.
func (b *session) run(only, page string, render bool) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if b.again && only == "" {
		return fmt.Errorf("-again needs -only: name the parts to measure again")
	}
	if b.short {
		b.store += "-short"
	}
	var failed error
	if !render {
		if err := b.open(); err != nil {
			return err
		}
		defer os.RemoveAll(b.scratch)
		failed = b.measure(chosen)
	}
	blocks, err := b.blocks(chosen)
	if err != nil {
		return err
	}
	if page == "" {
		for _, k := range blocks {
			fmt.Printf("\n### %s\n\n%s", k.name, k.text)
		}
		return failed
	}
	if err := write(page, blocks); err != nil {
		return err
	}
	return failed
}

// choose returns the named parts; without names all parts of the page.
func choose(only string) (chosen []part, err error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.apart }), nil
	}
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no such part; the parts are %s", name, strings.Join(names(parts), ", "))
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

// open makes the folders and asks the program for its revision.
func (b *session) open() (err error) {
	for _, path := range []*string{&b.program, &b.store} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(b.store, 0o755); err != nil {
		return err
	}
	if b.scratch, err = os.MkdirTemp("", "windtunnel-performance-"); err != nil {
		return err
	}
	out, err := exec.Command(b.program, "--version").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its revision: %w; build it with `make build`, or name it with -program", b.program, err)
	}
	if m := regexp.MustCompile(`\((.+)\)`).FindSubmatch(out); m != nil {
		b.revision = string(m[1])
	}
	return nil
}

// measure measures the parts that the store lacks at this revision. It tries all parts, and returns the
// errors of those that failed.
func (b *session) measure(chosen []part) (failed error) {
	var failures []string
	for _, p := range chosen {
		if p.suite == nil && p.measure == nil {
			fmt.Fprintf(os.Stderr, "\n== %s: only make bench-kubernetes measures it\n", p.name)
			continue
		}
		b.part, b.measured = p.name, measurement{}
		if b.again {
			for _, file := range []string{b.db(), b.rows()} {
				if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
					return err
				}
			}
		}
		start := time.Now()
		fmt.Fprintf(os.Stderr, "\n== %s\n", p.name)
		if err := b.one(p); err != nil {
			if b.ctx.Err() != nil {
				return fmt.Errorf("%s: %w: run the same command to continue", p.name, context.Cause(b.ctx))
			}
			failures = append(failures, fmt.Sprintf("%s: %v", p.name, err))
			fmt.Fprintln(os.Stderr, failures[len(failures)-1])
		}
		fmt.Fprintf(os.Stderr, "== %s: %s\n", p.name, time.Since(start).Round(time.Second))
	}
	if failures != nil {
		return fmt.Errorf("%s", strings.Join(failures, "\n"))
	}
	return nil
}

// one measures a part if the store does not have its figures.
func (b *session) one(p part) error {
	if p.suite != nil {
		_, err := b.suite(p.name, p.suite...)
		return err
	}
	if m, err := b.load(p.name); err != nil || m != nil && b.current(m.Origin.Revision) {
		return err
	}
	b.begin()
	if err := p.measure(b); err != nil {
		return err
	}
	return b.save()
}
