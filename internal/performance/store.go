package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/lab/probe"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
)

// measurement has the stored rows of a part whose figures are not the tables of one run.
type measurement struct {
	Origin origin   `json:"origin"`
	Rows   []figure `json:"rows"`

	runs []*model.Report // the runs from which the figures come
}

// figure is a figure, its target and the verdict.
type figure struct {
	Figure   string  `json:"figure"`
	Target   string  `json:"target,omitempty"`
	Measured string  `json:"measured"`
	Verdict  verdict `json:"verdict,omitempty"`
}

type verdict string

const (
	met    verdict = "met"
	missed verdict = "missed"
)

// row adds a figure and whether it meets its target.
func (b *session) row(what, target, measured string, meets bool) {
	v := met
	if !meets {
		v = missed
	}
	b.add(figure{what, target, measured, v})
}

// note adds a figure that has no target.
func (b *session) note(what, measured string) { b.add(figure{Figure: what, Measured: measured}) }

func (b *session) add(f figure) {
	b.measured.Rows = append(b.measured.Rows, f)
	fmt.Fprintf(os.Stderr, "%s: %s %s\n", f.Figure, f.Measured, f.Verdict)
}

// db returns the path of the store with the runs of the part, and rows that of the file with its figures.
func (b *session) db() string   { return filepath.Join(b.store, b.part+".db") }
func (b *session) rows() string { return filepath.Join(b.store, b.part+".json") }

// begin notes the start of a measurement, and the load of the machine.
func (b *session) begin() {
	b.measured.Origin = origin{Revision: b.revision, From: time.Now().Truncate(time.Second)}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		b.measured.Origin.Remark = fmt.Sprintf("load average %.2f before", float64(info.Loads[0])/(1<<16))
	}
}

// save stores the rows. Their origin includes that of the runs.
func (b *session) save() error {
	o := &b.measured.Origin
	o.Machine, o.To = machine(probe.Probe().Environment(nil)), time.Now().Truncate(time.Second)
	if b.measured.runs != nil {
		*o = originOf(b.measured.runs...).until(o.To)
	}
	text, err := json.MarshalIndent(b.measured, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.rows(), text, 0o644)
}

// load returns the stored rows of a part; nil if there are none.
func (b *session) load(part string) (*measurement, error) {
	text, err := os.ReadFile(filepath.Join(b.store, part+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m measurement
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read the stored figures of %s: %w", part, err)
	}
	return &m, nil
}

// current reports whether figures are of the program's revision. Changes that are not committed do not count:
// the page itself is such a change.
func (b *session) current(revision string) bool {
	return strings.TrimSuffix(revision, "-dirty") == strings.TrimSuffix(b.revision, "-dirty")
}

// complete reports whether a run is complete and of the program's revision.
func (b *session) complete(r *model.Report) bool {
	return r != nil && r.Run.Status == sample.Complete && b.current(r.Run.Environment.Revision)
}

// suite returns the report of a run of a suite with this name from the part's store. If
// it is missing, or of another revision, suite runs it: the suite is the first of args if that is not a
// flag; otherwise it is name.
func (b *session) suite(name string, args ...string) (*model.Report, error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{name}, args...)
	}
	return b.stored(name, append([]string{"run"}, args...))
}

// stored returns the report of the complete run with this name from the part's store. It resumes an
// interrupted run, and starts one by the command if there is none of this revision.
func (b *session) stored(name string, command []string) (*model.Report, error) {
	r, err := newest(b.db(), name)
	if err != nil {
		return nil, err
	}
	if !b.complete(r) {
		if r == nil || !b.current(r.Run.Environment.Revision) || r.Run.Status == sample.Empty {
			command = b.brief(append(command, "--name", name)...)
		} else {
			command = []string{"run", "--resume", r.Run.ID}
		}
		cmd := exec.CommandContext(b.ctx, b.program, append(command, "--db", b.db(), "--out", filepath.Join(b.scratch, name))...)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = time.Minute
		cmd.Stderr = os.Stderr
		out, failed := cmd.Output()
		if r, err = newest(b.db(), name); err != nil || !b.complete(r) { // a run with failed scenarios is complete, although the command fails
			why := cmp.Or(errors.Join(failed, err, b.ctx.Err()), errors.New("it was interrupted, or is of another revision"))
			return nil, fmt.Errorf("windtunnel %s: the run is not complete: %w\n%s", strings.Join(command, " "), why, out)
		}
	}
	b.measured.runs = append(b.measured.runs, r)
	return r, nil
}

// brief returns a command of windtunnel that measures. With -short its trials are few and short, and all count.
func (b *session) brief(command ...string) []string {
	if b.short {
		return append(command, "--trials", "2", "--duration", "200ms", "--gates", "warn")
	}
	return command
}

// newest returns the report of the latest run with this name in a store; nil if there is none.
func newest(db, name string) (*model.Report, error) {
	data, err := newestRun(db, name)
	if err != nil || data == nil {
		return nil, err
	}
	return report.Build(data.Run, data.Plan, data.Samples), nil
}

// newestRun returns the latest run with this name, or with any name if it is "", without its figures.
func newestRun(db, name string) (*results.RunData, error) {
	if _, err := os.Stat(db); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, err := results.Open(db, results.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	runs, err := store.Runs()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(runs, func(r results.RunSummary) bool { return name == "" || r.Name == name })
	if i < 0 {
		return nil, nil
	}
	return store.Load(runs[i].ID)
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
	s := r.Row(id)
	if s == nil {
		return model.Scenario{}, false
	}
	return *s, s.Trials > 0
}
