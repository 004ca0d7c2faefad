package model

import (
	"testing"

	"windtunnel/lab/report/quantity"
)

func TestAgreementFollowsItsRule(t *testing.T) {
	for _, c := range []struct {
		published, low, high float64
		n                    int
		want                 Agreement
	}{
		{0.5, 0.45, 0.55, 10, SameMagnitude},   // within a quarter of the change
		{0.216, 0.16, 0.30, 10, SameMagnitude}, // [0.147, 0.317]
		{0.216, 0.90, 0.95, 10, OtherMagnitude},
		{0.216, 0.97, 1.02, 10, Disagrees}, // hardly any change
		{0.216, 0.972, 0.9998, 11, Disagrees},
		{0.216, 1.01, 1.20, 10, Disagrees}, // the other way
		{0.216, 0.30, 0.40, 10, Unsettled}, // across the band's edge
		{0.216, 0.50, 1.20, 10, Unsettled}, // across 1
		{0.85, 0.80, 0.92, 10, SameMagnitude},
		{0.85, 0.98, 1.02, 10, Disagrees},
		{0.85, 0.96, 0.99, 10, Disagrees},      // less, but no more than counts as none in a document
		{0.976, 0.90, 0.95, 10, SameMagnitude}, // no direction, and near
		{0.976, 0.60, 0.70, 10, Disagrees},     // a change here, none there
		{0.976, 0.80, 1.30, 10, Unsettled},
		{1.57, 1.42, 1.70, 10, SameMagnitude},
		{1.57, 1.06, 1.10, 10, OtherMagnitude},
		{1.57, 0.70, 0.90, 10, Disagrees},
		{1.57, 1.00, 1.04, 10, Disagrees},
		{0.5, 0.45, 0.55, 5, TooFewToTell},
		{0.5, 0.45, 0.55, 0, TooFewToTell},
	} {
		got, why := agree(c.published, quantity.Interval{Median: (c.low + c.high) / 2, Low: c.low, High: c.high, N: c.n})
		if got != c.want {
			t.Errorf("published %v, measured [%v, %v] of %d: %s (%s), want %s", c.published, c.low, c.high, c.n, got, why, c.want)
		}
		if got != SameMagnitude && got != OtherMagnitude && why == "" {
			t.Errorf("published %v, measured [%v, %v]: %s without a reason", c.published, c.low, c.high, got)
		}
	}
}
