package bgp

import (
	"testing"

	"windtunnel/vrouter/model"
)

// A table returns only the paths that have one of the targets.
func TestATableHasThePathsOfTargets(t *testing.T) {
	other, both := target("64512:7"), []model.RouteTarget{target("64512:7"), target("64512:1")}
	table := NewTable(nil)
	table.Put(path("10.9.0.0/24", nil))
	table.Put(path("10.10.0.0/24", func(p *Path) { p.Targets = []model.RouteTarget{other} }))
	table.Put(path("10.11.0.0/24", func(p *Path) { p.Targets = both }))
	for _, c := range []struct {
		targets map[model.RouteTarget]bool
		want    []string
	}{
		{nil, []string{"10.9.0.0/24", "10.10.0.0/24", "10.11.0.0/24"}},
		{map[model.RouteTarget]bool{}, nil},
		{map[model.RouteTarget]bool{other: true}, []string{"10.10.0.0/24", "10.11.0.0/24"}},
		{map[model.RouteTarget]bool{target("64512:1"): true}, []string{"10.9.0.0/24", "10.11.0.0/24"}},
	} {
		paths := table.Paths(c.targets)
		for i, p := range paths {
			if len(paths) != len(c.want) || p.Destination() != c.want[i] {
				t.Errorf("for the targets %v, path %d of %d leads to %s, want the paths to %v", c.targets, i, len(paths), p.Destination(), c.want)
			}
		}
		if len(paths) != len(c.want) {
			t.Errorf("for the targets %v, the table has %d paths, want %d", c.targets, len(paths), len(c.want))
		}
	}
}
