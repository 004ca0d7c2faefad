package drawings

import (
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// compared is a run of streams in which each pair, a subject and its baseline,
// was compared.
func compared(pairs ...[2]string) *model.Report {
	plan := suite.Plan{Suite: "s", Title: "t"}
	var samples []sample.Sample
	var ids []string
	for _, p := range pairs {
		ids = append(ids, p[:]...)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		plan.Scenarios = append(plan.Scenarios, suite.Scenario{
			ID: id, System: suite.Group(id), Placement: suite.TwoNodes, Workload: suite.Workload{Name: suite.Part(id), Kind: suite.TCPStream},
		})
		for block := range 10 {
			samples = append(samples, sample.Sample{Scenario: id, Block: block, Metrics: sample.Metrics{
				sample.Throughput: 1e9 + float64(block+len(id)), sample.SenderCPUPerByte: 0.5 + 0.01*float64(block),
			}})
		}
	}
	for _, p := range pairs {
		plan.Comparisons = append(plan.Comparisons, suite.Comparison{Subject: p[0], Baseline: p[1]})
	}
	return report.Build(sample.Run{ID: "r", Status: sample.Complete}, plan, samples)
}

// outline is the headings of the cards and the names of their lines.
func outline(r *model.Report) []string {
	b := &builder{r: r, paints: paints(r)}
	var list []string
	for _, c := range b.cards() {
		text := c.Title + " " + c.Under
		for _, p := range c.Parts {
			text += " | " + p.Name + ":"
			for _, l := range p.Lines {
				text += " " + l.Name + ","
			}
		}
		list = append(list, text)
	}
	return list
}

func TestCardOfSeveralWorkloadsSaysWhichEachFigureIsOf(t *testing.T) {
	r := compared([2]string{"vrouter/stream", "bridge/stream"}, [2]string{"vrouter/no-seg", "bridge/no-seg"})
	want := []string{"vrouter against bridge | stream: throughput, sender CPU per byte, | no-seg: throughput, sender CPU per byte,"}
	must.Equal(t, want, outline(r))
	page := string(written(t, r))
	stream, noSeg := strings.Index(page, "<h4>stream</h4>"), strings.Index(page, "<h4>no-seg</h4>")
	if stream < 0 || noSeg < stream || strings.Count(page, "<h4>") != 2 || strings.Count(page[stream:noSeg], "<dt>throughput</dt>") != 1 {
		t.Errorf("the page's headings stand at %d and %d", stream, noSeg)
	}
}

func TestCardOfOneWorkloadHasNoHeading(t *testing.T) {
	r := compared([2]string{"vrouter/stream", "bridge/stream"})
	want := []string{"vrouter against bridge | : throughput, sender CPU per byte,"}
	must.Equal(t, want, outline(r))
	if page := string(written(t, r)); strings.Contains(page, "<h4>") {
		t.Error("the page has a heading in a card")
	}
}

func TestCardsWithinOneSystemOrAcrossWorkloadsNameTheScenarios(t *testing.T) {
	r := compared([2]string{"bridge/no-seg", "bridge/stream"}, [2]string{"bridge/threads", "bridge/stream"}, [2]string{"vrouter/no-seg", "bridge/stream"})
	want := []string{
		"bridge/no-seg against bridge/stream | : throughput, sender CPU per byte,",
		"bridge/threads against bridge/stream | : throughput, sender CPU per byte,",
		"vrouter/no-seg against bridge/stream | : throughput, sender CPU per byte,",
	}
	must.Equal(t, want, outline(r))
}

func TestFiguresTooNoisyToJudgeComeLast(t *testing.T) {
	r := compared([2]string{"vrouter/stream", "bridge/stream"}, [2]string{"direct/stream", "bridge/stream"})
	r.Comparisons[0].Verdict, r.Comparisons[0].Detectable = model.TooNoisy, at(85.43)
	b := &builder{r: r, paints: paints(r)}
	lines := b.cards()[0].Parts[0].Lines
	if last := lines[len(lines)-1]; len(lines) != 2 || last.Name != "throughput" || last.Big != "too noisy to judge" || last.Mark.Word != "" {
		t.Errorf("the lines of the card are %+v, want 2, the throughput that is too noisy last", lines)
	}
	rows := b.ratios()[0].Rows
	if last := rows[len(rows)-1]; len(rows) != 2 || last.Subject != "vrouter/stream" || last.Mark.Text() != "! too noisy to judge" {
		t.Errorf("the rows of ratios are %+v, want 2, vrouter/stream that is too noisy last", rows)
	}
	if page := string(written(t, r)); strings.Contains(page, "8543") {
		t.Error("the page has the detectable difference of a figure that is too noisy to judge")
	}
}
