package text

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/profiles"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/tables"
)

func tabled(t *testing.T, r *model.Report, o Options) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, Write(&b, report.Document(r), o))
	return b.String()
}

func TestTableKeepsToTheWidth(t *testing.T) {
	for width := 50; width <= 160; width += 5 {
		for _, line := range strings.Split(tabled(t, reporttest.Quick(), Options{Width: width}), "\n") {
			if w := lipgloss.Width(line); w > width {
				t.Errorf("at %d columns a line has %d columns: %q", width, w, line)
			}
		}
	}
}

func TestTableHasEscapesOnlyInColour(t *testing.T) {
	if strings.Contains(tabled(t, reporttest.Quick(), Options{Width: 100}), "\x1b") {
		t.Error("the report has escape sequences, but Color is false")
	}
	coloured := tabled(t, reporttest.Quick(), Options{Width: 100, Colour: true})
	if !strings.Contains(coloured, "\x1b[1m") {
		t.Error("the report has no escape sequences, but Color is true")
	}
	plain := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(coloured, "")
	must.Equal(t, tabled(t, reporttest.Quick(), Options{Width: 100}), plain)
}

// A narrow terminal shows every column. Columns that do not fit are in a second
// table below the first.
func TestANarrowTableLeavesNoColumnOut(t *testing.T) {
	for _, width := range []int{60, 80, 100} {
		narrow := tabled(t, reporttest.Quick(), Options{Width: width})
		for _, f := range tables.Of(reporttest.Quick()) {
			for _, c := range f.Columns {
				for i, cell := range c.Cells {
					if cell.Text != "" && !strings.Contains(narrow, cell.Text) {
						t.Errorf("at %d columns %s of %s is left out", width, c.Name, f.Names[i])
					}
				}
			}
		}
		if n, wide := strings.Count(narrow, "\nscenario "), strings.Count(tabled(t, reporttest.Quick(), Options{Width: 200}), "\nscenario "); n <= wide {
			t.Errorf("at %d columns there are %d tables, want more than the %d at 200 columns", width, n, wide)
		}
	}
}

func TestTableNamesEveryBaselineWhereTheyDiffer(t *testing.T) {
	run, plan, samples := reporttest.Sample()
	for i, c := range plan.Comparisons {
		if strings.HasPrefix(c.Subject, "vxlan") {
			plan.Comparisons[i].Baseline = "bridge/" + strings.TrimPrefix(c.Subject, "vxlan/")
		}
	}
	text := tabled(t, report.Build(run, plan, samples), Options{Width: 160})
	if !strings.Contains(text, "baseline") || !regexp.MustCompile(`vxlan .* bridge `).MatchString(text) || strings.Contains(text, "ratio to\n") {
		t.Errorf("the table must have a column of baselines:\n%s", text)
	}
}

func TestATablePrintsNoControlSequencesOfItsTexts(t *testing.T) {
	r := reporttest.Quick()
	r.Run.Title = "evil\x1b]0;title\x07\r\n\u202e"
	r.Scenarios[0].ID = "raw\x1b[2J/stream"
	r.Notes = []string{"note\x9b31m"}
	text := tabled(t, r, Options{Width: 100})
	if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && (c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x202e) }); i >= 0 {
		t.Errorf("a control character reaches the terminal: %q", text[i:min(len(text), i+20)])
	}
}

func TestTableOfAnEmptyRunIsShort(t *testing.T) {
	text := tabled(t, &model.Report{Run: model.RunInfo{ID: "r1", Title: "nothing"}}, Options{})
	must.Equal(t, "nothing\nr1\n", text)
}

func TestWriteReportsAFailingWriter(t *testing.T) {
	read, write := io.Pipe()
	_ = read.Close()
	if err := Write(write, report.Document(reporttest.Quick()), Options{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func TestProfilesKeepToTheWidth(t *testing.T) {
	data := must.Get(folded.Encode(&folded.Profile{Node: "a", Seconds: 2, Rate: 499, Clock: "cpu-clock", Samples: 100, Stacks: []folded.Stack{
		{Frames: []string{"f"}, Comm: "tool", Category: "waking and interrupts while idle (not sampled)", Count: 100, Nanos: 200e6},
	}}))(t)
	r := reporttest.Quick()
	for _, side := range []string{"sender", "receiver"} {
		r.Profiles = append(r.Profiles, model.Profile{Scenario: r.Scenarios[0].ID, Side: side, Data: data, Metered: 0.1, Sampled: 0.1, Bytes: 1e9})
	}
	for _, width := range []int{80, 120} {
		var b bytes.Buffer
		must.Succeed(t, Write(&b, profiles.Document(r), Options{Width: width}))
		if n := strings.Count(b.String(), "\nwhere the CPU time went"); n != 2 {
			t.Errorf("at %d columns there are %d tables, want one for each side:\n%s", width, n, &b)
		}
		for line := range strings.Lines(b.String()) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > width {
				t.Errorf("at %d columns a line has %d: %q", width, w, line)
			}
		}
	}
}

func TestEachSideOfAProfileHasItsOwnOrder(t *testing.T) {
	r := reporttest.Quick()
	for side, nanos := range map[string]uint64{"sender": 10, "receiver": 90} {
		data := must.Get(folded.Encode(&folded.Profile{Node: "a", Side: side, Seconds: 1, Samples: 2, Stacks: []folded.Stack{
			{Comm: "t", Category: "copy", Frames: []string{"f"}, Count: 1, Nanos: 50e6}, {Comm: "t", Category: "GRO", Frames: []string{"g"}, Count: 1, Nanos: nanos * 1e6},
		}}))(t)
		r.Profiles = append(r.Profiles, model.Profile{Scenario: r.Scenarios[0].ID, Side: side, Data: data, Metered: 0.1, Sampled: 0.1})
	}
	var b bytes.Buffer
	must.Succeed(t, Write(&b, profiles.Document(r), Options{Width: 100}))
	for side, want := range map[string]string{"sender": "copy GRO", "receiver": "GRO copy"} {
		_, table, _ := strings.Cut(b.String(), "where the CPU time went: "+side)
		var got []string
		for line := range strings.Lines(table) {
			if f := strings.Fields(line); len(got) < 2 && len(f) > 2 && (f[0] == "copy" || f[0] == "GRO") {
				got = append(got, f[0])
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the %s's categories are %q, want %s, the largest first:\n%s", side, got, want, &b)
		}
	}
}
