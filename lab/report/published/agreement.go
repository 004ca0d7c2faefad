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
	// A change of less than half of the published one, or of more than twice, is no longer
	// the document's change with another magnitude.
	leastShare, mostShare = 0.5, 2
)

// AgreementRule explains to readers how a published and a measured ratio are compared.
const AgreementRule = "Absolute figures belong to the hardware that they were measured on, so only ratios to each one’s own baseline are held against each other. " +
	"A published ratio within 5 % of 1 has no direction, since it comes without interval. A change is the logarithm of a ratio. " +
	"Same direction and magnitude: the whole measured 95 % interval lies within 10 % of the published ratio, or within a quarter of its change where that is more. " +
	"Same direction, other magnitude: the whole interval lies on the published ratio’s side of 1 and outside that band. If all of it is less than half of the published change, or more than twice, the verdict says so. " +
	"Differs: the whole interval lies on the other side of 1, or nothing in it is further than 5 % on the published side; or all of it is further than 5 % from 1, where the document has no direction. " +
	"Published value excluded: none of these, and the interval does not contain the published ratio. " +
	"Undecided: the interval contains the published ratio and leaves the band, so more trials could tell."

// agree applies AgreementRule to a published ratio, above 0, and a measured one.
func agree(published float64, measured quantity.Interval) (model.Agreement, string) {
	if measured.N < stats.MinimumTrials(stats.Level) {
		return model.TooFewToTell, fmt.Sprintf("%s, %d are needed", phrase.Count(measured.N, "trial"), stats.MinimumTrials(stats.Level))
	}
	change, low, high := math.Log(published), math.Log(measured.Low), math.Log(measured.High)
	if change < 0 {
		change, low, high = -change, -high, -low // positive is the document's direction
	}
	none := math.Log(noChange)
	directed := change > none
	along := directed && low > 0
	reach := max(math.Log(nearness), shareOfChange*change)
	switch {
	case directed && high < 0:
		return model.Disagrees, "the change goes the other way here"
	case low >= change-reach && high <= change+reach:
		return model.SameMagnitude, ""
	case directed && high <= none && low >= -none:
		return model.Disagrees, "hardly any change here"
	case directed && high <= none:
		return model.Disagrees, "no change in the document's direction here"
	case !directed && (low > none || high < -none):
		return model.Disagrees, "a change here, hardly any in the document"
	case along && high < leastShare*change:
		return model.SmallerChange, ""
	case along && low > mostShare*change:
		return model.LargerChange, ""
	case along && (high < change-reach || low > change+reach):
		return model.OtherMagnitude, ""
	case low <= change && change <= high:
		return model.Unsettled, "the interval contains the published ratio and is too wide for the magnitude"
	case along:
		return model.Excluded, "the same direction"
	case high < 0:
		return model.Excluded, "the interval lies on the other side of 1"
	}
	return model.Excluded, "the direction is not decided"
}
