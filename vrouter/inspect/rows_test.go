package inspect

import (
	"bytes"
	"encoding/json"
	"testing"

	"windtunnel/internal/must"
)

// Programs read `-o json`: fields may be added but never changed.
func TestRowsAsJSONAreAsRecorded(t *testing.T) {
	for name, rows := range map[string]any{
		"vif": sampleVifs, "nh": sampleNexthops, "rt": sampleRoutes, "bridge": sampleBridge, "mpls": sampleLabels,
		"flow": sampleFlows, "drop": sampleDrops, "fallback": sampleFallbacks, "vrfstats": sampleVRFStats,
	} {
		text, err := json.MarshalIndent(rows, "", "  ")
		must.Succeed(t, err)
		golden(t, name+".json", string(append(text, '\n')))
	}
}

func TestRowsSurviveJSON(t *testing.T) {
	roundTrip(t, sampleVifs)
	roundTrip(t, sampleNexthops)
	roundTrip(t, sampleRoutes)
	roundTrip(t, sampleBridge)
	roundTrip(t, sampleLabels)
	roundTrip(t, sampleFlows)
	roundTrip(t, sampleDrops)
	roundTrip(t, sampleFallbacks)
	roundTrip(t, sampleVRFStats)
}

func roundTrip[T any](t *testing.T, rows []T) {
	t.Helper()
	text, err := json.Marshal(rows)
	must.Succeed(t, err)
	var back []T
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("%T: %v", rows, err)
	}
	again, err := json.Marshal(back)
	must.Succeed(t, err)
	if !bytes.Equal(text, again) {
		t.Errorf("%T\n%s\nbecame\n%s", rows, text, again)
	}
}
