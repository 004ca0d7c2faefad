package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// The scripts compare, follow and delete stored runs of known difference.
func TestComparisonScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/compare.txt", "testdata/compare-errors.txt", "testdata/trend.txt", "testdata/runs.txt", "testdata/serve.txt"},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_DATA_HOME", env.WorkDir+"/data")
			return storeRuns(env.WorkDir)
		},
	})
}

// storeRuns makes main.db, with the runs main (A), again (equal to it), few
// (one block), elsewhere (another machine) and foreign (another suite); many.db
// has runs like main, and branch.db runs of the revision slower, whose
// bridge/stream is 5 % slower, made in turns; history.db
// has runs of which the later six are 8 % slower, and empty.db none.
func storeRuns(dir string) error {
	slower := func(r *stored) { r.bridge = 0.95; r.env.Revision = "slower"; r.name = "slower" }
	if err := putAll(dir, "main.db",
		newStored("main", 1), newStored("again", 2), newStored("few", 3, func(r *stored) { r.blocks, r.command = 1, "run pair --short" }),
		newStored("elsewhere", 4, func(r *stored) { r.env.CPUModel = "another" }),
		newStored("foreign", 5, func(r *stored) { r.suite = "other"; r.group = "gre" }),
		newStored("stopped", 6, func(r *stored) { r.status = sample.Stopped })); err != nil {
		return err
	}
	var before, after []stored
	for i := range uint64(4) {
		before = append(before, newStored(fmt.Sprintf("m%d", i), 40+2*i, func(r *stored) { r.name = "base" }))
		after = append(after, newStored(fmt.Sprintf("s%d", i), 41+2*i, slower))
	}
	if err := putAll(dir, "many.db", before...); err != nil {
		return err
	}
	if err := putAll(dir, "branch.db", after...); err != nil {
		return err
	}
	var history []stored
	for i := range 12 {
		history = append(history, newStored(fmt.Sprintf("h%02d", i), uint64(20+i), func(r *stored) {
			if i >= 6 {
				r.bridge, r.env.Kernel = 0.92, "6.18.9"
			}
		}))
	}
	if err := putAll(dir, "history.db", history...); err != nil {
		return err
	}
	return putAll(dir, "empty.db")
}

// stored describes a run.
type stored struct {
	id, suite, group string
	name, command    string
	seed             uint64
	blocks           int
	bridge           float64 // factor on its throughput
	status           sample.Status
	env              sample.Environment
}

func newStored(id string, seed uint64, changes ...func(*stored)) stored {
	r := stored{id: id, suite: "pair", group: "bridge", seed: seed, blocks: 10, bridge: 1, status: sample.Complete, env: sample.Environment{
		Hostname: "lab-1", Kernel: "6.18.3", CPUModel: "EPYC 9454P", CPUs: 4, Virtualization: "kvm", Version: "0.1.0", Revision: "main",
	}}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func putAll(dir, name string, runs ...stored) error {
	store, err := results.Open(filepath.Join(dir, name), results.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	for _, r := range runs {
		if err := r.put(store); err != nil {
			return err
		}
	}
	return nil
}

// put stores the run with samples from its seed: 1 % of noise on 9 Gbit/s.
func (r stored) put(store *results.Store) error {
	plan := suite.Plan{Suite: r.suite, Title: "a pair", Nodes: 2, Trials: r.blocks}
	for _, group := range []string{"raw", r.group} {
		if r.suite != "pair" && group == "raw" {
			continue
		}
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{
			ID: group + "/stream", System: group, Placement: suite.TwoNodes, Pairs: 1, Tool: "builtin",
			Workload: suite.Workload{Kind: suite.TCPStream, Streams: 1}, Fabric: suite.Fabric{Kind: suite.Wire, MTU: 1500},
		})
	}
	if r.suite == "pair" {
		plan.Comparisons = []suite.Comparison{{Baseline: "raw/stream", Subject: r.group + "/stream"}}
	}
	started := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(r.seed))
	run := sample.Run{ID: r.id, Name: r.name, Suite: r.suite, Title: plan.Title, Started: started, Finished: started.Add(time.Minute), Seed: r.seed, Status: r.status, Options: sample.Options{Command: r.command}, Environment: r.env}
	if err := store.CreateRun(run, plan); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(r.seed, 7))
	for block := range r.blocks {
		for position, sc := range plan.Scenarios {
			bits := 9e9 * math.Exp(0.01*random.NormFloat64())
			if sc.ID == "bridge/stream" {
				bits *= r.bridge
			}
			s := sample.Sample{Scenario: sc.ID, Block: block, Position: position, Started: started,
				Metrics: sample.Metrics{sample.Throughput: bits, sample.SenderCPUPerByte: 0.7 * math.Exp(0.01*random.NormFloat64())}}
			if _, err := store.AppendSample(r.id, s); err != nil {
				return err
			}
		}
	}
	return nil
}
