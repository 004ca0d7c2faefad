package published

import (
	"fmt"
	"math"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/stats"
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
func agree(published float64, measured quantity.Interval) (model.Agreement, string) {
	if measured.N < stats.MinimumTrials(stats.Level) {
		return model.TooFewToTell, fmt.Sprintf("%s, %d are needed", phrase.Count(measured.N, "trial"), stats.MinimumTrials(stats.Level))
	}
	down, up := published < 1/noChange, published > noChange
	reach := math.Exp(max(math.Log(nearness), shareOfChange*math.Abs(math.Log(published))))
	low, high := published/reach, published*reach
	none := measured.Low >= 1/noChange && measured.High <= noChange
	along := down && measured.High < 1 || up && measured.Low > 1
	switch {
	case down && measured.Low > 1, up && measured.High < 1:
		return model.Disagrees, "the change goes the other way here"
	case measured.Low >= low && measured.High <= high:
		return model.SameMagnitude, ""
	case (down || up) && none:
		return model.Disagrees, "hardly any change here"
	case !down && !up && (measured.High < 1/noChange || measured.Low > noChange):
		return model.Disagrees, "a change here, hardly any in the document"
	case along && (measured.High < low || measured.Low > high):
		return model.OtherMagnitude, ""
	case along:
		return model.Unsettled, "the same direction; the interval is too wide for the magnitude"
	}
	return model.Unsettled, "the interval is too wide to tell"
}
