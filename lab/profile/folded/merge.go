package folded

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Merge adds the profiles of the same side of several trials. Profiles with different CPUs,
// sides or rates are an error, because their sum has no meaning.
func Merge(profiles ...*Profile) (*Profile, error) {
	if len(profiles) == 0 {
		return nil, errors.New("merge profiles: none is given")
	}
	first := profiles[0]
	m := &Profile{Node: first.Node, Side: first.Side, CPUs: slices.Clone(first.CPUs), Rate: first.Rate, Clock: first.Clock}
	var all []Stack
	for i, p := range profiles {
		if p.Side != m.Side || p.Rate != m.Rate || p.Clock != m.Clock || !slices.Equal(p.CPUs, m.CPUs) {
			return nil, fmt.Errorf("merge profiles: number %d (%s, CPUs %v, %s at %g Hz) is not of the kind of the first (%s, CPUs %v, %s at %g Hz)",
				i+1, p.Side, p.CPUs, p.Clock, p.Rate, m.Side, m.CPUs, m.Clock, m.Rate)
		}
		m.Seconds += p.Seconds
		m.Samples += p.Samples
		m.Lost += p.Lost
		m.Throttled += p.Throttled
		for _, w := range p.Warnings {
			if !slices.Contains(m.Warnings, w) {
				m.Warnings = append(m.Warnings, w)
			}
		}
		all = append(all, p.Stacks...)
	}
	m.Stacks = Unite(all)
	return m, nil
}

// Unite adds up equal stacks and sorts the stacks.
func Unite(stacks []Stack) []Stack {
	var united []Stack
	index := map[string]int{}
	var key strings.Builder
	for _, s := range stacks {
		key.Reset()
		for _, f := range append([]string{s.Category, s.Comm}, s.Frames...) {
			key.WriteString(f)
			key.WriteByte(0)
		}
		i, ok := index[key.String()]
		if !ok {
			index[key.String()] = len(united)
			united = append(united, s)
			continue
		}
		united[i].Count += s.Count
		united[i].Nanos += s.Nanos
	}
	slices.SortFunc(united, func(a, b Stack) int {
		return cmp.Or(strings.Compare(a.Comm, b.Comm), slices.Compare(a.Frames, b.Frames), strings.Compare(a.Category, b.Category))
	})
	return united
}
