package hosts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/report/tables"
	"windtunnel/lab/stats"
)

// Findings returns a sentence for each slow pair and for each asymmetric pair, the slowest
// first.
func Findings(x *model.HostMatrix) []string {
	var lines phrase.Lines
	if x.Blocks == 0 { // the notes have the reason
		return nil
	}
	if need := stats.MinimumTrials(stats.Level); x.Blocks < need {
		lines.Say("%s: the median of the pairs is %s. Slow and asymmetric pairs are named from %s on.", x.Scenario, scale(x).Print(x.Median), phrase.Count(need, "trial"))
		return lines
	}
	slow := chosen(x, func(f *model.PairFigure) (*quantity.Interval, bool) { return f.Ratio, f.Slow })
	for _, f := range slow[:min(len(slow), model.MostNamed)] {
		lines.Say("%s: %s is slow: %s, %s of the upper quartile of all pairs (%s).", x.Scenario, f.HostPair(), scale(x).PrintInterval(*f.Figure), f.Ratio.Percent(), scale(x).Print(x.Reference))
	}
	lines.SayIf(len(slow) > model.MostNamed, "%s: %d further pairs are slow; the matrix marks them.", x.Scenario, len(slow)-model.MostNamed)
	lopsided := chosen(x, func(f *model.PairFigure) (*quantity.Interval, bool) { return f.Reverse, f.Asymmetric })
	for _, f := range lopsided[:min(len(lopsided), model.MostNamed)] {
		lines.Say("%s: %s and %s are asymmetric: %s to %s is %s, %s of the opposite direction.", x.Scenario, f.From, f.To, f.From, f.To, scale(x).PrintInterval(*f.Figure), f.Reverse.Percent())
	}
	lines.SayIf(len(lopsided) > model.MostNamed, "%s: %d further pairs are asymmetric; the matrix marks them.", x.Scenario, len(lopsided)-model.MostNamed)
	lines.SayIf(len(slow)+len(lopsided) == 0, "%s: no pair is certainly slow or asymmetric by more than %s. The median of the pairs is %s.", x.Scenario, quantity.Percentage(slowLimit), scale(x).Print(x.Median))
	return lines
}

// chosen lists the pairs for which the function is returns true, by ascending ratio.
func chosen(x *model.HostMatrix, is func(*model.PairFigure) (ratio *quantity.Interval, ok bool)) (list []*model.PairFigure) {
	for k := range x.Pairs {
		if _, ok := is(&x.Pairs[k]); ok {
			list = append(list, &x.Pairs[k])
		}
	}
	slices.SortStableFunc(list, func(a, b *model.PairFigure) int {
		ratioA, _ := is(a)
		ratioB, _ := is(b)
		return cmp.Compare(ratioA.Median, ratioB.Median)
	})
	return list
}

// scale returns the unit in which all figures of the matrix are printed.
func scale(x *model.HostMatrix) quantity.Scale { return quantity.ScaleOf(x.Metric, x.Reference) }

// MostMatrixHosts is the maximum number of hosts whose matrix a reader gets. A larger one
// is in the JSON.
const MostMatrixHosts = 100

const (
	slowMark     = "▼"
	lopsidedMark = "⇄"
)

// Section returns the matrix for readers: a row for each sender, a column for each receiver.
func Section(x *model.HostMatrix) document.Section {
	scale := scale(x)
	t := tables.MatrixTable("from \\ to", x.Hosts)
	out := document.Section{
		Title: fmt.Sprintf("%s: %s in %s between hosts", x.Scenario, x.Metric.Label(), scale.Unit),
		Lead:  fmt.Sprintf("Medians of the trials, from the host of the row to the host of the column. Figures in brackets are ratios to the upper quartile of all pairs, %s. A pair is slow by its ratios within blocks, which can differ a little.", scale.Print(x.Reference)),
	}
	at := make(map[string]int, len(x.Hosts))
	for i, h := range x.Hosts {
		at[h] = i
		row := t.Add(h)
		row.Cells = append(row.Cells, make([]document.Cell, len(x.Hosts))...)
		row.Cells[1+i].Text = "–"
	}
	marked := map[string]bool{}
	for k := range x.Pairs {
		f := &x.Pairs[k]
		cell := &t.Rows[at[f.From]].Cells[1+at[f.To]]
		if f.Figure == nil {
			cell.Text, cell.Why = "none", f.Why
			continue
		}
		cell.Text, _ = scale.Figure(*f.Figure)
		if f.Slow {
			cell.Text += " " + slowMark
		}
		if f.Asymmetric {
			cell.Text += " " + lopsidedMark
		}
		marked[slowMark], marked[lopsidedMark] = marked[slowMark] || f.Slow, marked[lopsidedMark] || f.Asymmetric
		if f.Ratio != nil {
			cell.Range = fmt.Sprintf("(%.2f)", f.Figure.Median/x.Reference)
			cell.Tone = tables.ShadeOf(f.Figure.Median / x.Reference)
		}
	}
	notes := phrase.Lines{}
	notes.SayIf(marked[slowMark], "%s certainly below the upper quartile of all pairs (%s) by more than %s.", slowMark, scale.Print(x.Reference), quantity.Percentage(slowLimit))
	notes.SayIf(marked[lopsidedMark], "%s certainly below the opposite direction by more than %s.", lopsidedMark, quantity.Percentage(slowLimit))
	out.Tables, out.Notes = t.List(), notes
	return out
}

// ByHost returns a table of the hosts in place of a matrix that is too large.
func ByHost(x *model.HostMatrix) document.Section {
	scale := scale(x)
	t := tables.MatrixTable("host", []string{"sends, median", "sends, least", "receives, median", "receives, least", "slow pairs"})
	out := document.Section{
		Title: fmt.Sprintf("%s: %s in %s, by host", x.Scenario, x.Metric.Label(), scale.Unit),
		Lead:  fmt.Sprintf("The matrix of %d hosts is too large for a page; `windtunnel report --format json` has it.", len(x.Hosts)),
	}
	sent, received, slow := map[string][]float64{}, map[string][]float64{}, map[string]int{}
	for k := range x.Pairs {
		f := &x.Pairs[k]
		if f.Slow {
			slow[f.From]++
			slow[f.To]++
		}
		if f.Figure != nil {
			sent[f.From], received[f.To] = append(sent[f.From], f.Figure.Median), append(received[f.To], f.Figure.Median)
		}
	}
	for _, h := range x.Hosts {
		row := t.Add(h)
		for _, values := range [][]float64{sent[h], received[h]} {
			middle, least := document.Cell{Text: "none"}, document.Cell{Text: "none"}
			if iv := quantity.MedianInterval(values); iv != nil {
				middle.Text, _ = scale.Figure(quantity.Interval{Median: iv.Median, N: 1})
				least.Text, _ = scale.Figure(quantity.Interval{Median: slices.Min(values), N: 1})
				middle.Tone = tables.ShadeOf(iv.Median / x.Reference)
			}
			row.Cells = append(row.Cells, middle, least)
		}
		row.Cells = append(row.Cells, document.Cell{Text: fmt.Sprint(slow[h])})
	}
	out.Tables = t.List()
	return out
}

// Troubles says why pairs have no figure: a line for each reason.
func Troubles(x *model.HostMatrix) (lines phrase.Lines) {
	pairs := map[string][]string{} // by reason
	var reasons []string
	for k := range x.Pairs {
		f := &x.Pairs[k]
		if f.Figure != nil {
			continue
		}
		why := cmp.Or(f.Why, "not measured")
		if pairs[why] == nil {
			reasons = append(reasons, why)
		}
		pairs[why] = append(pairs[why], f.HostPair().String())
	}
	for _, why := range reasons[:min(len(reasons), model.MostNamed)] {
		of := phrase.Some(pairs[why], 8)
		if len(pairs[why]) == len(x.Pairs) {
			of = "any pair"
		}
		lines.Say("%s: no figure of %s: %s.", x.Scenario, of, strings.TrimSuffix(why, "."))
	}
	lines.SayIf(len(reasons) > model.MostNamed, "%s: %d further reasons for missing figures are in the JSON report.", x.Scenario, len(reasons)-model.MostNamed)
	return lines
}
