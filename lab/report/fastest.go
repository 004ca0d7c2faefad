package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/phrase"
	"windtunnel/lab/stats"
)

// fastest names the fastest scenario of each kind of traffic, or those among
// which the intervals do not decide. It speaks of runs that compare nothing.
func fastest(r *Report) []string {
	var sentences []string
	for _, race := range []struct {
		noun  string
		entry func(*Scenario) *Interval
		print func(Interval) string
	}{
		{"throughput", func(s *Scenario) *Interval {
			if s.Transactions != nil {
				return nil
			}
			return s.Throughput
		}, bitRate},
		{"transactions", func(s *Scenario) *Interval { return s.Transactions }, rate},
	} {
		if text := winner(r.Scenarios, race.noun, race.entry, race.print); text != "" {
			sentences = append(sentences, text)
		}
	}
	return sentences
}

func winner(rows []Scenario, noun string, entry func(*Scenario) *Interval, print func(Interval) string) string {
	var field []*Scenario
	for i := range rows {
		if entry(&rows[i]) != nil {
			field = append(field, &rows[i])
		}
	}
	if len(field) == 0 {
		return ""
	}
	slices.SortStableFunc(field, func(a, b *Scenario) int { return cmp.Compare(entry(b).Median, entry(a).Median) })
	first := entry(field[0])
	if len(field) == 1 {
		return fmt.Sprintf("%s reaches %s.", field[0].ID, print(*first)) + few(*first)
	}
	level := 1 // how many the first does not stand clear of
	for level < len(field) && entry(field[level]).High >= first.Low {
		level++
	}
	if level == 1 {
		return fmt.Sprintf("%s has the most %s, %s; next is %s with %s.", field[0].ID, noun, print(*first), field[1].ID, print(*entry(field[1]))) + few(*first)
	}
	var ids []string
	for _, s := range field[:level] {
		ids = append(ids, s.ID)
	}
	return fmt.Sprintf("Which has the most %s does not show: the intervals of %s overlap; %s has the highest median, %s.", noun, strings.Join(ids, ", "), ids[0], print(*first)) + few(*first)
}

func few(iv Interval) string {
	if need := stats.MinimumTrials(stats.Level); iv.N < need {
		return fmt.Sprintf(" (In %s; a 95 %% interval needs %d.)", phrase.Count(iv.N, "trial"), need)
	}
	return ""
}
