package model

import (
	"slices"

	"windtunnel/lab/phrase"
	"windtunnel/lab/sample"
)

// emulatedMark stands behind the title of a scenario whose VMs were emulated.
const emulatedMark = " [emulated CPU]"

// emulated reports whether any of the scenario's figures were taken in VMs
// without KVM.
func (c *cell) emulated() bool {
	return slices.ContainsFunc(c.ok, func(s *sample.Sample) bool { return slices.Contains(s.Warnings, sample.Emulated) })
}

// emulatedNotes name the scenarios whose figures are not those of real VMs.
func (b *builder) emulatedNotes(r *Report) []string {
	var ids []string
	for i := range r.Scenarios {
		if b.cells[r.Scenarios[i].ID].emulated() {
			ids = append(ids, r.Scenarios[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return []string{phrase.Capital(sample.Emulated) + ": " + phrase.And(ids) + ". Compare them with each other only."}
}
