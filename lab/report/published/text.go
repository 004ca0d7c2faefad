package published

import (
	"cmp"
	"strconv"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
)

// MeasuredText prints the measured figure in the document's unit, or the reason why
// there is none. A published change has the measured change.
func MeasuredText(c *model.PublishedCell) string {
	switch {
	case c == nil:
		return ""
	case c.Baseline != "" && c.MeasuredRatio != nil:
		return changeText(c.MeasuredRatio.Median)
	case c.Baseline != "" || c.Measured == nil:
		return c.Absent
	}
	return quantity.WithUnit(inUnit(c, c.Measured.Median), c.Unit)
}

// MeasuredRange prints the interval of MeasuredText; "" if there is none.
func MeasuredRange(c *model.PublishedCell) string {
	switch {
	case c == nil:
		return ""
	case c.Baseline != "" && c.MeasuredRatio != nil && c.MeasuredRatio.N > 1:
		return "[" + changeText(c.MeasuredRatio.Low) + ", " + changeText(c.MeasuredRatio.High) + "]"
	case c.Baseline != "" || c.Measured == nil || c.Measured.N < 2:
		return ""
	}
	return "[" + inUnit(c, c.Measured.Low) + ", " + inUnit(c, c.Measured.High) + "]"
}

// inUnit prints a value in the document's unit, with the decimals of the median. It
// does not separate thousands, because documents write 7375.159.
func inUnit(c *model.PublishedCell, v float64) string {
	by := c.Factor
	if by <= 0 {
		by = 1
	}
	decimals := quantity.Significant(c.Measured.Median / by)
	if c.Unit == "%" {
		decimals = min(decimals, 1) // CPU has no more precision
	}
	return strconv.FormatFloat(quantity.Three(v/by), 'f', decimals, 64)
}

// ByToolText prints the tool's own figure with its interval, in the document's unit; ""
// if the tool has none.
func ByToolText(c *model.PublishedCell) string {
	if c.ByTool == nil {
		return ""
	}
	own := *c
	own.Measured = c.ByTool
	return strings.TrimSpace(MeasuredText(&own) + " " + MeasuredRange(&own))
}

// PublishedRatioText prints the ratio of the document's figures; "" if there is none.
func PublishedRatioText(c *model.PublishedCell) string {
	if c.PublishedRatio == nil {
		return ""
	}
	return quantity.Scale{By: 1}.Print(*c.PublishedRatio)
}

// MeasuredRatioText prints the measured ratio and its interval; "" if there is none.
func MeasuredRatioText(c *model.PublishedCell) string {
	if c.MeasuredRatio == nil {
		return ""
	}
	return quantity.RatioText(*c.MeasuredRatio)
}

// Verdict prints the agreement with its reason, or the reason why there is none.
func Verdict(c *model.PublishedCell) string {
	switch {
	case c.Agreement == "":
		return c.Why
	case c.Why == "":
		return string(c.Agreement)
	}
	return string(c.Agreement) + ": " + c.Why
}

// tone is the class of the agreement in style.css.
func tone(a model.Agreement) string {
	return map[model.Agreement]string{model.SameMagnitude: "holds", model.OtherMagnitude: "alike", model.SmallerChange: "alike", model.LargerChange: "alike", model.Excluded: "alike", model.Disagrees: "refuted", model.Unsettled: "undecided", model.TooFewToTell: "few", model.Constructed: "few", model.NotJudged: "few"}[a]
}

// changeText prints a ratio as a change: "−27 %", "+3.5 %".
func changeText(ratio float64) string { return quantity.Change(ratio, 10) }

// ByToolNote explains how the tool's own CPU figure differs from the meter's.
const ByToolNote = "The lab's meter measures the CPU of one node. The traffic tool counts all CPUs of the machine, so its figure includes the other node if both nodes are on one machine. Ratios and verdicts use the meter's figure."

// derivedNote explains the rows that the document does not print.
const derivedNote = "CPU per byte is derived: the document's ratio is that of its CPU figures over that of its throughputs. The lab measures it."

// Causes lists the causes of the verdicts that deviate from the document, and the reasons why
// figures are not judged, each with the cells that it explains. One entry lists the cells without a known cause.
func Causes(t *model.PublishedTable) (lines []string) {
	var by phrase.Groups
	for _, c := range t.Ratios() {
		if c.Agreement.Explained() {
			by.Add(cmp.Or(c.Cause, model.CauseNotKnown), c.Agreement.Sign()+" "+c.Row+", "+c.Column)
		}
	}
	for cause, cells := range by.All() {
		lines = append(lines, strings.Join(cells, "; ")+": "+strings.TrimSuffix(cause, ".")+".")
	}
	return lines
}

// Notes lists the table's note, then the notes and doubts of its cells. Each text
// occurs once, with the cells that have it.
func Notes(t *model.PublishedTable) (lines []string) {
	var by phrase.Groups
	for _, c := range t.Cells() {
		texts := []string{c.Note, c.Doubt}
		if c.PublishedRatio == nil {
			texts = append(texts, c.Why)
		}
		for _, text := range texts {
			if text != "" {
				by.Add(text, c.Row+", "+c.Column)
			}
		}
	}
	if t.Note != "" {
		lines = append(lines, t.Note)
	}
	for text, cells := range by.All() {
		lines = append(lines, strings.Join(cells, "; ")+": "+strings.TrimSuffix(text, ".")+".")
	}
	return lines
}

// Findings returns a sentence for each table: the cells of each agreement.
func Findings(r *model.Report) (lines phrase.Lines) {
	for i := range r.Tables {
		t := &r.Tables[i]
		var parts phrase.Lines
		for _, a := range append(model.Agreements, "") {
			cells := lists.Map(t.Agreeing(a), func(c *model.PublishedCell) string { return c.Row + " " + c.Column })
			parts.SayIf(cells != nil, "%s: %d (%s)", cmp.Or(a, "not judged"), len(cells), strings.Join(cells, ", "))
		}
		lines.SayIf(parts != nil, "%s, %s to the baseline. %s.", phrase.Capital(t.Title), phrase.Count(len(t.Ratios()), "ratio"), phrase.Capital(strings.Join(parts, "; ")))
	}
	return lines
}
