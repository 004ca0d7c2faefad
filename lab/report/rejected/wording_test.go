package rejected

import (
	"strings"
	"testing"

	"windtunnel/lab/report/model"
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

func TestEachFlagOfAnOutcomeHasItsLine(t *testing.T) {
	for _, name := range sample.Outcomes {
		worst := sample.Gate{Name: name, Value: 1448, Limit: 1390, Unit: "B"}
		r := &model.Report{Scenarios: []model.Scenario{{ID: "bridge/small", Trials: 5, Flags: []model.GateCount{{Name: name, Trials: 3, Worst: worst}}}}}
		lines := Outcomes(r)
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "bridge/small: 3 of 5 trials ") || !strings.Contains(lines[0], gateFigure(worst)) || strings.Contains(lines[0], "%!") {
			t.Errorf("%s: the lines are %q", name, lines)
		}
	}
}
