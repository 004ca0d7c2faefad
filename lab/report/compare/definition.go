package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/suite"
)

// LeftOut is a scenario that is not compared, with the reason.
type LeftOut struct {
	Scenario string `json:"scenario"`
	Reason   string `json:"reason"`
}

// otherwise begins the reason of a scenario that both runs have.
const otherwise = "it is defined otherwise: "

// common returns the ids of the scenarios that both plans define alike, in the
// order of the second plan. out has the other scenarios with the differences.
func common(a, b *Side) (ids []string, out []LeftOut) {
	for i := range b.Plan.Scenarios {
		after := &b.Plan.Scenarios[i]
		before := a.scenario(after.ID)
		switch {
		case before == nil:
			out = append(out, LeftOut{after.ID, "run A does not have it"})
		default:
			if changes := definition(*before, *after); len(changes) > 0 {
				out = append(out, LeftOut{after.ID, otherwise + strings.Join(changes, ", ")})
				continue
			}
			ids = append(ids, after.ID)
		}
	}
	for i := range a.Plan.Scenarios {
		if id := a.Plan.Scenarios[i].ID; b.scenario(id) == nil {
			out = append(out, LeftOut{id, "run B does not have it"})
		}
	}
	return ids, out
}

// definition lists the differences between what two scenarios measure, such as
// "fabric.mtu 1500 → 9000". Titles, names and timing do not count.
func definition(a, b suite.Scenario) []string {
	for _, s := range []*suite.Scenario{&a, &b} {
		s.ID, s.Title, s.Workload.Name, s.Fabric.Name = "", "", "", ""
		s.Timing = suite.Timing{}
	}
	before, after := flat(a), flat(b)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if before[key] != after[key] {
			changes = append(changes, fmt.Sprintf("%s %s → %s", key, before[key], after[key]))
		}
	}
	return changes
}

// flat converts a value's JSON to dotted keys. So a new field of the language
// is compared without a change here.
func flat(v any) map[string]string {
	text, err := json.Marshal(v)
	if err != nil {
		return map[string]string{"": err.Error()}
	}
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(text, &tree); err != nil {
		return map[string]string{"": string(text)}
	}
	out := make(map[string]string)
	for key, raw := range tree {
		var inner map[string]json.RawMessage
		if json.Unmarshal(raw, &inner) != nil {
			out[key] = string(raw)
			continue
		}
		for below, value := range inner {
			out[key+"."+below] = string(value)
		}
	}
	return out
}

// plans lists how two plans differ in the length and number of trials. It
// leaves out scenarios that only one plan has, and changed scenarios.
func plans(a, b *Side) []Difference {
	var list []Difference
	add := func(name, before, after string) {
		if before != after {
			list = append(list, Difference{Name: name, A: before, B: after})
		}
	}
	add("suite", a.Plan.Suite, b.Plan.Suite)
	add("status", string(a.Run.Status), string(b.Run.Status))
	add("nodes", known(a.Plan.Nodes), known(b.Plan.Nodes))
	add("trials", known(a.Plan.Trials), known(b.Plan.Trials))
	add("precision", stop(a.Plan.Stop), stop(b.Plan.Stop))
	return append(list, timings(a, b)...)
}

// timings lists each change of timing once, with the number of scenarios that
// have it.
func timings(a, b *Side) []Difference {
	type change struct{ before, after suite.Timing }
	count := make(map[change]int)
	var order []change
	for i := range b.Plan.Scenarios {
		before := a.scenario(b.Plan.Scenarios[i].ID)
		if before == nil || before.Timing == b.Plan.Scenarios[i].Timing {
			continue
		}
		c := change{before.Timing, b.Plan.Scenarios[i].Timing}
		if count[c]++; count[c] == 1 {
			order = append(order, c)
		}
	}
	var list []Difference
	for _, c := range order {
		list = append(list, Difference{Name: "timing of " + phrase.Count(count[c], "scenario"), A: timing(c.before), B: timing(c.after)})
	}
	return list
}

func timing(t suite.Timing) string {
	return strings.Join([]string{t.Warmup.String(), t.Duration.String(), t.Cooldown.String()}, " + ")
}

func stop(s suite.Stop) string {
	if s.Precision == 0 {
		return "fixed trials"
	}
	text := strconv.FormatFloat(100*s.Precision, 'g', 3, 64) + " %"
	if s.MaxTrials > 0 {
		text += ", " + phrase.Count(s.MaxTrials, "trial") + " at most"
	}
	if s.MaxTime > 0 {
		text += ", " + s.MaxTime.Round(time.Second).String() + " at most"
	}
	return text
}
