package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"windtunnel/lab/condition"
	"windtunnel/lab/cpudistance"
	"windtunnel/lab/meter"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// conditions is the state of the machine during a run: the distance of the nodes'
// CPUs, and their memory speed.
type conditions struct {
	choice   condition.Choice
	probe    *cpudistance.Probe
	cpus     [2]int    // of the probe
	readings []float64 // distances of the run so far, ns
	target   float64   // distance that the run measures at, ns; 0 until it is chosen
	adjust   bool      // figures are adjusted for the state; no slice is left out
}

// settling is the number of readings after which the run's distance is fixed. Half
// a minute of traffic yields that many.
const settling = 300

// want returns the level of CPU distance at which the run measures; −1: any.
func (c *conditions) want(levels []condition.Level) int {
	if c.target > 0 {
		return condition.Of(levels, c.target)
	}
	want := c.choice.Choose(levels)
	if want >= 0 && len(c.readings) >= settling {
		c.target = levels[want].Median
	}
	return want
}

// resumed adds the readings of earlier parts of the run.
func (c *conditions) resumed(samples []sample.Sample) {
	for i := range samples {
		for _, p := range samples[i].Series {
			c.readings = append(c.readings, p.CPUDistance)
		}
	}
}

// between returns the probe of two CPUs, and opens it if needed.
func (c *conditions) between(a, b int) (*cpudistance.Probe, error) {
	if c.probe != nil && c.cpus == [2]int{a, b} {
		return c.probe, nil
	}
	c.close()
	var err error
	c.probe, err = cpudistance.Open(a, b)
	c.cpus = [2]int{a, b}
	return c.probe, err
}

func (c *conditions) close() {
	if c.probe != nil {
		c.probe.Close()
		c.probe = nil
	}
}

// conditionLog has the conditions and the fabric's clock during one trial.
type conditionLog struct {
	stop chan struct{}
	done sync.WaitGroup

	readings []cpudistance.Reading
	wire     []meter.WireReading
	err      error
}

// record reads every interval until finish is called. probe is nil where the
// nodes share their CPUs.
func record(every time.Duration, probe *cpudistance.Probe, clock func() (map[int]float64, error)) *conditionLog {
	r := &conditionLog{stop: make(chan struct{})}
	r.done.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			if r.err = r.read(probe, clock); r.err != nil {
				return
			}
			select {
			case <-r.stop:
				r.err = r.read(nil, clock)
				return
			case <-ticks.C:
			}
		}
	})
	return r
}

func (r *conditionLog) read(probe *cpudistance.Probe, clock func() (map[int]float64, error)) error {
	used, err := clock()
	if err != nil {
		return err
	}
	mono, err := meter.Now()
	if err != nil {
		return err
	}
	if used != nil {
		r.wire = append(r.wire, meter.WireReading{Mono: mono, Used: used})
	}
	if probe == nil {
		return nil
	}
	d, err := probe.Persist()
	r.readings = append(r.readings, d)
	return err
}

func (r *conditionLog) finish() error {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	r.done.Wait()
	return r.err
}

// annotate sets distance and memory speed in the points of the series. origin is
// the Mono at the start of the window.
func annotate(points []sample.Point, readings []cpudistance.Reading, origin int64) {
	for i := range points {
		p := &points[i]
		var trips, senders, receivers []float64
		for _, r := range during(p, readings, origin) {
			if r.RoundTrip > 0 {
				trips = append(trips, r.RoundTrip)
			}
			if r.Copy[0] > 0 {
				senders, receivers = append(senders, 8*r.Copy[0]), append(receivers, 8*r.Copy[1])
			}
		}
		p.CPUDistance, _, _ = stats.Median(trips)
		p.SenderMemoryCopy, _, _ = stats.Median(senders)
		p.ReceiverMemoryCopy, _, _ = stats.Median(receivers)
	}
}

// during lists the readings within a slice.
func during(p *sample.Point, readings []cpudistance.Reading, origin int64) []cpudistance.Reading {
	from, to := origin+int64(1e9*(p.At-p.Seconds)), origin+int64(1e9*p.At)
	at := func(mono int64) int {
		i, _ := slices.BinarySearchFunc(readings, mono, func(r cpudistance.Reading, mono int64) int { return cmp.Compare(r.Mono, mono) })
		return i
	}
	return readings[at(from):at(to)]
}

// majority is the minimum share of a window's slices that are at one level and
// without steal. A trial with a smaller share fails the gate.
const majority = 0.5

// leaveOut marks the slices that the trial's figures leave out, adds the trial's
// readings to those of the run, and returns the gate that the trial fails. slices
// is the part of points inside the window. The last attempt may run at any
// distance: figures at another distance have a separate table.
func (c *conditions) leaveOut(points, slices []sample.Point, last bool) *sample.Gate {
	for _, p := range points {
		if p.CPUDistance > 0 {
			c.readings = append(c.readings, p.CPUDistance)
		}
	}
	if c.adjust {
		return nil
	}
	stolen := mark(slices, sample.StolenSlice, func(i int) bool { return slices[i].Steal > 0 })
	if stolen > 1-majority {
		return &sample.Gate{Name: sample.Steal, Value: 100 * stolen, Limit: 100 * (1 - majority), Unit: "%", Message: fmt.Sprintf(
			"the host of this virtual machine ran others in %.0f %% of the slices of the window; the limit is %.0f %%: give the machine CPUs of its own, or try at another hour",
			100*stolen, 100*(1-majority))}
	}
	levels := condition.Levels(c.readings)
	if len(levels) < 2 || !haveDistance(points) {
		return nil
	}
	at := levelsOf(points, slices, levels)
	own, most := commonest(at, len(levels))
	left := mark(slices, sample.DistantSlice, func(i int) bool { return at[i] != own })
	if most < majority || left+stolen > 1-majority {
		return distanceGate(100*most, 100*majority, "%", fmt.Sprintf(
			"the host moved this machine's CPUs within the trial (cache line round trips of %s); at most %.0f %% of the window was at one distance", cpudistance.Describe(levels), 100*most))
	}
	if want := c.want(levels); want >= 0 && want != own && !last {
		return distanceGate(levels[own].Median, levels[want].Median, "ns", fmt.Sprintf(
			"the CPUs were %.0f ns from each other; the run measures at %.0f ns", levels[own].Median, levels[want].Median))
	}
	return nil
}

// unread returns the gate of a trial between two nodes in which no reading of
// the distance succeeded, on a machine where the distance changes. Without a
// reading the trial's level is unknown.
func (c *conditions) unread(points []sample.Point) *sample.Gate {
	if c.adjust || haveDistance(points) || len(condition.Levels(c.readings)) < 2 {
		return nil
	}
	return distanceGate(0, 0, "ns", "the distance of the CPUs was not read: the measuring threads never ran at the same time; end what keeps the nodes' CPUs busy at real-time priority")
}

// haveDistance reports whether the distance was read in a trial at all.
func haveDistance(points []sample.Point) bool {
	return slices.ContainsFunc(points, func(p sample.Point) bool { return p.CPUDistance > 0 })
}

func distanceGate(value, limit float64, unit, message string) *sample.Gate {
	return &sample.Gate{Name: sample.CPUMoved, Value: value, Limit: limit, Unit: unit, Message: message}
}

// mark leaves out the slices for which so returns true, if no earlier reason did, and
// returns their share.
func mark(slices []sample.Point, why sample.LeftOut, so func(i int) bool) float64 {
	n := 0
	for i := range slices {
		if slices[i].LeftOut == "" && so(i) {
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
// is mixed. slices is a part of points.
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

// indexOf returns the index in points of the first slice. slices is a part of
// points.
func indexOf(points, slices []sample.Point) int {
	for i := range points {
		if len(slices) > 0 && &points[i] == &slices[0] {
			return i
		}
	}
	return 0
}

// around lists the nearest point with a reading before point i, point i itself if it
// has a reading, and the nearest such point after it.
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
