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
		text := must.Get(json.MarshalIndent(rows, "", "  "))(t)
		golden(t, name+".json", string(append(text, '\n')))
	}
}

func TestRowsAreUnchangedInJSON(t *testing.T) {
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
	text := must.Get(json.Marshal(rows))(t)
	var back []T
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("%T: %v", rows, err)
	}
	again := must.Get(json.Marshal(back))(t)
	if !bytes.Equal(text, again) {
		t.Errorf("%T\n%s\nbecame\n%s", rows, text, again)
	}
}
