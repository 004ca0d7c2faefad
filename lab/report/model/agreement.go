package model

import (
	"fmt"
	"math"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/stats"
)

// Agreement is the result of the comparison of a measured ratio with the published one.
type Agreement string

const (
	SameMagnitude  Agreement = "same direction and magnitude"
	OtherMagnitude Agreement = "same direction, other magnitude"
	Disagrees      Agreement = "differs"
	Unsettled      Agreement = "undecided" // the interval is too wide to tell
	TooFewToTell   Agreement = "too few trials"
)

const (
	// noChange is the largest ratio that counts as no change. A published figure has
	// no interval, so a small change may be chance.
	noChange = 1.05
	// A measured ratio has the same magnitude if it differs from the published ratio
	// by a factor of at most nearness. The limit is wider for a large published
	// change: shareOfChange of its logarithm.
	nearness      = 1.10
	shareOfChange = 0.25
)

// AgreementRule explains to readers how a published and a measured ratio are compared.
const AgreementRule = "Absolute figures belong to the hardware that they were measured on, so only ratios to each one’s own baseline are held against each other. " +
	"A published ratio within 5 % of 1 has no direction, since it comes without interval. " +
	"Same direction and magnitude: the whole measured 95 % interval lies within 10 % of the published ratio, or within a quarter of its change (in logarithms) where that is more. " +
	"Same direction, other magnitude: the whole interval lies on the published ratio’s side of 1, and outside that band. " +
	"Differs: the whole interval lies on the other side of 1; or wholly within 5 % of 1, where the document has a change; or further than 5 % from 1, where the document has none. " +
	"Undecided: anything else, where more trials could tell."

// agree applies AgreementRule to a published ratio, above 0, and a measured one.
func agree(published float64, measured quantity.Interval) (Agreement, string) {
	if measured.N < stats.MinimumTrials(stats.Level) {
		return TooFewToTell, fmt.Sprintf("%s, %d are needed", phrase.Count(measured.N, "trial"), stats.MinimumTrials(stats.Level))
	}
	down, up := published < 1/noChange, published > noChange
	reach := math.Exp(max(math.Log(nearness), shareOfChange*math.Abs(math.Log(published))))
	low, high := published/reach, published*reach
	none := measured.Low >= 1/noChange && measured.High <= noChange
	along := down && measured.High < 1 || up && measured.Low > 1
	switch {
	case down && measured.Low > 1, up && measured.High < 1:
		return Disagrees, "the change goes the other way here"
	case measured.Low >= low && measured.High <= high:
		return SameMagnitude, ""
	case (down || up) && none:
		return Disagrees, "hardly any change here"
	case !down && !up && (measured.High < 1/noChange || measured.Low > noChange):
		return Disagrees, "a change here, hardly any in the document"
	case along && (measured.High < low || measured.Low > high):
		return OtherMagnitude, ""
	case along:
		return Unsettled, "the same direction; the interval is too wide for the magnitude"
	}
	return Unsettled, "the interval is too wide to tell"
}
