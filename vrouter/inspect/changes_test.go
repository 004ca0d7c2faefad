package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompareMarksNewChangedAndGoneRows(t *testing.T) {
	after := slices.Clone(sampleDrops)
	after[1].Packets++
	after[0] = Drop{Vif: 1, Device: "vr-5f3a91c2e0", Reason: "no_route", Meaning: "no route to the destination", Packets: 1}
	c := Compare(DropTable(sampleDrops), DropTable(after))

	if diff := cmp.Diff([]Mark{New, Changed, Same, Gone}, c.Marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{false, true, false, false, false}, c.Differ[1]); diff != "" {
		t.Errorf("cells of the changed row (-want +got):\n%s", diff)
	}
	golden(t, "changes", c.Render(Options{}))
	if text := c.Render(Options{Colour: true}); !strings.Contains(text, "\x1b[1m   "+strings.Repeat(" ", 13)+"1905") &&
		!strings.Contains(text, "1905\x1b[0m") {
		t.Errorf("the changed cell does not stand out: %q", text)
	}
}

func TestCompareOfTheSameReadingMarksNothing(t *testing.T) {
	for _, table := range []Table{VifTable(sampleVifs), FlowTable(sampleFlows), RouteTable(sampleRoutes, nil)} {
		c := Compare(table, table)
		if slices.ContainsFunc(c.Marks, func(m Mark) bool { return m != Same }) || len(c.Rows) != len(table.Rows) {
			t.Errorf("marks %v on %d of %d rows", c.Marks, len(c.Rows), len(table.Rows))
		}
	}
}

// A flow whose age alone has changed is not marked.
func TestCompareIgnoresClocks(t *testing.T) {
	older := slices.Clone(sampleFlows)
	for i := range older {
		older[i].Age += time.Minute
		older[i].Idle += time.Minute
	}
	c := Compare(FlowTable(sampleFlows), FlowTable(older))
	if len(c.Marks) == 0 || slices.ContainsFunc(c.Marks, func(m Mark) bool { return m != Same }) {
		t.Errorf("older flows are marked %v", c.Marks)
	}
	older[0].PacketsOut++
	if c = Compare(FlowTable(sampleFlows), FlowTable(older)); c.Marks[0] != Changed {
		t.Errorf("a flow with another packet is marked %v", c.Marks[0])
	}
}

// With equal keys, no row is lost or added.
func TestCompareMatchesEqualKeysInOrder(t *testing.T) {
	twice := DropTable([]Drop{sampleDrops[0], sampleDrops[0]})
	once := DropTable([]Drop{sampleDrops[0]})
	if got := Compare(twice, once).Marks; !slices.Equal(got, []Mark{Same, Gone}) {
		t.Errorf("two then one: %v", got)
	}
	if got := Compare(once, twice).Marks; !slices.Equal(got, []Mark{Same, New}) {
		t.Errorf("one then two: %v", got)
	}
}

func TestCompareFromAndToNothing(t *testing.T) {
	if got := Compare(DropTable(nil), DropTable(sampleDrops)).Marks; !slices.Equal(got, []Mark{New, New, New}) {
		t.Errorf("from nothing: %v", got)
	}
	gone := Compare(DropTable(sampleDrops), DropTable(nil))
	if !slices.Equal(gone.Marks, []Mark{Gone, Gone, Gone}) {
		t.Errorf("to nothing: %v", gone.Marks)
	}
	if text := Compare(DropTable(nil), DropTable(nil)).Render(Options{}); text != "no drops\n" {
		t.Errorf("nothing to nothing prints %q", text)
	}
}
