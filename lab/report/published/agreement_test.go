package published

import (
	"slices"
	"strings"
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
		{0.216, 0.60, 0.90, 10, model.SmallerChange},
		{0.216, 0.35, 0.42, 10, model.OtherMagnitude}, // between half and the whole of the change
		{0.25, 0.94, 0.951, 10, model.SmallerChange},
		{0.216, 0.97, 1.02, 10, model.Disagrees}, // hardly any change
		{0.216, 0.972, 0.9998, 11, model.Disagrees},
		{0.216, 1.01, 1.20, 10, model.Disagrees}, // the other way
		{0.216, 0.30, 0.40, 10, model.Excluded},  // across the band's edge, without the published ratio
		{0.216, 0.20, 0.40, 10, model.Unsettled}, // with it
		{0.216, 0.50, 1.20, 10, model.Excluded},  // across 1
		{0.216, 0.20, 1.20, 10, model.Unsettled},
		{0.85, 0.80, 0.92, 10, model.SameMagnitude},
		{0.85, 0.98, 1.02, 10, model.Disagrees},
		{0.85, 0.96, 0.99, 10, model.Disagrees},      // less, but no more than counts as none in a document
		{0.976, 0.90, 0.95, 10, model.SameMagnitude}, // no direction, and near
		{0.976, 0.60, 0.70, 10, model.Disagrees},     // a change here, none there
		{0.976, 0.80, 1.30, 10, model.Unsettled},
		{1.57, 1.42, 1.70, 10, model.SameMagnitude},
		{1.57, 1.06, 1.10, 10, model.SmallerChange},
		{1.57, 1.30, 1.39, 10, model.OtherMagnitude},
		{1.23, 3.52, 3.63, 10, model.LargerChange},
		{1.47, 0.909, 1.010, 11, model.Disagrees}, // no part of the interval is in the document's direction
		{0.977, 1.049, 1.11, 11, model.Excluded},  // on the other side of 1,
		{1.57, 0.70, 0.90, 10, model.Disagrees},
		{1.57, 1.00, 1.04, 10, model.Disagrees},
		{0.5, 0.45, 0.55, 5, model.TooFewToTell},
		{0.5, 0.45, 0.55, 0, model.TooFewToTell},
	} {
		got, why := agree(c.published, quantity.Interval{Median: (c.low + c.high) / 2, Low: c.low, High: c.high, N: c.n})
		if got != c.want {
			t.Errorf("published %v, measured [%v, %v] of %d: %s (%s), want %s", c.published, c.low, c.high, c.n, got, why, c.want)
		}
		if strings.Contains(why, "too wide") && (c.published < c.low || c.published > c.high) {
			t.Errorf("published %v is outside of [%v, %v], and the reason is %q", c.published, c.low, c.high, why)
		}
		if slices.Contains([]model.Agreement{model.Disagrees, model.Excluded, model.Unsettled, model.TooFewToTell}, got) && why == "" {
			t.Errorf("published %v, measured [%v, %v]: %s without a reason", c.published, c.low, c.high, got)
		}
	}
}
