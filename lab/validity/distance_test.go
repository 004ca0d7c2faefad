package validity

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
)

// seriesAt makes slices of 100 ms at these distances, in ns; 0 is a slice
// without a reading.
func seriesAt(distances ...float64) []sample.Point {
	points := make([]sample.Point, len(distances))
	for i, d := range distances {
		points[i] = sample.Point{At: float64(i+1) / 10, Seconds: 0.1, Bits: 1, CPUDistance: d}
	}
	return points
}

// seen returns the Distance of a run that has readings at the levels near and far.
func seen(choice condition.Choice) *Distance {
	c := &Distance{Choice: choice}
	for range 20 {
		c.readings = append(c.readings, 50, 52, 54, 330, 335, 340)
	}
	return c
}

func leftOut(points []sample.Point) (n int) {
	for _, p := range points {
		if p.LeftOut != "" {
			n++
		}
	}
	return n
}

func TestSlicesOfTheOtherLevelAndOfTheChangeAreLeftOut(t *testing.T) {
	points := seriesAt(52, 52, 52, 52, 52, 52, 335, 335, 52, 52)
	if gate := seen(condition.Auto).leaveOut(points, points, false); gate != nil {
		t.Fatalf("the trial fails %+v", gate)
	}
	for i, want := range []bool{false, false, false, false, false, true, true, true, true, false} {
		if got := points[i].LeftOut == sample.DistantSlice; got != want {
			t.Errorf("slice %d left out: %v, want %v", i, got, want)
		}
	}
}

func TestATrialAtTheOtherLevelFails(t *testing.T) {
	for choice, at := range map[condition.Choice]float64{condition.Auto: 335, condition.Near: 335, condition.Far: 52} {
		points := seriesAt(at, at, at, at)
		gate := seen(choice).leaveOut(points, points, false)
		if gate == nil || gate.Name != sample.CPUMoved || gate.Unit != "ns" || !remedy.MatchString(gate.Message) {
			t.Errorf("%s: a trial at %v ns fails %+v", choice, at, gate)
		}
	}
	points := seriesAt(335, 335, 335, 335)
	if gate := seen(condition.Any).leaveOut(points, points, false); gate != nil || leftOut(points) != 0 {
		t.Errorf("any: the trial fails %+v and leaves out %d slices", gate, leftOut(points))
	}
}

func TestATrialWithoutAMajorityFails(t *testing.T) {
	points := seriesAt(52, 335, 52, 335, 52, 335, 52, 335)
	gate := seen(condition.Any).leaveOut(points, points, false)
	if gate == nil || gate.Name != sample.CPUMoved || gate.Unit != "%" || !remedy.MatchString(gate.Message) {
		t.Errorf("a level that changes in every slice: %+v", gate)
	}
}

func TestOneLevelLeavesNothingOut(t *testing.T) {
	c := &Distance{}
	points := seriesAt(330, 340, 0, 335, 1000, 345)
	if gate := c.leaveOut(points, points, false); gate != nil || leftOut(points) != 0 {
		t.Errorf("the trial fails %+v and leaves out %d slices", gate, leftOut(points))
	}
	must.Equal(t, 5, len(c.readings))
}

func TestATrialWithoutReadingsIsNotJudgedByThem(t *testing.T) {
	points := seriesAt(0, 0, 0, 0)
	if gate := seen(condition.Near).leaveOut(points, points, false); gate != nil || leftOut(points) != 0 {
		t.Errorf("the trial fails %+v and leaves out %d slices", gate, leftOut(points))
	}
}

func TestATrialOfUnknownDistanceFailsWhereTheDistanceChanges(t *testing.T) {
	unread, read := seriesAt(0, 0, 0, 0), seriesAt(0, 52, 0, 0)
	adjusting := seen(condition.Near)
	adjusting.Adjust = true
	for _, c := range []struct {
		distance *Distance
		points   []sample.Point
		fails    bool
	}{
		{seen(condition.Near), unread, true},
		{seen(condition.Near), read, false},
		{adjusting, unread, false},
		{&Distance{}, unread, false}, // a machine with one level, or none read
	} {
		if gate := c.distance.unread(c.points); (gate != nil) != c.fails || gate != nil && gate.Name != sample.CPUMoved {
			t.Errorf("a trial with distances %v fails %+v", c.points, gate)
		}
	}
}

func TestSlicesWithStealAreLeftOut(t *testing.T) {
	points := seriesAt(52, 52, 52, 52)
	points[1].Steal, points[2].Steal = 10, 20
	if gate := seen(condition.Auto).leaveOut(points, points, false); gate != nil || leftOut(points) != 2 {
		t.Errorf("the trial fails %+v and leaves out %d slices", gate, leftOut(points))
	}
	points = seriesAt(52, 52, 52, 52)
	for i := range 3 {
		points[i].Steal = 10
	}
	if gate := seen(condition.Auto).leaveOut(points, points, false); gate == nil || gate.Name != sample.Steal {
		t.Errorf("steal in 3 of 4 slices: %+v", gate)
	}
}

func TestASliceWithoutAReadingHasTheLevelOfItsNeighbours(t *testing.T) {
	points := seriesAt(52, 0, 52, 52, 52, 52, 52, 0, 335, 335)
	if gate := seen(condition.Auto).leaveOut(points, points, false); gate != nil {
		t.Fatalf("the trial fails %+v", gate)
	}
	for i, want := range []bool{false, false, false, false, false, false, true, true, true, true} {
		if got := points[i].LeftOut != ""; got != want {
			t.Errorf("slice %d left out: %v, want %v", i, got, want)
		}
	}
}

func TestTheLastAttemptMayRunAtAnyDistance(t *testing.T) {
	points := seriesAt(335, 335, 335, 335)
	if gate := seen(condition.Near).leaveOut(points, points, true); gate != nil || leftOut(points) != 0 {
		t.Errorf("the trial fails %+v and leaves out %d slices", gate, leftOut(points))
	}
	points = seriesAt(52, 335, 52, 335)
	if gate := seen(condition.Near).leaveOut(points, points, true); gate == nil {
		t.Error("a trial without a majority passes at its last attempt")
	}
}

// After the first 300 readings the level is fixed, even if all later readings are at the other level.
func TestTheRunsDistanceIsChosenOnce(t *testing.T) {
	c := &Distance{Choice: condition.Auto}
	for range settling {
		c.readings = append(c.readings, 52)
	}
	near := seriesAt(52, 52, 52)
	if gate := c.leaveOut(near, near, false); gate != nil {
		t.Fatalf("the trial fails %+v", gate)
	}
	if want := c.want(condition.Levels(c.readings)); want != 0 {
		t.Fatalf("the run measures at level %d", want)
	}
	for range 20 * settling {
		c.readings = append(c.readings, 335)
	}
	must.Equal(t, 0, c.want(condition.Levels(c.readings)))
}
