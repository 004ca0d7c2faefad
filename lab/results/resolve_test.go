package results

import (
	"fmt"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func TestALongWrongNameIsComparedOnceWithEachRun(t *testing.T) {
	var ids []string
	for i := range 1000 {
		ids = append(ids, fmt.Sprintf("20261121-%06d-quick", i))
	}
	calls := 0
	got := nearest(ids, "20261121-000777-qiuck"+strings.Repeat("x", 1<<20), func(id, name string) int {
		calls++
		if len(name) > mostCompared {
			t.Fatalf("%d bytes of the name are compared, want %d at most", len(name), mostCompared)
		}
		return distance(id, name)
	})
	must.Equal(t, len(ids), calls)
	if len(got) != len(ids) || got[0] != "20261121-000777-quick" {
		t.Errorf("the nearest of %d runs is %s, want 20261121-000777-quick", len(got), got[0])
	}
}
