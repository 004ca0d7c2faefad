package validity

import (
	"fmt"
	"slices"

	"windtunnel/lab/condition"
	"windtunnel/lab/sample"
)

// Distance judges the trials of a run by the distance of the nodes' CPUs and by stolen slices.
// It keeps the readings of the run.
type Distance struct {
	Choice condition.Choice
	Adjust bool // the report adjusts the figures for the distance, so no slice is left out

	readings []float64 // distances of the run so far, ns
	target   float64   // distance that the run measures at, ns; 0 until it is chosen
}

// Judge marks the slices that the trial's figures leave out. It returns the gate that the trial fails; nil: it
// passes. points are all slices of the trial, slices those within its window. last is true for the last attempt
// at the trial. colocated is true if both workloads run on one node: then the trial has no distance.
func (d *Distance) Judge(points, slices []sample.Point, colocated, last bool) *sample.Gate {
	gate := d.leaveOut(points, slices, last)
	if gate == nil && !colocated {
		gate = d.unread(points)
	}
	return gate
}

// settling is the number of readings after which the run's distance is fixed. Half
// a minute of traffic yields that many.
const settling = 300

// want returns the level of CPU distance at which the run measures; −1: any.
func (d *Distance) want(levels []condition.Level) int {
	if d.target > 0 {
		return condition.Of(levels, d.target)
	}
	want := d.Choice.Choose(levels)
	if want >= 0 && len(d.readings) >= settling {
		d.target = levels[want].Median
	}
	return want
}

// Resume adds the readings of earlier parts of the run.
func (d *Distance) Resume(samples []sample.Sample) {
	for i := range samples {
		for _, p := range samples[i].Series {
			d.readings = append(d.readings, p.CPUDistance)
		}
	}
}

// majority is the minimum share of a window's slices that are at one level and
// without steal. A trial with a smaller share fails the gate.
const majority = 0.5

// leaveOut marks the slices that the trial's figures leave out, and adds the trial's readings to those of the
// run. It returns the gate that the trial fails. The parameters are those of Judge. The last attempt may run at
// any distance: the report shows figures at another distance in a separate table.
func (d *Distance) leaveOut(points, slices []sample.Point, last bool) *sample.Gate {
	for _, p := range points {
		if p.CPUDistance > 0 {
			d.readings = append(d.readings, p.CPUDistance)
		}
	}
	if d.Adjust {
		return nil
	}
	stolen := mark(slices, sample.StolenSlice, func(i int) bool { return slices[i].Steal > 0 })
	if stolen > 1-majority {
		return &sample.Gate{Name: sample.Steal, Value: 100 * stolen, Limit: 100 * (1 - majority), Unit: "%", Message: fmt.Sprintf(
			"the host of this virtual machine ran others in %.0f %% of the slices of the window; the limit is %.0f %%: give the machine CPUs of its own, or try at another hour",
			100*stolen, 100*(1-majority))}
	}
	levels := condition.Levels(d.readings)
	if len(levels) < 2 || !haveDistance(points) {
		return nil
	}
	at := levelsOf(points, slices, levels)
	own, most := commonest(at, len(levels))
	left := mark(slices, sample.DistantSlice, func(i int) bool { return at[i] != own })
	if most < majority || left+stolen > 1-majority {
		return distanceGate(100*most, 100*majority, "%", fmt.Sprintf(
			"the host moved this machine's CPUs within the trial (cache line round trips of %s); %.0f %% of the window was at one distance; the limit is %.0f %%: give the machine CPUs of its own, or try at another hour",
			condition.Describe(levels), 100*most, 100*majority))
	}
	if want := d.want(levels); want >= 0 && want != own && !last {
		return distanceGate(levels[own].Median, levels[want].Median, "ns", fmt.Sprintf(
			"the CPUs were %.0f ns from each other; the run measures at %.0f ns: use --cpu-distance any to measure at each distance, or try at another hour", levels[own].Median, levels[want].Median))
	}
	return nil
}

// unread returns the gate of a trial between two nodes in which no reading of
// the distance succeeded, on a machine where the distance changes. Without a
// reading the trial's level is unknown.
func (d *Distance) unread(points []sample.Point) *sample.Gate {
	if d.Adjust || haveDistance(points) || len(condition.Levels(d.readings)) < 2 {
		return nil
	}
	return distanceGate(0, 0, "ns", "the distance of the CPUs was not read: the measuring threads never ran at the same time; end the processes that keep the nodes' CPUs busy at real-time priority")
}

// haveDistance reports whether a trial has at least one reading of the distance.
func haveDistance(points []sample.Point) bool {
	return slices.ContainsFunc(points, func(p sample.Point) bool { return p.CPUDistance > 0 })
}

func distanceGate(value, limit float64, unit, message string) *sample.Gate {
	return &sample.Gate{Name: sample.CPUMoved, Value: value, Limit: limit, Unit: unit, Message: message}
}

// mark leaves out the slices that concerned selects by their index, unless they are left out already. It returns
// the share of all slices that this call leaves out.
func mark(slices []sample.Point, why sample.LeftOut, concerned func(i int) bool) float64 {
	n := 0
	for i := range slices {
		if slices[i].LeftOut == "" && concerned(i) {
			slices[i].LeftOut = why
			n++
		}
	}
	return float64(n) / float64(max(len(slices), 1))
}

// mixed is the level of a slice next to a change of the level.
const mixed = -1

// levelsOf returns the level of each slice. The reading within a slice and the
// nearest readings before and after it must be at the same level; else the slice
// is mixed. slices is a subslice of points.
func levelsOf(points, slices []sample.Point, levels []condition.Level) []int {
	at := make([]int, len(slices))
	first := indexOf(points, slices)
	for i := range slices {
		at[i] = mixed
		seen := false
		for _, p := range around(points, first+i) {
			l := condition.Of(levels, p.CPUDistance)
			if seen && l != at[i] {
				at[i] = mixed
				break
			}
			at[i], seen = l, true
		}
	}
	return at
}

// indexOf returns the index in points at which slices begins. slices is a subslice of points.
func indexOf(points, slices []sample.Point) int {
	for i := range points {
		if len(slices) > 0 && &points[i] == &slices[0] {
			return i
		}
	}
	return 0
}

// around lists the points with a reading that are nearest to point i: the last one before i, i itself if it has
// a reading, and the first one after i.
func around(points []sample.Point, i int) []sample.Point {
	has := func(p sample.Point) bool { return p.CPUDistance > 0 }
	var list []sample.Point
	for j := i - 1; j >= 0; j-- {
		if has(points[j]) {
			list = append(list, points[j])
			break
		}
	}
	if j := slices.IndexFunc(points[i+1:], has); j >= 0 {
		list = append(list, points[i+1+j])
	}
	if has(points[i]) {
		list = append(list, points[i])
	}
	return list
}

// commonest returns the level of most slices, and their share.
func commonest(at []int, levels int) (level int, share float64) {
	counts := make([]int, levels)
	for _, l := range at {
		if l != mixed {
			counts[l]++
		}
	}
	most := slices.Max(counts)
	return slices.Index(counts, most), float64(most) / float64(max(len(at), 1))
}
