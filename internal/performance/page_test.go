package main

import (
	"encoding/json"
	"flag"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/suites"
)

var update = flag.Bool("update", false, "write testdata/page.golden again")

// The page has the block of each part and no other, and its table of origins follows from its blocks.
func TestThePageHasTheBlockOfEachPart(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/performance.md"))(t))
	var have []string
	for _, k := range must.Get(read(page))(t) {
		have = append(have, k.name)
	}
	want := append(blockNames(), provenance)
	slices.Sort(have)
	slices.Sort(want)
	must.Equal(t, want, have)
	must.Equal(t, page, must.Get(fill(page, nil))(t))
	must.Equal(t, len(have), strings.Count(page, "<!-- figures: "))
}

// Stored runs and rows fill a page, and so do the runs of all suites. A part that the store lacks keeps
// its block, and the table of origins names it.
func TestStoredFiguresFillThePage(t *testing.T) {
	b := &session{store: t.TempDir()}
	var blocks []block
	for _, p := range parts {
		if p.suite == nil {
			continue
		}
		run, plan, samples := madeUp(t, p)
		blocks = append(blocks, p.tables(report.Build(run, plan, samples))...)
		if b.part = p.name; p.name == "gateway" {
			store := must.Get(results.Open(b.db(), results.Options{}))(t)
			must.Succeed(t, store.CreateRun(run, plan))
			for _, smp := range samples {
				must.Get(store.AppendSample(run.ID, smp))(t)
			}
			must.Succeed(t, store.Close())
			blocks = blocks[:len(blocks)-1]
		}
	}
	b.part = "overheads"
	b.row("two nodes with VXLAN up, median of 9", "< 0.5 s", "0.075 s", true)
	b.row("engine and agents within a window", "< 2 % of a CPU", "3.16 %", false)
	b.note("`windtunnel runs`", "12 MB")
	b.measured.Origin = origin{Machine: "another CPU, 4 CPUs, Linux 6.12", Revision: "b2", From: time.Date(2026, 11, 27, 23, 50, 0, 0, time.UTC), To: time.Date(2026, 11, 28, 0, 9, 0, 0, time.UTC), Remark: "load average 0.12 before"}
	must.Succeed(t, os.WriteFile(b.rows(), must.Get(json.Marshal(b.measured))(t), 0o644))
	blocks = append(blocks, must.Get(b.blocks(parts))(t)...)

	var page strings.Builder
	page.WriteString("# Performance\n")
	for _, name := range append(blockNames(), provenance) {
		k := block{name: name, text: "old\n"}
		if name == "peers" {
			k.origin = origin{Machine: "M1", Revision: "c3", From: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
		}
		page.WriteString("\n" + k.String())
	}
	text := must.Get(fill(page.String(), blocks))(t)
	must.Equal(t, text, must.Get(fill(text, blocks))(t))
	const golden = "testdata/page.golden"
	if *update {
		must.Succeed(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	must.Equal(t, strings.Split(string(must.Get(os.ReadFile(golden))(t)), "\n"), strings.Split(text, "\n"))

	_, err := fill("no block", blocks)
	must.Fail(t, err, "the page has no block overlay")
}

// Each line and each column of a grid has a figure in a run of its suite.
func TestGridsNameScenariosOfTheirSuites(t *testing.T) {
	for _, p := range parts {
		if p.suite == nil {
			continue
		}
		r := report.Build(madeUp(t, p))
		for _, g := range p.grids {
			filled := make([]bool, len(g.columns))
			for _, row := range g.table(r).Rows {
				any := strings.HasPrefix(row.Cells[0].Text, "target") || row.Cells[0].Mark == "(no figures)"
				for i, c := range row.Cells[1 : len(row.Cells)-1] {
					any, filled[i] = any || c.Text != "–", filled[i] || c.Text != "–"
				}
				if !any {
					t.Errorf("%s: line %q has no figure", p.name, row.Cells[0].Text)
				}
			}
			for i, c := range g.columns {
				if !filled[i] {
					t.Errorf("%s: column %q has no figure", p.name, c.name)
				}
			}
		}
	}
}

// madeUp makes a run of a part's suite. Its figures follow from the names of the scenarios.
func madeUp(t *testing.T, p part) (sample.Run, suite.Plan, []sample.Sample) {
	t.Helper()
	s := must.Get(suite.Parse(p.suite[0], must.Get(suites.Read(p.suite[0]))(t)))(t)
	options := suite.ExpandOptions{Trials: 6}
	if i := slices.Index(p.suite, "--scenario"); i > 0 {
		options.Scenarios = strings.Split(p.suite[i+1], ",")
	}
	plan := must.Get(s.Expand(options))(t)
	started := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	run := sample.Run{
		ID: "20261128-090000-" + p.name, Name: p.name, Suite: plan.Suite, Started: started, Finished: started.Add(20 * time.Minute), Status: sample.Complete,
		Environment: sample.Environment{CPUModel: "a CPU", CPUs: 2, Kernel: "6.18.44", Revision: "a1"},
	}
	var samples []sample.Sample
	for block := range plan.Trials {
		for i, sc := range plan.Scenarios {
			if sc.System == "weave" { // none of its trials counts
				continue
			}
			hash := fnv.New32()
			hash.Write([]byte(sc.ID))
			quick := 0.5 + float64(hash.Sum32()%1000)/1000 + float64(block)/100
			smp := sample.Sample{Scenario: sc.ID, Block: block, Position: i, Started: started.Add(time.Duration(block) * time.Minute), Metrics: sample.Metrics{
				sample.SenderCPUPerPacket: 900 / quick, sample.ReceiverCPUPerPacket: 1200 / quick,
			}}
			if sc.Workload.Kind.Exchange() {
				smp.Metrics[sample.Transactions], smp.Metrics[sample.LoadThroughput] = 15e3*quick, 13e9*quick
				smp.Metrics[sample.LatencyP50], smp.Metrics[sample.LatencyP99], smp.Metrics[sample.LatencyP999] = 60e3/quick, 110e3/quick, 300e3/quick
			} else {
				smp.Metrics[sample.Throughput], smp.Metrics[sample.DatagramsReceived] = 12e9*quick, 200e3*quick
				smp.Metrics[sample.SenderCPUPerByte], smp.Metrics[sample.ReceiverCPUPerByte] = 0.3/quick, 0.4/quick
				smp.Metrics[sample.LostDatagrams], smp.Metrics[sample.Interruption] = 3/quick, 2e6/quick
			}
			if block == 2 && i == 0 {
				failed := smp
				failed.Gates = []sample.Gate{{Name: sample.ForeignCPU, Value: 31, Limit: 5, Unit: "%"}}
				samples = append(samples, failed)
				smp.Attempt = 1
			}
			samples = append(samples, smp)
		}
	}
	return run, *plan, samples
}
