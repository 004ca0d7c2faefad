package markdown

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
)

const publishedLegend = "`windtunnel report --format published` wrote this page from stored runs. " +
	"[Published experiments](published.md) has the documents, the rule of the verdicts, and the differences from the documents. " +
	"Brackets hold 95 % intervals. A figure without a ratio (–) is a baseline, or the document has no baseline for it. Such a figure depends on the hardware. "

// WritePublished writes a page about the documents that the reports' suites repeat. The
// page has the number of each verdict, and for each report its documents' tables beside the
// measured figures, and its hypotheses. Every report must have a table.
func WritePublished(w io.Writer, reports ...*model.Report) error {
	var m markdown
	m.line("# Published experiments: %s", escape(publishedTitle(reports)))
	m.line("%s", publishedLegend+escape(model.ByToolNote))
	m.table("## All verdicts", verdictGrid(reports))
	for _, r := range reports {
		if len(r.Tables) == 0 {
			return fmt.Errorf("run %s of suite %s has no table of a document; name runs of suites that have tables", r.Run.ID, r.Run.Suite)
		}
		m.line("## %s: %s", escape(r.Run.Suite), escape(r.Run.Title))
		m.line("%s", escape(publishedSource(r)))
		for i := range r.Tables {
			t := &r.Tables[i]
			g := t.SideBySide()
			m.table("### "+escape(phrase.Capital(t.Title)), g)
			m.line("%s", escape("Source: "+t.Source+"."))
			m.list("", append(t.Notes(), t.Causes()...))
		}
		conclusions := model.Grid{Heads: []string{"verdict", "conclusion", "figures"}, Words: map[int]bool{0: true, 1: true, 2: true}}
		for _, h := range r.Hypotheses {
			conclusions.Add(string(h.Judgement), h.Claim, strings.TrimSpace(h.Why+" "+h.CauseText()))
		}
		m.table("### Conclusions of the document", conclusions)
		m.list("### Notes", r.Notes)
	}
	if _, err := io.WriteString(w, m.out.String()); err != nil {
		return fmt.Errorf("write the published experiments as Markdown: %w", err)
	}
	return nil
}

// publishedTitle returns the suite of the page, or "results" if the page has several suites.
func publishedTitle(reports []*model.Report) string {
	if len(reports) == 1 {
		return reports[0].Run.Suite
	}
	return "results"
}

// verdictGrid counts the verdicts on the figures and hypotheses of each report.
func verdictGrid(reports []*model.Report) model.Grid {
	g := model.Grid{Heads: []string{"suite"}, Words: map[int]bool{0: true}}
	for _, a := range model.Agreements {
		g.Heads = append(g.Heads, a.Sign()+" "+string(a))
	}
	judgements := []model.Judgement{model.Holds, model.Refuted, model.Undecided, model.NotHere}
	g.Heads = append(g.Heads, "no verdict")
	for _, j := range judgements {
		g.Heads = append(g.Heads, "conclusions: "+string(j))
	}
	for _, r := range reports {
		row := []string{r.Run.Suite}
		for _, a := range append(model.Agreements, "") {
			n := 0
			for i := range r.Tables {
				n += len(r.Tables[i].Agreeing(a))
			}
			row = append(row, strconv.Itoa(n))
		}
		for _, j := range judgements {
			n := 0
			for _, h := range r.Hypotheses {
				if h.Judgement == j {
					n++
				}
			}
			row = append(row, strconv.Itoa(n))
		}
		g.Add(row...)
	}
	return g
}

// publishedSource names the run of a report, with its date and number of trials, and the
// facts that its figures depend on.
func publishedSource(r *model.Report) string {
	e := r.Run.Environment
	text := fmt.Sprintf("Run %s of %s: %s. %s %s %s, %s, Linux %s", r.Run.ID, r.Run.Started.UTC().Format("2 January 2006"), r.Run.Command(),
		trialsEach(r), r.Validity.Line(), e.CPUModel, phrase.Count(e.CPUs, "CPU"), e.Kernel)
	if e.Revision != "" {
		text += ", revision " + e.Revision
	}
	return text + "."
}

// trialsEach states the number of scenarios with figures, and of their trials that count:
// "Figures of 24 scenarios, each of 9 to 11 trials."
func trialsEach(r *model.Report) string {
	var counts []int
	for i := range r.Scenarios {
		if n := r.Scenarios[i].Trials; n > 0 {
			counts = append(counts, n)
		}
	}
	if len(counts) == 0 {
		return "No scenario has figures."
	}
	least, most := slices.Min(counts), slices.Max(counts)
	each := phrase.Count(most, "trial")
	if least < most {
		each = fmt.Sprintf("%d to %s", least, each)
	}
	return fmt.Sprintf("Figures of %s, each of %s.", phrase.Count(len(counts), "scenario"), each)
}
