package sentences

import (
	"strings"
	"testing"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
)

func TestTheSentenceOfARatioAgreesWithItsVerdict(t *testing.T) {
	for m := range statements {
		for _, v := range certainty {
			for _, median := range []float64{0.7, 1, 1.3} {
				c := &model.Comparison{Metric: m, Verdict: v, Ratio: quantity.Interval{Median: median, Low: median - 0.4, High: median + 0.4, N: 10}}
				said := (&contrast{subject: name{text: "s"}, baseline: name{text: "b"}, ratios: []contrasted{{c, "w", true}}}).sentence(false)
				if strings.Contains(said, "no difference shows") != (v == model.Alike) || strings.Contains(said, "uggested") != (v == model.Suggested) {
					t.Errorf("%s is %s, and said as %q", m, v, said)
				}
			}
		}
	}
}
