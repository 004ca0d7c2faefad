package published

import (
	"testing"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
)

func TestAgreementFollowsItsRule(t *testing.T) {
	for _, c := range []struct {
		published, low, high float64
		n                    int
		want                 model.Agreement
	}{
		{0.5, 0.45, 0.55, 10, model.SameMagnitude},   // within a quarter of the change
		{0.216, 0.16, 0.30, 10, model.SameMagnitude}, // [0.147, 0.317]
		{0.216, 0.90, 0.95, 10, model.OtherMagnitude},
		{0.216, 0.97, 1.02, 10, model.Disagrees}, // hardly any change
		{0.216, 0.972, 0.9998, 11, model.Disagrees},
		{0.216, 1.01, 1.20, 10, model.Disagrees}, // the other way
		{0.216, 0.30, 0.40, 10, model.Unsettled}, // across the band's edge
		{0.216, 0.50, 1.20, 10, model.Unsettled}, // across 1
		{0.85, 0.80, 0.92, 10, model.SameMagnitude},
		{0.85, 0.98, 1.02, 10, model.Disagrees},
		{0.85, 0.96, 0.99, 10, model.Disagrees},      // less, but no more than counts as none in a document
		{0.976, 0.90, 0.95, 10, model.SameMagnitude}, // no direction, and near
		{0.976, 0.60, 0.70, 10, model.Disagrees},     // a change here, none there
		{0.976, 0.80, 1.30, 10, model.Unsettled},
		{1.57, 1.42, 1.70, 10, model.SameMagnitude},
		{1.57, 1.06, 1.10, 10, model.OtherMagnitude},
		{1.57, 0.70, 0.90, 10, model.Disagrees},
		{1.57, 1.00, 1.04, 10, model.Disagrees},
		{0.5, 0.45, 0.55, 5, model.TooFewToTell},
		{0.5, 0.45, 0.55, 0, model.TooFewToTell},
	} {
		got, why := agree(c.published, quantity.Interval{Median: (c.low + c.high) / 2, Low: c.low, High: c.high, N: c.n})
		if got != c.want {
			t.Errorf("published %v, measured [%v, %v] of %d: %s (%s), want %s", c.published, c.low, c.high, c.n, got, why, c.want)
		}
		if got != model.SameMagnitude && got != model.OtherMagnitude && why == "" {
			t.Errorf("published %v, measured [%v, %v]: %s without a reason", c.published, c.low, c.high, got)
		}
	}
}
