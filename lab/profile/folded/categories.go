package folded

import (
	"cmp"
	"slices"
)

// CategoryRow is the CPU time of one category.
type CategoryRow struct {
	Name    string
	Cores   float64 // CPU seconds per second
	Percent float64 // of the busy time of the node, the wire's left out; of idle and wire too
	Samples uint64
}

// Totals says how the CPUs of a profile spent their time, in cores (CPU seconds per second).
// Busy, Wire and Idle add up to the number of CPUs.
type Totals struct {
	Busy float64 // busy time of the node by its meter, without Wire
	Wire float64 // the testbed's wire, where it runs on the node's CPUs
	Idle float64
}

// Sum returns the totals; zeros for a profile without length.
func Sum(p *Profile) Totals {
	var t Totals
	if p.Seconds <= 0 {
		return t
	}
	for i := range p.Stacks {
		s := &p.Stacks[i]
		cores := p.cpu(s) / p.Seconds
		switch s.Category {
		case Idle:
			t.Idle += cores
		case Wire:
			t.Wire += cores
		default:
			t.Busy += cores
		}
	}
	return t
}

// Categories returns the categories, the largest first. Idle and the wire come last,
// because they are no cost of the node.
func Categories(p *Profile) []CategoryRow {
	busy := Sum(p).Busy
	rows := map[string]*CategoryRow{}
	for i := range p.Stacks {
		s := &p.Stacks[i]
		r := rows[s.Category]
		if r == nil {
			r = &CategoryRow{Name: s.Category}
			rows[s.Category] = r
		}
		r.Samples += s.Count
		if p.Seconds > 0 {
			r.Cores += p.cpu(s) / p.Seconds
		}
	}
	list := make([]CategoryRow, 0, len(rows))
	for _, r := range rows {
		if busy > 0 {
			r.Percent = 100 * r.Cores / busy
		}
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b CategoryRow) int {
		return cmp.Or(cmp.Compare(rank(a.Name), rank(b.Name)), cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func rank(category string) int {
	switch category {
	case Wire:
		return 1
	case Idle:
		return 2
	}
	return 0
}
