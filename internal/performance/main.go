// Command performance measures the figures of docs/performance.md and prints them as
// Markdown, each with its target. Run nothing else meanwhile.
//
//	go run ./internal/performance [-only steadiness,distance,agreement,overheads,overlay,vrouter,peers,honesty,power,rigor,scale]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
)

// session measures with the windtunnel program, which it runs as a user does.
type session struct {
	program string
	folder  string
	noise   string // file for the samples of honesty; "" writes none
	runs    int    // number of runs of each suite in honesty and power
	failed  bool
}

func main() {
	only := flag.String("only", "steadiness,distance,agreement,overheads,overlay,vrouter,peers,honesty,power,rigor", "which figures; scale measures simulated hosts and is not among the default ones")
	noise := flag.String("noise", "", "file for the samples of the honesty runs (CSV), for the simulation over them")
	program := flag.String("program", "bin/windtunnel", "the windtunnel program")
	runs := flag.Int("runs", 20, "number of runs of each suite in honesty and power")
	flag.Parse()
	if err := run(*program, *noise, *runs, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

func run(program, noise string, runs int, only []string) error {
	folder, err := os.MkdirTemp("", "windtunnel-performance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	b := &session{program: path, folder: folder, noise: noise, runs: runs}
	parts := []struct {
		name    string
		measure func() error
	}{{"steadiness", b.steadiness}, {"distance", b.distances}, {"agreement", b.agreement}, {"overheads", b.overheads}, {"overlay", b.overlay}, {"vrouter", b.vrouter}, {"peers", b.peers}, {"honesty", b.honesty}, {"power", b.power}, {"rigor", b.rigor}, {"scale", b.scale}}
	for _, p := range parts {
		if !slices.Contains(only, p.name) {
			continue
		}
		fmt.Printf("\n### %s\n\n| figure | target | measured | |\n| --- | --- | --- | --- |\n", strings.ToUpper(p.name[:1])+p.name[1:])
		if err := p.measure(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if b.failed {
		fmt.Println("\nNot every target was met.")
	}
	return nil
}

// row prints one figure and whether it meets its target.
func (b *session) row(figure, target, measured string, met bool) {
	mark := "met"
	if !met {
		mark, b.failed = "**missed**", true
	}
	fmt.Printf("| %s | %s | %s | %s |\n", figure, target, measured, mark)
}

// suite runs a suite with the store name.db, and returns the report. The suite is the
// first of args if that is not a flag; otherwise it is name.
func (b *session) suite(name string, args ...string) (*model.Report, error) {
	db := filepath.Join(b.folder, name+".db")
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{name}, args...)
	}
	cmd := exec.Command(b.program, append([]string{"run", args[0], "--db", db, "--out", filepath.Join(b.folder, name)}, args[1:]...)...)
	cmd.Stderr = os.Stderr
	if out, err := cmd.Output(); err != nil {
		return nil, fmt.Errorf("run %s: %w\n%s", args[0], err, out)
	}
	return b.read(db)
}

// read returns the windtunnel program's report of the newest run in a store.
func (b *session) read(db string) (*model.Report, error) {
	out, err := exec.Command(b.program, "report", "--format", "json", "--db", db).Output()
	if err != nil {
		return nil, fmt.Errorf("report the run in %s: %w", db, err)
	}
	var r model.Report
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("read the report of %s: %w", db, err)
	}
	return &r, nil
}

// values lists a metric over a scenario's trials that count.
func values(s model.Scenario, m sample.Metric) []float64 {
	var v []float64
	for _, smp := range s.Counting() {
		if x, ok := smp.Metrics[m]; ok {
			v = append(v, x)
		}
	}
	return v
}

func total(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

func find(r *model.Report, id string) (model.Scenario, bool) {
	i := slices.IndexFunc(r.Scenarios, func(s model.Scenario) bool { return s.ID == id })
	if i < 0 {
		return model.Scenario{}, false
	}
	return r.Scenarios[i], r.Scenarios[i].Trials > 0
}
