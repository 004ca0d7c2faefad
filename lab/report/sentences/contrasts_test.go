package sentences

import (
	"testing"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/suite"
)

func TestConfirmedCostsComeBeforeLargerSuggestedCosts(t *testing.T) {
	sure := &contrast{ratios: []contrasted{{Comparison: &model.Comparison{Verdict: model.Differs, Ratio: quantity.Interval{Median: 0.9, N: 10}}}}}
	dear := &contrast{ratios: []contrasted{{Comparison: &model.Comparison{Verdict: model.Suggested, Ratio: quantity.Interval{Median: 0.2, N: 10}}}}}
	if got := surest([]*contrast{dear, dear, dear, dear, sure}); len(got) != mostFindings || got[0] != sure {
		t.Errorf("%d contrasts %v, want %d, the certain difference first", len(got), got, mostFindings)
	}
}

func TestNamesBeginASentenceWithACapitalOnlyWhereTheyAreWords(t *testing.T) {
	rows := []model.Scenario{
		{ID: "bridge/stream", System: "bridge"}, {ID: "vrouter/stream", System: "vrouter-mpls-udp"},
		{ID: "vrouter-vxlan-colocated/stream", System: "vrouter-vxlan", Placement: string(suite.Colocated)},
		{ID: "fast/stream", System: "vxlan"}, {ID: "slow/stream", System: "vxlan"}, {ID: "raw/stream", System: "raw"},
	}
	call := callers((&model.Report{Scenarios: rows, Systems: map[string]string{"raw": "raw", "bridge": "the bridge", "vxlan": "kernel VXLAN"}}))
	for i, want := range []string{"The bridge", "vrouter", "vrouter-vxlan on one node", "fast", "slow", "Raw"} {
		if got := call(&rows[i]).opening(); got != want {
			t.Errorf("%s is %q, want %q", rows[i].ID, got, want)
		}
	}
}
