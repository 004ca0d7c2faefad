package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// storeOfRuns makes a store with runs of suites that have tables of documents. The oldest
// complete run of opencontrail has all scenarios, a newer one its short form.
func storeOfRuns(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "runs.db")
	store := must.Get(results.Open(path, results.Options{}))(t)
	defer store.Close()
	for i, r := range []struct {
		id, suite string
		short     bool
		status    sample.Status
	}{
		{"1-full", "opencontrail", false, sample.Complete}, {"2-full", "opencontrail", false, sample.Complete},
		{"3-short", "opencontrail", true, sample.Complete}, {"4-stopped", "opencontrail", false, sample.Stopped},
		{"5-converged", "converged", true, sample.Complete}, {"6-quick", "quick", false, sample.Complete},
	} {
		plan := must.Get(loadPlan(r.suite, suite.ExpandOptions{Short: r.short}))(t)
		at := time.Date(2026, 11, 23, i, 0, 0, 0, time.UTC)
		must.Succeed(t, store.CreateRun(sample.Run{ID: r.id, Suite: r.suite, Started: at, Finished: at, Status: r.status}, *plan))
	}
	return path
}

func reportOf(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := reportCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage = true
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestAPageAboutDocumentsTakesRunsAndSuites(t *testing.T) {
	db := storeOfRuns(t)
	for args, want := range map[string]string{
		"opencontrail":           "2-full", // the most scenarios, and the newest of these
		"3-short converged":      "3-short 5-converged",
		"converged opencontrail": "5-converged 2-full",
	} {
		page, err := reportOf(t, append([]string{"--db", db, "--format", "published"}, strings.Fields(args)...)...)
		if err != nil {
			t.Fatalf("report %s: %v", args, err)
		}
		var runs []string
		for _, line := range strings.Split(page, "\n") {
			if id, is := strings.CutPrefix(line, "Run "); is {
				id, _, _ = strings.Cut(id, " of ")
				runs = append(runs, id)
			}
		}
		if got := strings.Join(runs, " "); got != want {
			t.Errorf("%s shows the runs %s, want %s", args, got, want)
		}
	}
}

func TestAStoredRunHasTheCausesThatItsSuiteHasNow(t *testing.T) {
	plan := suite.Plan{Suite: "opencontrail", Causes: []suite.Cause{{Subject: "bridge/one", Cause: "as supposed then"}}}
	must.Succeed(t, refreshTexts(&plan))
	if plan.CauseOf("bridge/one", "", "") != "" || plan.CauseOf("vrouter-mpls-gre/one", "bridge/one", string(sample.ReceiverCores)) == "" {
		t.Errorf("causes %+v", plan.Causes)
	}
	own := suite.Plan{Suite: "my-own", Causes: plan.Causes}
	if err := refreshTexts(&own); err != nil || len(own.Causes) != len(plan.Causes) {
		t.Errorf("a suite of a file: %v, causes %+v", err, own.Causes)
	}
}

func TestAStoredRunHasTheTextsOfItsSuiteWhileTheScenariosAreTheSame(t *testing.T) {
	plan := must.Get(loadPlan("opencontrail", suite.ExpandOptions{}))(t)
	now := strings.Join(plan.Notes, "\n")
	for change, want := range map[string]string{"": now, "one scenario alone": now, "another tool": "as written then"} {
		old := *plan
		old.Notes, old.Scenarios = []string{"as written then"}, slices.Clone(plan.Scenarios)
		switch change {
		case "one scenario alone":
			old.Scenarios = old.Scenarios[1:2]
		case "another tool":
			old.Scenarios[0].Tool = change
		}
		text := must.Get(json.Marshal(old))(t)
		var stored suite.Plan
		must.Succeed(t, errors.Join(json.Unmarshal(text, &stored), refreshTexts(&stored)))
		if got := strings.Join(stored.Notes, "\n"); got != want {
			t.Errorf("change %q: notes %q, want %q", change, got, want)
		}
	}
}

func TestAPageAboutDocumentsSaysWhatIsMissing(t *testing.T) {
	db := storeOfRuns(t)
	for args, want := range map[string]string{
		"--format published":                 "there is no complete run of suite cloud-instances; make one with `windtunnel run cloud-instances`",
		"--format published 6-quick":         "run 6-quick of suite quick has no table of a document",
		"--format published 7":               "there is no run of this name",
		"--format csv 1-full 2-full":         "--format csv shows one run, and 2 are named; name one, or choose --format published",
		"--format pdf":                       "choose one of table, html, svg, svg-dark, markdown, json, csv, benchfmt, published",
		"--format published contrail-window": "there is no run of this name",
	} {
		if _, err := reportOf(t, append([]string{"--db", db}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// Each run is on a machine whose store is not kept, so a directory keeps the pages of earlier
// runs. A short run does not replace the page of a full one.
func TestADirectoryHasAPageForEachFullRunAndKeepsTheOthers(t *testing.T) {
	db, dir := storeOfRuns(t), t.TempDir()
	kept := filepath.Join(dir, publishedPage("converged"))
	must.Succeed(t, os.WriteFile(kept, []byte("an earlier run"), 0o644))
	said, err := reportOf(t, "--db", db, "--format", "published", "-o", dir)
	page := filepath.Join(dir, publishedPage("opencontrail"))
	if want := page + ": run 2-full\n"; err != nil || said != want {
		t.Fatalf("%q, %v; want %q", said, err, want)
	}
	for file, want := range map[string]string{page: "Run 2-full of 23 November 2026: ", kept: "an earlier run"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q: %v", file, want, err)
		}
	}
	if files, err := filepath.Glob(dir + "/*"); err != nil || len(files) != 2 {
		t.Errorf("files %v, %v; want two", files, err)
	}
	if said, err = reportOf(t, "--db", db, "--format", "published", "-o", dir, "converged"); err != nil || said != kept+": run 5-converged\n" {
		t.Errorf("a suite that is named: %q, %v", said, err)
	}
	for args, want := range map[string]string{
		"--format published 1-full 2-full": "the runs 1-full and 2-full are both of suite opencontrail, which has one page; name one of them",
		"--format csv 1-full":              "it is a directory; name a file in it, such as " + filepath.Join(dir, "samples.csv"),
	} {
		if _, err := reportOf(t, append([]string{"--db", db, "-o", dir}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestARunOfFullLengthHasTheSuitesScenariosTrialsAndDurations(t *testing.T) {
	now := must.Get(loadPlan("converged", suite.ExpandOptions{}))(t)
	for what, change := range map[string]func(*suite.Plan){
		"as planned":       func(*suite.Plan) {},
		"more trials":      func(p *suite.Plan) { p.Trials += 2 },
		"a trial less":     func(p *suite.Plan) { p.Trials-- },
		"a scenario less":  func(p *suite.Plan) { p.Scenarios = p.Scenarios[1:] },
		"a shorter window": func(p *suite.Plan) { p.Scenarios[3].Timing.Duration /= 2 },
	} {
		stored := must.Get(loadPlan("converged", suite.ExpandOptions{}))(t)
		change(stored)
		if want := what == "as planned" || what == "more trials"; fullLength(stored, now) != want {
			t.Errorf("%s: full length is %v", what, !want)
		}
	}
}

// docs/published.md links the page of each suite that has one, and no other.
func TestThePageAboutDocumentsLinksTheirResults(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/published.md"))(t)
	names := must.Get(documentedSuites())(t)
	for _, name := range names {
		page := publishedPage(name)
		_, err := os.Stat("../../docs/" + page)
		switch linked := strings.Contains(string(text), "]("+page+")"); {
		case linked && err != nil:
			t.Errorf("docs/published.md links %s, which is not there; write \"not yet\" in its place", page)
		case !linked && err == nil:
			t.Errorf("docs/published.md lacks the link [results](%s) in its first table", page)
		}
	}
}

func TestFourSuitesRepeatDocuments(t *testing.T) {
	names, err := documentedSuites()
	if want := []string{"cloud-instances", "contrail-windows", "converged", "opencontrail"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v; want %v", names, err, want)
	}
}

// The page's durations are the planner's, for a machine on which no scenario is skipped. A
// change of a suite by a tenth is not worth an edit.
func TestThePageAboutDocumentsHasThePlannedDurations(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/published.md"))(t)
	names := must.Get(documentedSuites())(t)
	row := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([0-9]+) min \\| ([0-9]+)m([0-9]+)s \\|$")
	var found []string
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		found = append(found, m[1])
		number := func(i int) time.Duration {
			n := must.Get(strconv.Atoi(m[i]))(t)
			return time.Duration(n)
		}
		for short, says := range map[bool]time.Duration{false: number(2) * time.Minute, true: number(3)*time.Minute + number(4)*time.Second} {
			plan := must.Get(loadPlan(m[1], suite.ExpandOptions{Short: short}))(t)
			if e := plan.Estimate(); (says - e).Abs() > e/10 {
				t.Errorf("%s (short: %v): the page says %v, the planner %v", m[1], short, says, e)
			}
		}
	}
	if slices.Sort(found); !slices.Equal(found, names) {
		t.Errorf("the page has durations of %v, want %v", found, names)
	}
}
