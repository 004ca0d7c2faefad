package rejected

import (
	"testing"

	"windtunnel/lab/sample"
)

func TestWorstGateIsFarthestBeyondAnUpperOrALowerLimit(t *testing.T) {
	for _, c := range []struct{ worse, better sample.Gate }{
		{sample.Gate{Value: 31, Limit: 3}, sample.Gate{Value: 12, Limit: 3}},
		{sample.Gate{Value: 40, Limit: 90}, sample.Gate{Value: 85, Limit: 90}},
		{sample.Gate{Value: 5}, sample.Gate{Value: 1}},
	} {
		if beyond(c.worse) <= beyond(c.better) {
			t.Errorf("%+v is not farther beyond its limit than %+v", c.worse, c.better)
		}
	}
}
