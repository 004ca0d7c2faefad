package model

import (
	"slices"

	"windtunnel/lab/report/quantity"
	"windtunnel/lab/suite"
)

// Published is a public document's figure with the measured figure.
type Published struct {
	suite.Published
	Measured *quantity.Interval `json:"measured,omitempty"`
}

// PublishedTable is a table of a public document, with the measured figures in the
// same rows and columns. Both also have ratios to their own baselines.
type PublishedTable struct {
	suite.PublishedTable
	Columns []string       `json:"columns"`
	Rows    []PublishedRow `json:"rows"`
}

// Cells lists the cells with a published figure, row by row.
func (t *PublishedTable) Cells() (list []*PublishedCell) {
	for _, r := range t.Rows {
		for _, c := range r.Cells {
			if c != nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// Ratios lists the cells with a published ratio, row by row.
func (t *PublishedTable) Ratios() []*PublishedCell {
	return slices.DeleteFunc(t.Cells(), func(c *PublishedCell) bool { return c.PublishedRatio == nil })
}

// Agreeing lists the cells with a published ratio and this agreement. "" stands for
// cells without an agreement.
func (t *PublishedTable) Agreeing(a Agreement) []*PublishedCell {
	return slices.DeleteFunc(t.Ratios(), func(c *PublishedCell) bool { return c.Agreement != a })
}

// PublishedRow is one row of a document's table.
type PublishedRow struct {
	Name  string           `json:"name"`
	Cells []*PublishedCell `json:"cells"` // one for each column; nil if the document has no figure there
}

// PublishedCell is a figure of a document and the measured one.
type PublishedCell struct {
	suite.Published
	Measured *quantity.Interval `json:"measured,omitempty"` // in the metric's SI unit; nil for a published change
	Absent   string             `json:"absent,omitempty"`   // why nothing was measured
	// ByTool is a CPU figure by the traffic tool's own count; nil if the tool has none.
	// Measured is by the lab's meter then.
	ByTool *quantity.Interval `json:"by_tool,omitempty"`
	// Against is the baseline of both ratios; "" if there is no published ratio.
	Against        string             `json:"against,omitempty"`
	PublishedRatio *float64           `json:"published_ratio,omitempty"`
	MeasuredRatio  *quantity.Interval `json:"measured_ratio,omitempty"` // paired within blocks
	Agreement      Agreement          `json:"agreement,omitempty"`      // "" unless both ratios exist
	Why            string             `json:"why,omitempty"`            // reason for Agreement, or why there is none
	// Cause is the cause of a difference, or the reason why the ratio is not judged; "" unless
	// Agreement.Explained, and if none is known.
	Cause string `json:"cause,omitempty"`
	// Doubt explains why a published change contradicts the document's own figures.
	Doubt string `json:"doubt,omitempty"`
}

// Agreement is the result of the comparison of a measured ratio with the published one.
type Agreement string

const (
	SameMagnitude  Agreement = "same direction and magnitude"
	OtherMagnitude Agreement = "same direction, other magnitude"
	SmallerChange  Agreement = "same direction, less than half of the change"
	LargerChange   Agreement = "same direction, more than twice the change"
	Disagrees      Agreement = "differs"
	Excluded       Agreement = "published value excluded" // the interval does not contain it
	Unsettled      Agreement = "undecided"                // the interval contains it, and is too wide
	TooFewToTell   Agreement = "too few trials"
	Constructed    Agreement = Agreement(suite.ByConstruction)
	NotJudged      Agreement = Agreement(suite.NotHere)
)

// Agreements lists all agreements, in the order of reports.
var Agreements = []Agreement{SameMagnitude, OtherMagnitude, SmallerChange, LargerChange, Disagrees, Excluded, Unsettled, TooFewToTell, Constructed, NotJudged}

// Sign returns a one-character symbol of the agreement, for narrow tables.
func (a Agreement) Sign() string {
	return map[Agreement]string{SameMagnitude: "=", OtherMagnitude: "±", SmallerChange: "<", LargerChange: ">", Disagrees: "≠", Excluded: "∉", Unsettled: "?", TooFewToTell: "…", Constructed: "≡", NotJudged: "–"}[a]
}

// Explained reports whether readers need a cause: the measured ratio is decidedly not the
// published one, or there is no verdict on it.
func (a Agreement) Explained() bool {
	return !slices.Contains([]Agreement{"", SameMagnitude, Unsettled, TooFewToTell}, a)
}
