package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
)

// overheads measures the CPU, memory and time that the lab itself needs.
func (b *session) overheads() error {
	for _, measure := range []func() error{b.probing, b.testbeds, b.containers, b.observers, b.reports, b.storage, b.sizes} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// probing measures the time to probe the machine. Each run probes it once.
func (b *session) probing() error {
	start := time.Now()
	probe.Probe()
	took := time.Since(start).Seconds()
	b.row("probing the machine", "< 0.3 s", fmt.Sprintf("%.3f s", took), took < 0.3)
	return nil
}

const rounds = 9

func (b *session) testbeds() error {
	sc := scenario("vxlan", 1)
	var ups, downs []float64
	for range rounds {
		up, down, err := b.upAndDown(sc)
		if err != nil {
			return err
		}
		ups, downs = append(ups, up), append(downs, down)
	}
	slices.Sort(ups)
	slices.Sort(downs)
	b.row(fmt.Sprintf("two nodes with VXLAN up, median of %d", rounds), "< 0.5 s", fmt.Sprintf("%.3f s", ups[rounds/2]), ups[rounds/2] < 0.5)
	b.row(fmt.Sprintf("the same down, median of %d", rounds), "< 0.3 s", fmt.Sprintf("%.3f s", downs[rounds/2]), downs[rounds/2] < 0.3)
	return nil
}

func (b *session) containers() error {
	up, _, err := b.upAndDown(scenario("bridge", 25))
	if err != nil {
		return err
	}
	b.row("50 containers on 2 nodes up", "< 5 s", fmt.Sprintf("%.2f s", up), up < 5)
	return nil
}

// scenario is a scenario of which only the set-up is measured. The engine also looks up its tool.
func scenario(system string, pairs int) *suite.Scenario {
	return &suite.Scenario{
		ID: system, System: system, Tool: "builtin", Placement: suite.TwoNodes, Pairs: pairs,
		Fabric: suite.Fabric{Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1},
	}
}

func (b *session) upAndDown(sc *suite.Scenario) (up, down float64, err error) {
	ctx := context.Background()
	x := &netns.Executor{CPUs: probe.Probe().UsableCPUs(), Agent: []string{b.program, "agent"}}
	start := time.Now()
	bn, err := experiment.NewBench(ctx, x, space.RunID(os.Getpid()), sc, 2)
	if err != nil {
		return 0, 0, err
	}
	up = time.Since(start).Seconds()
	start = time.Now()
	err = bn.Down(ctx)
	return up, time.Since(start).Seconds(), err
}

// observers measures the CPU time of the engine and the agents within the measured
// window, and the engine's memory.
func (b *session) observers() error {
	db := filepath.Join(b.scratch, "observers.db")
	cmd := exec.CommandContext(b.ctx, b.program, b.brief("run", "quick", "--scenario", "bridge", "--trials", "3", "--db", db, "--out", filepath.Join(b.scratch, "observers"))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	data, err := newestRun(db, "")
	if err != nil {
		return err
	}
	worst := 0.0
	for _, s := range data.Samples {
		worst = max(worst, s.Metrics[sample.ObserverCores])
	}
	b.row("engine and agents within a window, worst trial", "< 2 % of a CPU", fmt.Sprintf("%.2f %%", 100*worst), worst < 0.02)
	rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	b.row("engine's resident memory at its largest", "< 150 MB", fmt.Sprintf("%.0f MB", float64(rss)/1024), rss < 150<<10)
	return nil
}

// makeStore makes a store with one run. trials is the number of trials of each scenario.
// It returns the store's file and the number of samples.
func (b *session) makeStore(name string, trials int) (db string, samples int, err error) {
	db = filepath.Join(b.scratch, name+".db")
	store, err := results.Open(db, results.Options{})
	if err != nil {
		return "", 0, err
	}
	defer store.Close()
	run, plan, all := reporttest.Sized(trials)
	if err := store.CreateRun(run, plan); err != nil {
		return "", 0, err
	}
	for _, s := range all {
		if _, err := store.AppendSample(run.ID, s); err != nil {
			return "", 0, err
		}
	}
	return db, len(all), store.Close()
}

// reports measures the time for an HTML report of 1,000 samples, including reading
// the store.
func (b *session) reports() error {
	db, samples, err := b.makeStore("thousand", 125)
	if err != nil {
		return err
	}
	var took []float64
	size := 0
	for range 5 {
		start := time.Now()
		out, err := exec.Command(b.program, "report", "--format", "html", "--db", db).Output()
		if err != nil {
			return err
		}
		if !bytes.Contains(out, []byte("</html>")) {
			return fmt.Errorf("the report is truncated")
		}
		size = len(out)
		took = append(took, time.Since(start).Seconds())
	}
	slices.Sort(took)
	b.row(fmt.Sprintf("`report --format html` of %d samples (%.1f MB), median of 5", samples, float64(size)/1e6), "< 1 s", fmt.Sprintf("%.2f s", took[2]), took[2] < 1)
	return nil
}

// storage measures the time to store, list and report 10,000 samples.
func (b *session) storage() error {
	start := time.Now()
	db, samples, err := b.makeStore("tenthousand", 1250)
	if err != nil {
		return err
	}
	each := time.Since(start).Seconds() / float64(samples)
	b.row(fmt.Sprintf("storing one sample of %d", samples), "< 20 ms", fmt.Sprintf("%.2f ms", 1000*each), each < 0.02)
	for _, c := range []struct {
		args []string
		most float64 // seconds
	}{{[]string{"runs"}, 1}, {[]string{"report", "--format", "json"}, 10}} {
		start := time.Now()
		out, err := exec.Command(b.program, append(c.args, "--db", db)...).Output()
		if err != nil || len(out) == 0 {
			return fmt.Errorf("windtunnel %s of %d samples: %d bytes printed: %w", c.args[0], samples, len(out), err)
		}
		took := time.Since(start).Seconds()
		b.row(fmt.Sprintf("`windtunnel %s` of %d samples", c.args[0], samples), fmt.Sprintf("< %.0f s", c.most), fmt.Sprintf("%.2f s", took), took < c.most)
	}
	return nil
}

func (b *session) sizes() error {
	info, err := os.Stat(b.program)
	if err != nil {
		return err
	}
	mb := float64(info.Size()) / 1e6
	b.row("size of the program", "< 40 MB", fmt.Sprintf("%.1f MB", mb), mb < 40)
	return nil
}
