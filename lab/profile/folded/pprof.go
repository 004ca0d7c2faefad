package folded

import (
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// PProf makes a profile for `go tool pprof`: samples and CPU nanoseconds, with
// the labels side, category and program. It omits idle time. The profile's
// time is zero, because it can cover several trials.
func PProf(p *Profile) *profile.Profile {
	out := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		DefaultSampleType: "cpu",
		PeriodType:        &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		DurationNanos:     int64(p.Seconds * float64(time.Second)),
		Comments:          p.Warnings,
	}
	if p.Rate > 0 {
		out.Period = int64(1e9 / p.Rate)
	}
	b := builder{out: out, locations: map[string]*profile.Location{}}
	b.kernel, b.user = b.mapping("[kernel.kallsyms]"), b.mapping("[user]")
	for i := range p.Stacks {
		s := &p.Stacks[i]
		if s.Category == Idle {
			continue
		}
		sample := &profile.Sample{
			Value: []int64{int64(s.Count), int64(p.cpu(s) * 1e9)},
			Label: map[string][]string{"category": {s.Category}, "program": {s.Comm}},
		}
		if p.Side != "" {
			sample.Label["side"] = []string{p.Side}
		}
		for j := len(s.Frames) - 1; j >= 0; j-- { // pprof wants the leaf first
			sample.Location = append(sample.Location, b.location(s.Frames[j]))
		}
		out.Sample = append(out.Sample, sample)
	}
	return out
}

// builder makes each function once.
type builder struct {
	out          *profile.Profile
	locations    map[string]*profile.Location
	kernel, user *profile.Mapping
}

func (b *builder) mapping(file string) *profile.Mapping {
	m := &profile.Mapping{ID: uint64(len(b.out.Mapping) + 1), File: file, HasFunctions: true}
	b.out.Mapping = append(b.out.Mapping, m)
	return m
}

func (b *builder) location(frame string) *profile.Location {
	if l := b.locations[frame]; l != nil {
		return l
	}
	id := uint64(len(b.out.Function) + 1)
	name, kernel := strings.CutSuffix(frame, KernelSuffix)
	f := &profile.Function{ID: id, Name: name, SystemName: name}
	l := &profile.Location{ID: id, Mapping: b.user, Line: []profile.Line{{Function: f}}}
	if kernel {
		l.Mapping = b.kernel
	}
	b.out.Function = append(b.out.Function, f)
	b.out.Location = append(b.out.Location, l)
	b.locations[frame] = l
	return l
}
